// The permutations of flat_tokens/order/permutation.py, which states the rule and is the specification.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// Replaces each of `count` values, all in [0, size), by its image under the permutation of `key`.
// 1 <= size <= 2^62. Uses one thread. 20 ns per value, and 30 ns if size is just above a power of two.
void permute(uint64_t *values, size_t count, uint64_t size, uint64_t key);

} // namespace flat_tokens
