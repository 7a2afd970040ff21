// largest = 0
// for each token: largest = max(largest, token), id = token >> 1, is_start = token & 1
#include "decode_ids.hpp"

namespace flat_tokens {

namespace {

template <bool HasFlags>
uint32_t decode(const uint32_t *encoded, size_t count, uint32_t *__restrict ids,
                uint8_t *__restrict is_start) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = encoded[i] > largest ? encoded[i] : largest;
    ids[i] = encoded[i] >> 1;
    if constexpr (HasFlags)
      is_start[i] = static_cast<uint8_t>(encoded[i] & 1);
  }
  return largest;
}

} // namespace

uint32_t decode_ids(const uint32_t *encoded, size_t count, uint32_t *ids, uint8_t *is_start) {
  return is_start ? decode<true>(encoded, count, ids, is_start) : decode<false>(encoded, count, ids, nullptr);
}

} // namespace flat_tokens
