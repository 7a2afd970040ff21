// Short pretokens -> symbols, side by side: what merge_short does, a pretoken in each lane of a vector.
//
// Place i of all pretokens is one vector of symbols and one of keys, rank * 16 + place, the rank being that
// of the pair at i and i + 1 (see merge_pretoken.hpp). A round finds each lane's lowest key by vertical
// minima, looks its two new pairs up by gathers, and moves what is behind the merge one place forward. Two
// groups take rounds in turns, so that one works while the other waits for its gathers. Pretokens of like
// length stand side by side, since the longest of a group decides. New words of 9 bytes, 64 at once: with
// AVX-512 105 ns each in turns (merge_in_turns.hpp), 41 side by side; with AVX2 420 and 78.
//
// Included only by the sources of the variants that have gathers, hence the unnamed namespace. `Lanes` is of
// lanes_avx512.hpp or lanes_avx2.hpp.
#pragma once

#include "merge_in_turns.hpp"

namespace bpe {

namespace {

template <class Lanes> struct SideBySide {
  using Vector = typename Lanes::Vector;
  using Unsigned = typename Lanes::Unsigned;
  static constexpr size_t width = Lanes::width;

  // PairTable::View::rank of each lane.
  [[gnu::always_inline]] static inline Vector ranks(const PairTable::View &pairs, Vector left, Vector right) {
    const Unsigned l = (Unsigned)left, r = (Unsigned)right;
    const Unsigned hash = l * pairs.left_multiplier + r * pairs.right_multiplier;
    const Unsigned bucket = hash >> pairs.bucket_shift;
    // Two displacements a word: no read behind the last one.
    const uint32_t *const words = reinterpret_cast<const uint32_t *>(pairs.displacements);
    const Unsigned two = (Unsigned)Lanes::gather(words, (Vector)(bucket >> 1));
    const Unsigned displacement = two >> ((bucket & 1) << 4) & 0xFFFF;
    const Unsigned slot = ((hash ^ l << 11) * (displacement * 2 + 1)) >> pairs.slot_shift;
    Vector low, high; // right's lower ten bits and the rank; left and right's upper eleven
    Lanes::gather_halves(pairs.slots, (Vector)slot, low, high);
    const Unsigned rank = (Unsigned)low ^ r << 22; // with other bits on top if `right` is another
    const Unsigned none = Unsigned{} + PairTable::no_rank;
    const Unsigned found = rank < none ? rank : none;
    return high == (Vector)(l << 11 | r >> 10) ? (Vector)found : (Vector)none;
  }

  // Up to `width` pretokens on their way. Place p is symbols[p + 1]; no_symbol before the first and behind
  // the last.
  struct Group {
    Vector symbols[19], keys[17];
    Vector merged;  // how often
    int32_t length; // of the longest at first
    bool active;
  };

  [[gnu::always_inline]] static inline void start(const MergeTables &tables, const ShortMerge *merges,
                                                  ShortMerge *const *pretokens, size_t size, Group &group) {
    const int32_t length = static_cast<int32_t>(pretokens[0]->size);
    Unsigned offset{}; // bytes from merges; idle lanes take the first pretoken
    Vector sizes{};
    for (size_t w = 0; w < size; ++w) {
      offset[w] = static_cast<uint32_t>(reinterpret_cast<const uint8_t *>(pretokens[w]) -
                                        reinterpret_cast<const uint8_t *>(merges));
      sizes[w] = static_cast<int32_t>(pretokens[w]->size);
    }
    const Vector no_symbol = Vector{} + static_cast<int32_t>(PairTable::no_symbol);
    group.symbols[0] = no_symbol;
    Unsigned three{}; // bytes from place i on
    for (int32_t i = 0; i < length; ++i) {
      // Four bytes from each place, which behind the last are those of `size`.
      three = i % 3 == 0 ? (Unsigned)Lanes::gather_bytes(merges->bytes + i, (Vector)offset) : three >> 8;
      const Unsigned byte = three & 0xFF, two = byte << 8 | (three >> 8 & 0xFF);
      const Vector symbol = Lanes::gather(tables.symbol_of_byte, (Vector)byte);
      const Vector rank = Lanes::gather(tables.byte_ranks, (Vector)two);
      group.symbols[i + 1] = i < sizes ? symbol : no_symbol;
      group.keys[i] = i + 1 < sizes ? rank << 4 | i : Vector{} + dead_key;
    }
    group.symbols[length + 1] = group.symbols[length + 2] = no_symbol;
    group.keys[length] = Vector{} + dead_key;
    group.merged = Vector{};
    group.length = length;
    group.active = true;
  }

  // One merge of each pretoken that has one left.
  template <bool listed>
  [[gnu::always_inline]] static inline void step(const MergeTables &tables, Group &group) {
    Vector *const symbols = group.symbols, *const keys = group.keys;
    const int32_t length = group.length;
    const Vector no_symbol = Vector{} + static_cast<int32_t>(PairTable::no_symbol);
    Vector least = keys[0];
    for (int32_t i = 1; i + 1 < length; ++i)
      least = keys[i] < least ? keys[i] : least;
    const Vector active = least < end_key;
    group.active = Lanes::any(active);
    if (!group.active)
      return;
    group.merged -= active;
    const Vector place = active ? least & 15 : Vector{} + 32; // 32: nothing below changes
    const Vector rank = active ? least >> 4 : Vector{};
    const Vector product = listed ? Lanes::gather(tables.products, rank) : rank;
    Vector before = no_symbol, after = no_symbol;
    for (int32_t i = 0; i + 1 < length; ++i) {
      const auto here = place == i;
      before = here ? symbols[i] : before;
      after = here ? symbols[i + 3] : after;
    }
    const Vector left_key = ranks(tables.pairs, before, product) << 4 | (place - 1);
    const Vector right_key = ranks(tables.pairs, product, after) << 4 | place;
    for (int32_t i = 0; i + 1 < length; ++i) {
      Vector symbol = place < i ? symbols[i + 2] : symbols[i + 1];
      Vector key = place < i ? keys[i + 1] - 1 : keys[i];
      const auto here = place == i;
      symbol = here ? product : symbol;
      key = here ? right_key : key;
      key = place == i + 1 ? left_key : key;
      symbols[i + 1] = symbol;
      keys[i] = key;
    }
    // The last place of the longest empties; of others it was empty.
    symbols[length] = place < length ? no_symbol : symbols[length];
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
    // Two groups in turns: one's gathers are waited for while the other works.
    for (size_t i = 0; i < count; i += 2 * width) {
      Group groups[2];
      const size_t first = count - i < width ? count - i : width;
      const size_t second = count - i - first < width ? count - i - first : width;
      start(tables, merges, sorted + i, first, groups[0]);
      groups[1].active = second > 0;
      if (second > 0)
        start(tables, merges, sorted + i + first, second, groups[1]);
      while (groups[0].active || groups[1].active) {
        if (groups[0].active)
          step<listed>(tables, groups[0]);
        if (groups[1].active)
          step<listed>(tables, groups[1]);
      }
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
