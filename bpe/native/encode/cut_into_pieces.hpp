// Cut a text into pieces for threads.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"
#include "text/added_tokens.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace bpe {

// Small enough that the ID buffer of a thread stays in its cache, large enough that synchronization does not
// matter.
inline constexpr size_t piece_bytes = 1 << 18;

// Settings for cutting documents: the automaton for their pretokens, the special tokens they may contain,
// and the normalizer for the text between these, or nullptr.
struct WithinDocuments {
  const Automaton &automaton;
  const AddedTokens &special;
  const Normalizer *normalizer;
};

// Cut a text into pieces of about piece_bytes: after separators and, if `within` is given, within long
// documents. Returns the starts of the pieces, then text.size().
std::vector<size_t> cut_into_pieces(std::string_view text, std::string_view separator,
                                    const std::optional<WithinDocuments> &within);

// Return the last offset found in `text` where it may be cut into two parts that are encoded separately,
// whatever follows: where no pretoken crosses, otherwise after a special token; 0: none.
size_t last_cut(std::string_view text, const WithinDocuments &within);

} // namespace bpe
