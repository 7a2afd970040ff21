// Three short loops: decode tokens, plan packs, permute positions. Each uses one thread and has no errors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// Writes encoded[i] >> 1 to ids[i] and, unless is_start is null, encoded[i] & 1 to is_start[i]. Returns the
// largest encoded token, 0 for none, for the check that every reader makes. The arrays must not overlap.
uint32_t decode_ids(const uint32_t *encoded, size_t count, uint32_t *ids, uint8_t *is_start);

struct NextFit {
  size_t packs;     // bounds that were written
  size_t sequences; // sequences that were packed; fewer than given if the next one is too long
};

// Packs whole sequences in order: the first one that does not fit begins the next pack. Continues the pack
// that begins at token `begin` with the sequences between `starts`, count + 1 rising offsets, and writes the
// first token of each further pack to `bounds`, at most `count`. A sequence longer than max_tokens still ends
// the pack before it.
NextFit next_fit(const int64_t *starts, size_t count, int64_t begin, int64_t max_tokens, int64_t *bounds);

// Replaces each of `count` values, all in [0, size), by its image under the permutation of `key`, which
// flat_tokens/order/permutation.py specifies. 1 <= size <= 2^62. Slowest if size is just above a power of
// two.
void permute(uint64_t *values, size_t count, uint64_t size, uint64_t key);

} // namespace flat_tokens
