// Longer pretokens -> symbols, a lane each: merge_by_lanes.hpp for those of up to 32 bytes.
#pragma once

#include "long_merge.hpp"
#include "merge_by_lanes.hpp"
#include "merge_by_sweeps.hpp"

namespace bpe {

namespace {

template <class Lanes, class Simd> struct LongSideBySide : SideBySide<Lanes> {
  using Base = SideBySide<Lanes>;
  using typename Base::Unsigned;
  using typename Base::Vector;
  using Base::width;
  static constexpr int32_t places = 32;
  using Group = typename Base::template Group<places>;

  [[gnu::always_inline]] static inline void start(const MergeTables &tables, LongMerge *const *pretokens,
                                                  size_t size, Group &group) {
    constexpr size_t stride = places + 4;
    uint8_t bytes[stride * width];
    Unsigned offset{}; // bytes from merges; idle lanes take the first pretoken
    Vector sizes{};
    for (size_t w = 0; w < size; ++w) {
      const LongMerge &merge = *pretokens[w];
      __builtin_memcpy(bytes + w * stride, merge.bytes, merge.size);
      offset[w] = static_cast<uint32_t>(w * stride);
      sizes[w] = static_cast<int32_t>(merge.size);
    }
    Base::start(tables, bytes, offset, sizes, static_cast<int32_t>(pretokens[0]->size), group);
  }

  [[gnu::always_inline]] static inline void finish(const Group &group, LongMerge *const *pretokens,
                                                   size_t size) {
    const uint32_t *const first = reinterpret_cast<const uint32_t *>(group.symbols + 1);
    const uint32_t *const times = reinterpret_cast<const uint32_t *>(&group.merged);
    for (size_t w = 0; w < size; ++w) {
      LongMerge &merge = *pretokens[w];
      merge.count = merge.size - times[w];
      for (size_t i = 0; i < merge.count; ++i)
        merge.symbols[i] = first[w + i * width];
    }
  }

  template <bool listed>
  static void merge_sorted(const MergeTables &tables, LongMerge *const *sorted, size_t count) {
    for (size_t i = 0; i < count; i += 2 * width) {
      Group groups[2];
      const size_t first = count - i < width ? count - i : width;
      const size_t second = count - i - first < width ? count - i - first : width;
      start(tables, sorted + i, first, groups[0]);
      groups[1].active = second > 0;
      if (second > 0)
        start(tables, sorted + i + first, second, groups[1]);
      Base::template take_turns<listed>(tables, groups);
      finish(groups[0], sorted + i, first);
      if (second > 0)
        finish(groups[1], sorted + i + first, second);
    }
  }

  // See long_merge.hpp.
  static void merge(const MergeTables &tables, LongMerge *merges, size_t count, SweepScratch &scratch) {
    constexpr size_t most = 128;
    for (size_t start = 0; start < count; start += most) {
      const size_t stop = count - start < most ? count : start + most;
      LongMerge *sorted[most];
      size_t starts[places + 2] = {};
      for (size_t i = start; i < stop; ++i)
        if (merges[i].size <= places)
          ++starts[places - merges[i].size + 1];
      for (size_t i = 1; i < places + 2; ++i)
        starts[i] += starts[i - 1];
      const size_t lanes = starts[places + 1];
      for (size_t i = start; i < stop; ++i)
        if (merges[i].size <= places)
          sorted[starts[places - merges[i].size]++] = merges + i;
        else
          merge_each_by_sweeps<Simd>(tables, merges + i, 1, scratch);
      if (tables.products)
        merge_sorted<true>(tables, sorted, lanes);
      else
        merge_sorted<false>(tables, sorted, lanes);
    }
  }
};

} // namespace

} // namespace bpe
