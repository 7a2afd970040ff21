// The permutations of flat_tokens/rows/permutation.py, which states the rule and is its specification.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// Sends each of `count` values, all in [0, size), to its place under the permutation of `key`; 1 <= size <=
// 2^62. In place, one thread, 20 ns a value and half as much again where size is just above a power of two.
void permute(uint64_t *values, size_t count, uint64_t size, uint64_t key);

} // namespace flat_tokens
