// Merge pretokens of up to 64 bytes, one per lane: merge_by_lanes.hpp with the interface of long_merge.hpp.
//
// Longer pretokens, and batches too small to fill the lanes, use merge_rank_at_a_time.hpp one by one.
// Pretokens of up to 32 bytes use shorter lanes, so that the compiler unrolls the loops.
//
// Included only by sources of variants with gathers, hence the unnamed namespace.
#pragma once

#include "merge/long_merge.hpp"
#include "merge/merge_by_lanes.hpp"
#include "merge/merge_rank_at_a_time.hpp"

namespace bpe {

namespace {

template <class Lanes, class Simd> struct LongSideBySide : SideBySide<Lanes> {
  using Base = SideBySide<Lanes>;
  using Base::width;
  using typename Base::Unsigned;
  using typename Base::Vector;
  template <int32_t places> using Group = typename Base::template Group<places>;

  template <int32_t places>
  [[gnu::always_inline]] static inline void start(const MergeTables &tables, LongMerge *const *pretokens,
                                                  size_t size, Group<places> &group) {
    constexpr size_t stride = places + 4; // bytes after a pretoken may be read and are ignored
    uint8_t bytes[stride * width];
    Unsigned offset{}; // idle lanes use the first pretoken
    Vector sizes{};
    for (size_t w = 0; w < size; ++w) {
      const LongMerge &merge = *pretokens[w];
      __builtin_memcpy(bytes + w * stride, merge.bytes, merge.size);
      offset[w] = static_cast<uint32_t>(w * stride);
      sizes[w] = static_cast<int32_t>(merge.size);
    }
    const auto four_bytes = [&](int32_t i) {
      return (Unsigned)Lanes::gather_bytes(bytes + i, (Vector)offset);
    };
    Base::start(tables, four_bytes, sizes, static_cast<int32_t>(pretokens[0]->size), group);
  }

  template <int32_t places>
  [[gnu::always_inline]] static inline void finish(const Group<places> &group, LongMerge *const *pretokens,
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

  // Merge pretokens of up to `places` bytes, longest first.
  template <int32_t places>
  static void merge_sorted(const MergeTables &tables, LongMerge *const *sorted, size_t count,
                           RankMergeScratch &scratch) {
    if (count < Lanes::fewest_long)
      for (size_t i = 0; i < count; ++i)
        merge_each_rank_at_a_time<Simd>(tables, sorted[i], 1, scratch);
    else if (tables.products)
      Base::template merge_groups<true, places, LongSideBySide>(tables, sorted, count);
    else
      Base::template merge_groups<false, places, LongSideBySide>(tables, sorted, count);
  }

  // See long_merge.hpp.
  static void merge(const MergeTables &tables, LongMerge *merges, size_t count, RankMergeScratch &scratch) {
    constexpr uint32_t places = 64;
    constexpr size_t most = 256; // batch size for sorting
    for (; count > 0; merges += count < most ? count : most, count -= count < most ? count : most) {
      const size_t size = count < most ? count : most;
      size_t starts[places + 2] = {}; // start of pretokens of `places` bytes, of one less, ...
      for (size_t i = 0; i < size; ++i)
        if (merges[i].size <= places)
          ++starts[places - merges[i].size + 1];
        else
          merge_each_rank_at_a_time<Simd>(tables, merges + i, 1, scratch);
      for (size_t i = 1; i < places + 2; ++i)
        starts[i] += starts[i - 1];
      const size_t over_32 = starts[places - 32], in_lanes = starts[places + 1];
      LongMerge *sorted[most];
      for (size_t i = 0; i < size; ++i)
        if (merges[i].size <= places)
          sorted[starts[places - merges[i].size]++] = merges + i;
      merge_sorted<64>(tables, sorted, over_32, scratch);
      merge_sorted<32>(tables, sorted + over_32, in_lanes - over_32, scratch);
    }
  }
};

} // namespace

} // namespace bpe
