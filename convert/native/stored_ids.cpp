#include "stored_ids.hpp"

#include <algorithm>

namespace convert {

namespace {

// A plain loop, which compilers vectorize.
void append(const uint32_t *__restrict ids, size_t count, uint32_t mask, uint32_t *__restrict out,
            SplitStats &stats) {
  uint32_t highest = stats.highest, not_trained = 0;
  for (size_t i = 0; i < count; ++i) {
    highest = std::max(highest, ids[i] & ~mask);
    not_trained += (ids[i] & mask) >> 31;
    out[i] = ids[i] << 1 | (ids[i] & mask);
  }
  stats.highest = highest;
  stats.not_trained += not_trained;
}

} // namespace

std::array<SplitStats, 2> partition_by_split(const uint32_t *ids, const uint64_t *offsets,
                                             const bool *is_validation, size_t rows, const EndIds &ends,
                                             bool has_mask, const std::array<uint64_t, 2> &before,
                                             uint32_t *words, uint64_t *starts) {
  std::array<SplitStats, 2> stats{};
  for (size_t row = 0; row < rows; ++row)
    if (const uint64_t length = offsets[row + 1] - offsets[row]) {
      stats[is_validation[row]].words += length + ends.count();
      ++stats[is_validation[row]].rows;
    }
  const uint32_t mask = has_mask ? kNotTrained : 0;
  const std::array<uint32_t *, 2> first_word{words, words + stats[0].words};
  std::array<uint32_t *, 2> next_word = first_word;
  std::array<uint64_t *, 2> next_start{starts, starts + stats[0].rows};
  for (size_t row = 0; row < rows; ++row) {
    const size_t length = offsets[row + 1] - offsets[row];
    if (length == 0)
      continue;
    const bool split = is_validation[row];
    uint32_t *const first = next_word[split];
    *next_start[split]++ = before[split] + static_cast<uint64_t>(first - first_word[split]);
    uint32_t *next = first;
    if (ends.front)
      append(&*ends.front, 1, mask, next++, stats[split]);
    append(ids + offsets[row], length, mask, next, stats[split]);
    next += length;
    if (ends.back)
      append(&*ends.back, 1, mask, next++, stats[split]);
    *first |= 1;
    next_word[split] = next;
  }
  return stats;
}

} // namespace convert
