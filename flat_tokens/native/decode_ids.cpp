#include "decode_ids.hpp"

namespace flat_tokens {

uint32_t decode_ids(const uint32_t *encoded, size_t count, uint32_t *__restrict ids) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = encoded[i] > largest ? encoded[i] : largest;
    ids[i] = encoded[i] >> 1;
  }
  return largest;
}

} // namespace flat_tokens
