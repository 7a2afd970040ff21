// Decoding of tokens, with the largest one for the check that every reader makes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// Writes encoded[i] >> 1 to ids[i] and, unless is_start is null, encoded[i] & 1 to is_start[i]. Returns the
// largest encoded token, 0 for none. The arrays must not overlap.
uint32_t decode_ids(const uint32_t *encoded, size_t count, uint32_t *ids, uint8_t *is_start);

} // namespace flat_tokens
