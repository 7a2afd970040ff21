// Short pretokens -> symbols, a lane each: merge_by_lanes.hpp behind the contract of short_merge.hpp.
//
// New words of 9 bytes, 64 at once: with AVX-512 105 ns each in turns (merge_in_turns.hpp), 34 side by side;
// with AVX2 420 and 56.
//
// Included only by the sources of the variants that have gathers, hence the unnamed namespace.
#pragma once

#include "merge/merge_by_lanes.hpp"
#include "merge/merge_in_turns.hpp"

namespace bpe {

namespace {

template <class Lanes> struct ShortSideBySide : SideBySide<Lanes> {
  using Base = SideBySide<Lanes>;
  using typename Base::Unsigned;
  using typename Base::Vector;
  using Group = typename Base::template Group<16>;
  using Base::width;

  [[gnu::always_inline]] static inline void start(const MergeTables &tables, const ShortMerge *merges,
                                                  ShortMerge *const *pretokens, size_t size, Group &group) {
    Unsigned offset{}; // bytes from merges; idle lanes take the first pretoken
    Vector sizes{};
    for (size_t w = 0; w < size; ++w) {
      offset[w] = static_cast<uint32_t>(reinterpret_cast<const uint8_t *>(pretokens[w]) -
                                        reinterpret_cast<const uint8_t *>(merges));
      sizes[w] = static_cast<int32_t>(pretokens[w]->size);
    }
    // Behind the last byte is `size`.
    Base::start(tables, merges->bytes, offset, sizes, static_cast<int32_t>(pretokens[0]->size), group);
  }

  [[gnu::always_inline]] static inline void finish(const Group &group, ShortMerge *const *pretokens,
                                                   size_t size) {
    const uint32_t *const first = reinterpret_cast<const uint32_t *>(group.symbols + 1);
    const uint32_t *const times = reinterpret_cast<const uint32_t *>(&group.merged);
    for (size_t w = 0; w < size; ++w) {
      ShortMerge &merge = *pretokens[w];
      merge.count = merge.size - times[w];
      Lanes::store_column(first + w, merge.symbols);
    }
  }

  template <bool listed>
  static void merge_sorted(const MergeTables &tables, const ShortMerge *merges, ShortMerge *const *sorted,
                           size_t count) {
    for (size_t i = 0; i < count; i += 2 * width) {
      Group groups[2];
      const size_t first = count - i < width ? count - i : width;
      const size_t second = count - i - first < width ? count - i - first : width;
      start(tables, merges, sorted + i, first, groups[0]);
      groups[1].active = second > 0;
      if (second > 0)
        start(tables, merges, sorted + i + first, second, groups[1]);
      Base::template take_turns<listed>(tables, groups);
      finish(groups[0], sorted + i, first);
      if (second > 0)
        finish(groups[1], sorted + i + first, second);
    }
  }

  // See short_merge.hpp.
  static void merge(const MergeTables &tables, ShortMerge *merges, size_t count) {
    if (count < Lanes::fewest)
      return merge_in_turns(tables, merges, count);
    ShortMerge *sorted[max_short_merges];
    sort_longest_first(merges, count, sorted);
    if (tables.products)
      merge_sorted<true>(tables, merges, sorted, count);
    else
      merge_sorted<false>(tables, merges, sorted, count);
  }
};

} // namespace

} // namespace bpe
