// Where a text is cut so that threads can take pieces of it.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"
#include "text/added_tokens.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace bpe {

// Small enough for a thread's buffer of ids to stay in its cache, large enough for the hand-over not to
// matter.
inline constexpr size_t piece_bytes = 1 << 18;

// What documents may be cut by: how their pretokens are cut, the special tokens they may hold, and what
// normalizes the text between these, or nullptr.
struct WithinDocuments {
  const Automaton &automaton;
  const AddedTokens &special;
  const Normalizer *normalizer;
};

// Where to cut a text into pieces of about piece_bytes: behind separators and, if it is said how, within long
// documents. Starts of the pieces, then text.size().
std::vector<size_t> cut_into_pieces(std::string_view text, std::string_view separator,
                                    const std::optional<WithinDocuments> &within);

// The last offset found in `text` at which it may be cut into two that are encoded apart, whatever follows:
// where no pretoken crosses, else after a special token; 0: none.
size_t last_cut(std::string_view text, const WithinDocuments &within);

} // namespace bpe
