// Merge short pretokens, one per lane: merge_by_lanes.hpp with the interface of short_merge.hpp.
//
// Included only by sources of variants with gathers, hence the unnamed namespace.
#pragma once

#include "merge/merge_by_lanes.hpp"
#include "merge/merge_interleaved.hpp"

namespace bpe {

namespace {

template <class Lanes> struct ShortSideBySide : SideBySide<Lanes> {
  using Base = SideBySide<Lanes>;
  using typename Base::Unsigned;
  using typename Base::Vector;
  using Group = typename Base::template Group<16>;
  using Base::width;

  // Load and store four words per pretoken and transpose them, which is faster than a gather per word.
  [[gnu::always_inline]] static inline void start(const MergeTables &tables, ShortMerge *const *pretokens,
                                                  size_t size, Group &group) {
    const uint8_t *bytes[width];
    Vector sizes{};
    for (size_t w = 0; w < width; ++w) {
      bytes[w] = pretokens[w < size ? w : 0]->bytes; // idle lanes use the first pretoken
      sizes[w] = w < size ? static_cast<int32_t>(pretokens[w]->size) : 0;
    }
    Vector of_pretokens[4], four_bytes[4];
    for (size_t k = 0; k < 4; ++k)
      of_pretokens[k] = Lanes::load_fourths(bytes + k);
    Lanes::transpose4x4(of_pretokens, four_bytes);
    Base::start(
        tables, [&](int32_t i) { return (Unsigned)four_bytes[i / 4]; }, sizes,
        static_cast<int32_t>(pretokens[0]->size), group);
  }

  [[gnu::always_inline]] static inline void finish(const Group &group, ShortMerge *const *pretokens,
                                                   size_t size) {
    uint32_t most = 0;
    for (size_t w = 0; w < size; ++w) {
      ShortMerge &merge = *pretokens[w];
      merge.count = merge.size - static_cast<uint32_t>(group.merged[w]);
      most = merge.count > most ? merge.count : most;
    }
    for (uint32_t i = 0; i < most; i += 4) {
      Vector of_pretokens[4];
      Lanes::transpose4x4(group.symbols + 1 + i, of_pretokens);
      for (size_t w = 0; w < size; ++w)
        __builtin_memcpy(pretokens[w]->symbols + i,
                         reinterpret_cast<const uint8_t *>(&of_pretokens[w % 4]) + 16 * (w / 4), 16);
    }
  }

  // See short_merge.hpp.
  static void merge(const MergeTables &tables, ShortMerge *merges, size_t count) {
    if (count < Lanes::fewest)
      return merge_interleaved(tables, merges, count);
    ShortMerge *sorted[max_short_merges];
    sort_longest_first(merges, count, sorted);
    if (tables.products)
      Base::template merge_groups<true, 16, ShortSideBySide>(tables, sorted, count);
    else
      Base::template merge_groups<false, 16, ShortSideBySide>(tables, sorted, count);
  }
};

} // namespace

} // namespace bpe
