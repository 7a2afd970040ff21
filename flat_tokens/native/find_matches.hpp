// Search for repeated tokens in a Zarr chunk, which zstd stores as matches.
//
// A match that begins or ends inside a token saves almost nothing. So only offsets of tokens are looked up, a
// quarter of the bytes, and matches have at least a few tokens. tests/flat_tokens/test_token_matches.py has
// the specification in Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// A ZSTD_Sequence: `literals` bytes, then a copy of the `length` bytes that are `offset` bytes earlier. A
// block ends with offset and length 0.
struct Match {
  uint32_t offset, literals, length, repeat;
};

inline constexpr unsigned match_table_bits = 14; // 64 KiB: 2^16 store 2 to 9 % less in 5 to 15 % more time

// Writes the matches of `count` tokens (below 2^30), at most count / shortest + blocks of them, and returns
// their number. Each match has at least `shortest` (2 or 3) tokens, is within a block of `block_tokens`, and
// copies from at most `farthest` tokens before it. table: 2^match_table_bits entries of any content.
//
// Uses one thread, allocates no memory and has no errors. 1 to 3.5 ns per token.
size_t find_matches(const uint32_t *tokens, size_t count, size_t shortest, size_t block_tokens,
                    size_t farthest, Match *matches, uint32_t *table);

} // namespace flat_tokens
