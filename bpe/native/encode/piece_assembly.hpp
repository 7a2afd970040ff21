// Rows of token IDs, and the assembly of pieces encoded by several threads into one array in order.
//
// A piece is encoded into a small buffer and copied once its position is known, which is when all previous
// pieces are finished. The buffer is then used for another piece. The pages of the result are touched once,
// and no thread waits.
#pragma once

#include "common/token_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace bpe {

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
