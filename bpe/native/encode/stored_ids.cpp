#include "encode/stored_ids.hpp"

#include <algorithm>
#include <cstring>

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

size_t take_rows_out(uint32_t *ids, const uint64_t *offsets, const bool *marked, size_t rows, uint32_t *out) {
  size_t kept = 0;
  for (size_t row = 0; row < rows;) {
    const size_t first = row;
    while (row < rows && marked[row] == marked[first])
      ++row;
    const uint32_t *const run = ids + offsets[first];
    const size_t count = offsets[row] - offsets[first];
    if (marked[first]) {
      std::memcpy(out, run, count * sizeof *ids);
      out += count;
    } else {
      std::memmove(ids + kept, run, count * sizeof *ids);
      kept += count;
    }
  }
  return kept;
}

} // namespace bpe
