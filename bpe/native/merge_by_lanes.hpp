// Short pretokens -> symbols, side by side: what merge_short does, a pretoken in each lane of a vector.
//
// Place i of all pretokens is one vector of symbols and one of keys, rank * 16 + place, the rank being that of
// the pair at i and i + 1 (see merge_pretoken.hpp). A round finds each lane's lowest key by vertical minima,
// looks its two new pairs up by gathers, and moves what is behind the merge one place forward. A round costs
// about what one pretoken's merge costs in turns (merge_in_turns.hpp), and does sixteen. Pretokens of like
// length should stand side by side, since the longest of a group decides.
//
// Included only by the sources of the variants that have gathers, hence the unnamed namespace. `Lanes` is of
// lanes_avx512.hpp or lanes_avx2.hpp.
#pragma once

#include "merge_in_turns.hpp"

namespace bpe {

namespace {

// Fewer leave most lanes idle and are quicker in turns.
constexpr size_t fewest_side_by_side = 4;

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

  template <bool listed>
  static void merge_group(const MergeTables &tables, ShortMerge *const *group, size_t size) {
    // Place p is symbols[p + 1]; no_symbol before the first and behind the last.
    Vector symbols[19], keys[17];
    const size_t length = group[0]->size; // the longest
    const Vector no_symbol = Vector{} + static_cast<int32_t>(PairTable::no_symbol);
    for (size_t i = 0; i < length + 3; ++i)
      symbols[i] = no_symbol;
    for (size_t i = 0; i < length + 1; ++i)
      keys[i] = Vector{} + dead_key;
    {
      int32_t *const symbol = reinterpret_cast<int32_t *>(symbols + 1), *const key = reinterpret_cast<int32_t *>(keys);
      for (size_t w = 0; w < size; ++w) {
        const ShortMerge &merge = *group[w];
        for (size_t i = 0; i < merge.size; ++i)
          symbol[i * width + w] = static_cast<int32_t>(tables.symbol_of_byte[merge.bytes[i]]);
        for (size_t i = 0; i + 1 < merge.size; ++i)
          key[i * width + w] =
              static_cast<int32_t>(tables.byte_ranks[merge.bytes[i] << 8 | merge.bytes[i + 1]] << 4 | i);
      }
    }
    Vector merged{}; // how often
    for (;;) {
      Vector least = keys[0];
      for (size_t i = 1; i + 1 < length; ++i)
        least = keys[i] < least ? keys[i] : least;
      const Vector active = least < end_key;
      if (!Lanes::any(active))
        break;
      merged -= active;
      const Vector place = active ? least & 15 : Vector{} + 32; // 32: nothing below changes
      const Vector rank = active ? least >> 4 : Vector{};
      const Vector product = listed ? Lanes::gather(tables.products, rank) : rank;
      Vector before = no_symbol, after = no_symbol;
      for (int32_t i = 0; i + 1 < static_cast<int32_t>(length); ++i) {
        const auto here = place == i;
        before = here ? symbols[i] : before;
        after = here ? symbols[i + 3] : after;
      }
      const Vector left_key = ranks(tables.pairs, before, product) << 4 | (place - 1);
      const Vector right_key = ranks(tables.pairs, product, after) << 4 | place;
      for (int32_t i = 0; i + 1 < static_cast<int32_t>(length); ++i) {
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
      symbols[length] = place < static_cast<int32_t>(length) ? no_symbol : symbols[length];
    }
    const uint32_t *const symbol = reinterpret_cast<const uint32_t *>(symbols + 1);
    const uint32_t *const times = reinterpret_cast<const uint32_t *>(&merged);
    for (size_t w = 0; w < size; ++w) {
      ShortMerge &merge = *group[w];
      merge.count = merge.size - times[w];
      for (size_t i = 0; i < merge.count; ++i)
        merge.symbols[i] = symbol[i * width + w];
    }
  }

  // See short_merge.hpp.
  static void merge(const MergeTables &tables, ShortMerge *merges, size_t count) {
    if (count < fewest_side_by_side)
      return merge_in_turns(tables, merges, count);
    ShortMerge *sorted[max_short_merges];
    sort_longest_first(merges, count, sorted);
    for (size_t i = 0; i < count; i += width) {
      const size_t size = count - i < width ? count - i : width;
      if (tables.products)
        merge_group<true>(tables, sorted + i, size);
      else
        merge_group<false>(tables, sorted + i, size);
    }
  }
};

} // namespace

} // namespace bpe
