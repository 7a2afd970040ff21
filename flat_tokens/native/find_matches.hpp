// Where a zarr chunk of tokens repeats itself, for zstd to store: a search by tokens and not by bytes.
//
// A match that begins or ends inside a token saves next to nothing, so only a fourth of the places are looked
// up, fewer where long matches cover them, and none is shorter than a few tokens. The same in Python, the
// specification: flat_tokens/storage/token_matches.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// As ZSTD_Sequence: `literals` bytes as they are, then `length` bytes that stand `offset` bytes earlier, too.
// A block ends with offset and length 0.
struct Match {
  uint32_t offset, literals, length, repeat;
};

inline constexpr unsigned match_table_bits = 14; // 64 KiB: 2^16 store 2 to 9 % less in 5 to 15 % more time

// The matches of `count` tokens (below 2^30), of at least `shortest` (2 or 3) tokens each, in blocks of
// `block_tokens`; none begins in one block and ends in another, none goes back further than `farthest`
// tokens. Writes at most count / shortest + blocks of them and returns how many. table: 2^match_table_bits
// entries, whatever they hold. One thread, no memory of its own, no errors; 1 ns a token where little
// repeats, else 2 to 3.5.
size_t find_matches(const uint32_t *tokens, size_t count, size_t shortest, size_t block_tokens,
                    size_t farthest, Match *matches, uint32_t *table);

} // namespace flat_tokens
