// Rows of token ids, and how pieces encoded by several threads become one array in the order of the pieces.
//
// A piece is encoded into a small buffer and copied once its place is known, that is when all pieces before
// it are finished; the buffer then serves another piece. So the pages of the result are touched once, and
// nobody waits.
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

// Used by several threads at once.
class PieceAssembly {
public:
  // The result is written to `out`, which must have capacity for all IDs.
  PieceAssembly(size_t piece_count, TokenBuffer out);

  // Takes a finished piece, each index once: its ids and the ends of its rows, counted from its own start.
  // Copies every piece that follows only finished ones. Returns an empty buffer for the next piece. Throws
  // std::length_error instead of writing past the capacity.
  TokenBuffer add(size_t piece, TokenBuffer tokens, std::vector<uint64_t> row_ends);

  // The result, once all pieces are added and no call is running.
  EncodedRows take();

private:
  EncodedRows rows_; // the tokens have their full room from the start and don't move
  std::mutex mutex_;
  std::vector<std::optional<std::pair<TokenBuffer, std::vector<uint64_t>>>> waiting_; // by piece
  size_t first_waiting_ = 0; // all before are placed or being copied
  uint64_t token_count_ = 0; // of those
  std::vector<TokenBuffer> spare_;
};

} // namespace bpe
