// Merge pretokens into symbols in parallel, one per vector lane, with the result of merge_by_heap.hpp.
//
// Offset i of all pretokens is one vector of symbols and one of keys, rank * places + offset, with the rank
// of the pair at i and i + 1. A round finds the lowest key of each lane by vertical minima, looks up its two
// new pairs with gathers, and moves everything after the merge one offset forward. All pretokens that still
// merge are then one offset shorter, so each round processes one row less. A look-up waits for memory twice,
// so the first gathers of both pairs, and of two groups of pretokens, are issued before the second ones.
// Pretokens of similar length are grouped, since the longest one of a group determines its time.
// merge_short_by_lanes.hpp and merge_long_by_lanes.hpp supply the pretokens.
//
// Included only by sources of variants with gathers, hence the unnamed namespace. `Lanes` comes from
// lanes_avx512.hpp or lanes_avx2.hpp.
#pragma once

#include "merge/short_merge.hpp"

namespace bpe {

namespace {

template <class Lanes> struct SideBySide {
  using Vector = typename Lanes::Vector;
  using Unsigned = typename Lanes::Unsigned;
  static constexpr size_t width = Lanes::width;
  static constexpr int32_t dead = 0x7FFFFFFF;

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
  template <int32_t places> struct Group {
    static constexpr int32_t bits = places == 16 ? 4 : places == 32 ? 5 : 6;
    static constexpr int32_t end_key = static_cast<int32_t>(PairTable::no_rank << bits);
    Vector symbols[places + 3], keys[places + 1];
    Vector least;   // least key of each lane
    Vector merged;  // number of merges of each lane
    int32_t length; // upper bound for the longest unfinished pretoken

    void be_empty() {
      keys[0] = Vector{} + dead;
      length = 0;
    }
  };

  // four_bytes(i) returns the bytes of each lane from offset i, a multiple of four. A lane has sizes[w] <=
  // length bytes; bytes after them are ignored.
  template <int32_t places, class FourBytes>
  [[gnu::always_inline]] static inline void start(const MergeTables &tables, FourBytes four_bytes,
                                                  Vector sizes, int32_t length, Group<places> &group) {
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
      group.keys[i] = i + 1 < sizes ? rank << group.bits | i : Vector{} + dead;
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
  template <int32_t places> [[gnu::always_inline]] static inline bool find_least(Group<places> &group) {
    group.least = group.keys[0];
    for (int32_t i = 1; i + 1 < group.length; ++i)
      group.least = group.keys[i] < group.least ? group.keys[i] : group.least;
    return Lanes::any(group.least < group.end_key);
  }

  template <bool listed, int32_t places>
  [[gnu::always_inline]] static inline NextMerge next_merge(const MergeTables &tables, Group<places> &group) {
    const Vector *const symbols = group.symbols;
    const Vector least = group.least;
    const int32_t length = group.length;
    const Vector active = least < group.end_key;
    group.merged -= active;
    // an inactive lane does not change below
    const Vector place = active ? least & (places - 1) : Vector{} + 2 * places;
    const Vector rank = active ? least >> group.bits : Vector{};
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

  template <int32_t places>
  [[gnu::always_inline]] static inline void carry_out(const MergeTables &tables, const NextMerge &merge,
                                                      Group<places> &group) {
    Vector *const symbols = group.symbols, *const keys = group.keys;
    const int32_t length = group.length;
    const Vector place = merge.place;
    const Vector left_key = merge.left.rank(tables.pairs) << group.bits | (place - 1);
    const Vector right_key = merge.right.rank(tables.pairs) << group.bits | place;
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

  template <bool listed, int32_t places>
  [[gnu::always_inline]] static inline void take_turns(const MergeTables &tables,
                                                       Group<places> (&groups)[2]) {
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

  // Merge all pretokens, longest first, two groups at a time. `Pretokens` starts and finishes a group.
  template <bool listed, int32_t places, class Pretokens, class Merge>
  static void merge_groups(const MergeTables &tables, Merge *const *sorted, size_t count) {
    for (size_t i = 0; i < count; i += 2 * width) {
      Group<places> groups[2];
      const size_t first = count - i < width ? count - i : width;
      const size_t second = count - i - first < width ? count - i - first : width;
      Pretokens::start(tables, sorted + i, first, groups[0]);
      if (second > 0)
        Pretokens::start(tables, sorted + i + first, second, groups[1]);
      else
        groups[1].be_empty();
      take_turns<listed>(tables, groups);
      Pretokens::finish(groups[0], sorted + i, first);
      if (second > 0)
        Pretokens::finish(groups[1], sorted + i + first, second);
    }
  }
};

} // namespace

} // namespace bpe
