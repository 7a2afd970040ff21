// Cut a text into pieces for threads, and assemble the rows that they encode.
//
// A piece is encoded into a small buffer and copied once its position is known, which is when all previous
// pieces are finished. The buffer is then used for another piece. The pages of the result are touched once,
// and no thread waits.
#pragma once

#include "common/token_buffer.hpp"
#include "normalize/normalizer.hpp"
#include "pretokenize/automaton.hpp"
#include "text/added_tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
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
// whatever follows: where no pretoken crosses, otherwise after a special token; 0: none. With a separator, an
// offset where no separator is cut or begins, nor after a special token.
size_t last_cut(std::string_view text, const WithinDocuments &within, std::string_view separator = {});

struct EncodedRows {
  TokenBuffer tokens;
  std::vector<uint64_t> offsets; // rows + 1, from 0 to tokens.size()
};

// Thread-safe.
class PieceAssembly {
public:
  // The result is written to `out`, which must have capacity for all IDs.
  PieceAssembly(size_t piece_count, TokenBuffer out);

  // Add a finished piece, each index once: its IDs and the ends of its rows, relative to its start. Copies
  // every piece that only follows finished ones. Returns an empty buffer for the next piece. Throws
  // std::length_error instead of writing past the capacity.
  TokenBuffer add(size_t piece, TokenBuffer tokens, std::vector<uint64_t> row_ends);

  // Return the result. All pieces must be added, and no call may be running.
  EncodedRows take();

private:
  EncodedRows rows_; // the tokens have their full room from the start and do not move
  std::mutex mutex_;
  std::vector<std::optional<std::pair<TokenBuffer, std::vector<uint64_t>>>> waiting_; // by index of the piece
  size_t first_waiting_ = 0; // all previous pieces are copied or being copied
  uint64_t token_count_ = 0; // of the previous pieces
  std::vector<TokenBuffer> spare_;
};

} // namespace bpe
