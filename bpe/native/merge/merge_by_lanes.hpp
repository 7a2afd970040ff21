// Merge pretokens of up to 64 bytes in parallel, one per vector lane, with the result of merge_by_heap.hpp.
//
//     sort the pretokens by size; take as many as there are lanes:
//         symbols[i], keys[i] = the symbols at offset i and rank * 64 + i of the pairs at i and i + 1
//         while the least key of any lane is a pair that merges:
//             product = the merged symbol; look up its pairs with the symbols before and after
//             move everything after the merge one offset forward
//
// 1. All pretokens that still merge are one offset shorter after a round, so each round processes one row
//    less. Pretokens of similar length are grouped, since the longest one of a group determines its time.
// 2. A look-up waits for memory twice, so the first gathers of both pairs, and of two groups of pretokens,
//    are issued before the second ones.
// 3. Longer pretokens, and batches too small to fill the lanes, use merge_one_by_one.hpp.
//
// Included only by sources of variants with gathers, hence the unnamed namespace. `Lanes` comes from
// lanes_avx512.hpp or lanes_avx2.hpp.
#pragma once

#include "merge/merge_one_by_one.hpp"

#include <cstring>

namespace bpe {

namespace {

template <class Lanes, class Simd> struct SideBySide {
  using Vector = typename Lanes::Vector;
  using Unsigned = typename Lanes::Unsigned;
  static constexpr size_t width = Lanes::width;
  static constexpr int32_t place_bits = 6, places = 1 << place_bits; // bytes of a pretoken
  static constexpr int32_t dead = 0x7FFFFFFF;
  static constexpr int32_t end_key = static_cast<int32_t>(PairTable::no_rank << place_bits);

  // PairTable::View::rank for each lane, in two steps that each wait for memory.
  struct Lookup {
    Unsigned left, right, hash, displacement;

    [[gnu::always_inline]] Lookup(const PairTable::View &pairs, Vector left, Vector right)
        : left((Unsigned)left), right((Unsigned)right) {
      hash = this->left * pairs.left_multiplier + this->right * pairs.right_multiplier;
      const Unsigned bucket = hash >> pairs.bucket_shift;
      // Two displacements per word, so nothing is read after the last one.
      const uint32_t *const words = reinterpret_cast<const uint32_t *>(pairs.displacements);
      const Unsigned two = (Unsigned)Lanes::gather(words, (Vector)(bucket >> 1));
      displacement = two >> ((bucket & 1) << 4) & 0xFFFF;
    }
    [[gnu::always_inline]] Vector rank(const PairTable::View &pairs) const {
      const Unsigned slot = ((hash ^ left << 11) * (displacement * 2 + 1)) >> pairs.slot_shift;
      Vector low, high; // lower ten bits of right and the rank; left and upper eleven bits of right
      Lanes::gather_halves(pairs.slots, (Vector)slot, low, high);
      const Unsigned found = (Unsigned)low ^ right << 22; // with other bits above if `right` differs
      const Unsigned none = Unsigned{} + PairTable::no_rank;
      return high == (Vector)(left << 11 | right >> 10) ? (Vector)(found < none ? found : none)
                                                        : (Vector)none;
    }
  };

  // Up to `width` pretokens of up to `places` bytes while they are merged. Offset p is symbols[p + 1]; there
  // is no_symbol before the first and after the last.
  struct Group {
    Vector symbols[places + 3], keys[places + 1];
    Vector least;   // least key of each lane
    Vector merged;  // number of merges of each lane
    int32_t length; // upper bound for the longest unfinished pretoken

    void be_empty() {
      keys[0] = Vector{} + dead;
      length = 0;
    }
  };

  [[gnu::always_inline]] static inline void start(const MergeTables &tables, PretokenMerge *const *pretokens,
                                                  size_t count, Group &group) {
    constexpr size_t stride = places + 4; // bytes after a pretoken may be read and are ignored
    uint8_t bytes[stride * width];
    Unsigned first_byte{}; // idle lanes use the first pretoken
    Vector sizes{};
    for (size_t w = 0; w < count; ++w) {
      std::memcpy(bytes + w * stride, pretokens[w]->bytes, pretokens[w]->size);
      first_byte[w] = static_cast<uint32_t>(w * stride);
      sizes[w] = static_cast<int32_t>(pretokens[w]->size);
    }
    const auto four_bytes = [&](int32_t i) {
      return (Unsigned)Lanes::gather_bytes(bytes + i, (Vector)first_byte);
    };
    const int32_t length = static_cast<int32_t>(pretokens[0]->size);
    const Vector no_symbol = Vector{} + static_cast<int32_t>(PairTable::no_symbol);
    group.symbols[0] = no_symbol;
    Unsigned four = four_bytes(0), next{};
    for (int32_t i = 0; i < length; ++i) {
      const int32_t k = i % 4;
      if (k == 3)
        next = i + 1 < length ? four_bytes(i + 1) : Unsigned{};
      const Unsigned byte = four >> 8 * k & 0xFF;
      const Unsigned behind = k < 3 ? four >> (8 * k + 8) & 0xFF : next & 0xFF;
      const Unsigned pair = (Unsigned)Lanes::gather(tables.byte_pairs, (Vector)(byte << 8 | behind));
      const Vector symbol = tables.pairs_hold_symbols ? (Vector)(pair >> tables.pair_symbol_shift)
                                                      : Lanes::gather(tables.symbol_of_byte, (Vector)byte);
      const Vector rank = (Vector)(pair & PairTable::no_rank);
      group.symbols[i + 1] = i < sizes ? symbol : no_symbol;
      group.keys[i] = i + 1 < sizes ? rank << place_bits | i : Vector{} + dead;
      if (k == 3)
        four = next;
    }
    group.symbols[length + 1] = group.symbols[length + 2] = no_symbol;
    group.keys[length] = Vector{} + dead;
    group.merged = Vector{};
    group.length = length;
  }

  // One merge of each pretoken that has one left, in two steps: find the merge, then apply it.
  struct NextMerge {
    Vector place, product; // offset 2 * places: none
    Lookup left, right;    // pairs of the product with its neighbours
  };

  // Find the least keys and return whether any pretoken of the group has a merge left.
  [[gnu::always_inline]] static inline bool find_least(Group &group) {
    group.least = group.keys[0];
    for (int32_t i = 1; i + 1 < group.length; ++i)
      group.least = group.keys[i] < group.least ? group.keys[i] : group.least;
    return Lanes::any(group.least < end_key);
  }

  template <bool listed>
  [[gnu::always_inline]] static inline NextMerge next_merge(const MergeTables &tables, Group &group) {
    const Vector *const symbols = group.symbols;
    const Vector least = group.least;
    const int32_t length = group.length;
    const Vector active = least < end_key;
    group.merged -= active;
    // an inactive lane does not change below
    const Vector place = active ? least & (places - 1) : Vector{} + 2 * places;
    const Vector rank = active ? least >> place_bits : Vector{};
    const Vector product = listed ? Lanes::gather(tables.products, rank) : rank;
    const Vector no_symbol = Vector{} + static_cast<int32_t>(PairTable::no_symbol);
    Vector before = no_symbol, after = no_symbol;
    for (int32_t i = 0; i + 1 < length; ++i) {
      const auto here = place == i;
      before = here ? symbols[i] : before;
      after = here ? symbols[i + 3] : after;
    }
    return {place, product, Lookup(tables.pairs, before, product), Lookup(tables.pairs, product, after)};
  }

  [[gnu::always_inline]] static inline void carry_out(const MergeTables &tables, const NextMerge &merge,
                                                      Group &group) {
    Vector *const symbols = group.symbols, *const keys = group.keys;
    const int32_t length = group.length;
    const Vector place = merge.place;
    const Vector left_key = merge.left.rank(tables.pairs) << place_bits | (place - 1);
    const Vector right_key = merge.right.rank(tables.pairs) << place_bits | place;
    for (int32_t i = 0; i + 1 < length; ++i) {
      Vector symbol = place < i ? symbols[i + 2] : symbols[i + 1];
      Vector key = place < i ? keys[i + 1] - 1 : keys[i];
      const auto here = place == i;
      symbol = here ? merge.product : symbol;
      key = here ? right_key : key;
      key = place == i + 1 ? left_key : key;
      symbols[i + 1] = symbol;
      keys[i] = key;
    }
    // Clear the last offset of the longest pretokens; it is already empty in others.
    const Vector no_symbol = Vector{} + static_cast<int32_t>(PairTable::no_symbol);
    symbols[length] = place < length ? no_symbol : symbols[length];
    --group.length; // active pretokens are all shorter now, and the others are finished
  }

  template <bool listed>
  [[gnu::always_inline]] static inline void take_turns(const MergeTables &tables, Group (&groups)[2]) {
    bool first = find_least(groups[0]), second = find_least(groups[1]);
    while (first && second) {
      const NextMerge a = next_merge<listed>(tables, groups[0]), b = next_merge<listed>(tables, groups[1]);
      carry_out(tables, a, groups[0]);
      carry_out(tables, b, groups[1]);
      first = find_least(groups[0]);
      second = find_least(groups[1]);
    }
    for (; first; first = find_least(groups[0]))
      carry_out(tables, next_merge<listed>(tables, groups[0]), groups[0]);
    for (; second; second = find_least(groups[1]))
      carry_out(tables, next_merge<listed>(tables, groups[1]), groups[1]);
  }

  [[gnu::always_inline]] static inline void finish(const Group &group, PretokenMerge *const *pretokens,
                                                   size_t count) {
    const uint32_t *const first = reinterpret_cast<const uint32_t *>(group.symbols + 1);
    const uint32_t *const merged = reinterpret_cast<const uint32_t *>(&group.merged);
    for (size_t w = 0; w < count; ++w) {
      PretokenMerge &merge = *pretokens[w];
      merge.count = merge.size - merged[w];
      for (size_t i = 0; i < merge.count; ++i)
        merge.symbols[i] = first[w + i * width];
    }
  }

  // Merge pretokens of up to `places` bytes, longest first, two groups at a time.
  template <bool listed>
  static void merge_sorted(const MergeTables &tables, PretokenMerge *const *sorted, size_t count) {
    for (size_t i = 0; i < count; i += 2 * width) {
      Group groups[2];
      const size_t first = count - i < width ? count - i : width;
      const size_t second = count - i - first < width ? count - i - first : width;
      start(tables, sorted + i, first, groups[0]);
      if (second > 0)
        start(tables, sorted + i + first, second, groups[1]);
      else
        groups[1].be_empty();
      take_turns<listed>(tables, groups);
      finish(groups[0], sorted + i, first);
      if (second > 0)
        finish(groups[1], sorted + i + first, second);
    }
  }

  // See MergePretokens.
  static void merge(const MergeTables &tables, PretokenMerge *merges, size_t count,
                    RankMergeScratch &scratch) {
    constexpr size_t batch = 512;
    for (; count > batch; merges += batch, count -= batch)
      merge(tables, merges, batch, scratch);
    size_t starts[places + 2] = {}; // start of pretokens of `places` bytes, of one less, ...
    for (size_t i = 0; i < count; ++i)
      if (merges[i].size <= places)
        ++starts[places - merges[i].size + 1];
      else
        merge_one_by_one<Simd>(tables, merges + i, 1, scratch);
    for (size_t i = 1; i < places + 2; ++i)
      starts[i] += starts[i - 1];
    const size_t in_lanes = starts[places + 1];
    PretokenMerge *sorted[batch];
    for (size_t i = 0; i < count; ++i)
      if (merges[i].size <= places)
        sorted[starts[places - merges[i].size]++] = merges + i;
    if (in_lanes < Lanes::fewest)
      for (size_t i = 0; i < in_lanes; ++i)
        merge_one_by_one<Simd>(tables, sorted[i], 1, scratch);
    else if (tables.products)
      merge_sorted<true>(tables, sorted, in_lanes);
    else
      merge_sorted<false>(tables, sorted, in_lanes);
  }
};

} // namespace

} // namespace bpe
