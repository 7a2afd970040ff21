#include "stored_ids.hpp"

#include <algorithm>

namespace convert {

// Plain loops, which compilers turn into vector code.

void double_ids(const uint16_t *__restrict ids, size_t count, uint32_t *__restrict out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = uint32_t{ids[i]} << 1;
}

void double_ids(const uint32_t *__restrict ids, size_t count, uint32_t *__restrict out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = ids[i] << 1;
}

namespace {

uint32_t store_ids(const uint32_t *__restrict ids, size_t count, uint16_t *__restrict out) {
  uint32_t highest = 0;
  for (size_t i = 0; i < count; ++i) {
    highest = std::max(highest, ids[i]);
    out[i] = static_cast<uint16_t>(ids[i]);
  }
  return highest;
}

uint32_t store_ids(const uint32_t *__restrict ids, size_t count, uint32_t *__restrict out) {
  uint32_t highest = 0;
  for (size_t i = 0; i < count; ++i) {
    highest = std::max(highest, ids[i] & kIdBits);
    out[i] = ids[i];
  }
  return highest;
}

} // namespace

template <class Id>
std::array<SplitStats, 2>
partition_by_split(const uint32_t *ids, const uint64_t *offsets, const bool *marked, size_t rows,
                   const EndIds &ends, const std::array<uint64_t, 2> &before, Id *out, uint64_t *starts) {
  const auto length_of = [&](size_t row) {
    const uint64_t length = offsets[row + 1] - offsets[row];
    return length ? length + ends.count() : 0;
  };
  std::array<SplitStats, 2> stats{};
  for (size_t row = 0; row < rows; ++row) {
    const uint64_t length = length_of(row);
    SplitStats &own = stats[marked[row]];
    own.ids += length;
    own.rows += length > 0;
    own.longest = std::max(own.longest, length);
  }
  std::array<Id *, 2> next_id{out, out + stats[0].ids};
  std::array<uint64_t *, 2> next_start{starts, starts + stats[0].rows};
  std::array<uint64_t, 2> start = before;
  const auto store = [&](bool which, const uint32_t *from, size_t count) {
    stats[which].highest = std::max(stats[which].highest, store_ids(from, count, next_id[which]));
    next_id[which] += count;
  };
  for (size_t row = 0; row < rows;) {
    const bool which = marked[row];
    const size_t first = row;
    for (; row < rows && marked[row] == which; ++row) {
      const uint64_t length = length_of(row);
      if (length > 0)
        *next_start[which]++ = start[which];
      start[which] += length;
    }
    if (ends.count() == 0) { // rows of one kind lie end to end
      store(which, ids + offsets[first], offsets[row] - offsets[first]);
      continue;
    }
    for (size_t own = first; own < row; ++own) {
      const size_t count = offsets[own + 1] - offsets[own];
      if (count == 0)
        continue;
      if (ends.front)
        store(which, &*ends.front, 1);
      store(which, ids + offsets[own], count);
      if (ends.back)
        store(which, &*ends.back, 1);
    }
  }
  return stats;
}

template std::array<SplitStats, 2> partition_by_split(const uint32_t *, const uint64_t *, const bool *,
                                                      size_t, const EndIds &, const std::array<uint64_t, 2> &,
                                                      uint16_t *, uint64_t *);
template std::array<SplitStats, 2> partition_by_split(const uint32_t *, const uint64_t *, const bool *,
                                                      size_t, const EndIds &, const std::array<uint64_t, 2> &,
                                                      uint32_t *, uint64_t *);

} // namespace convert
