#include "encode/stored_ids.hpp"

#include <algorithm>

namespace bpe {

// Plain loops, which compilers turn into vector code.

uint32_t narrow_ids(const uint32_t *__restrict ids, size_t count, uint16_t *__restrict out) {
  uint32_t highest = 0;
  for (size_t i = 0; i < count; ++i) {
    highest = std::max(highest, ids[i]);
    out[i] = static_cast<uint16_t>(ids[i]);
  }
  return highest;
}

void double_ids(const uint16_t *__restrict ids, size_t count, uint32_t *__restrict out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = uint32_t{ids[i]} << 1;
}

void double_ids(const uint32_t *__restrict ids, size_t count, uint32_t *__restrict out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = ids[i] << 1;
}

} // namespace bpe
