// One pretoken of up to 4 KiB -> symbols: every place of the lowest rank at once.
//
// A place is where a byte was; a symbol keeps the place of its first byte. `ranks` has the rank of the pair
// that starts at each place. A round finds the lowest rank, by the least of each group of 64 places, and
// merges all its places from left to right. That is the order "lowest rank, leftmost first" as long as no
// merge makes a pair of a lower rank possible (vocabularies whose ranks do not grow with their merges have
// such); then the round ends at once. Equal ranks cannot come up anew: the new pairs hold the new symbol.
//
// Runs in long pretokens ("-----", spaces) take a few rounds whatever their length, while a heap pays for
// each of their merges.
//
// Included only by the sources of the variants, hence the unnamed namespace.
#pragma once

#include "merge/long_merge.hpp"

namespace bpe {

namespace {

constexpr size_t rank_group = 64; // places; Simd::least_of_64 and equal_in_64 work on one

template <class Simd, bool listed>
size_t merge_ranks(const MergeTables &tables, const uint8_t *bytes, size_t size, RankMergeScratch &scratch,
                   uint32_t *out) {
  constexpr uint32_t none = PairTable::no_rank;
  uint32_t *const ranks = scratch.ranks, *const symbols = scratch.symbols, *const least = scratch.least;
  uint16_t *const next = scratch.next, *const previous = scratch.previous;
  // Byte i is at place i + 1; places 0 and size + 1 merge with nothing, so the ends need no case of their
  // own.
  const size_t stop = size + 1, groups = stop / rank_group + 1;
  symbols[0] = symbols[stop] = PairTable::no_symbol;
  ranks[0] = none;
  for (size_t i = 0; i < size; ++i) {
    symbols[i + 1] = tables.symbol_of_byte[bytes[i]];
    next[i + 1] = static_cast<uint16_t>(i + 2);
    previous[i + 1] = static_cast<uint16_t>(i);
  }
  previous[stop] = static_cast<uint16_t>(size);
  for (size_t i = 0; i + 1 < size; ++i)
    ranks[i + 1] = tables.rank_of_bytes(bytes[i], bytes[i + 1]);
  for (size_t place = size; place < groups * rank_group; ++place)
    ranks[place] = none;
  for (size_t group = 0; group < groups; ++group)
    least[group] = Simd::least_of_64(ranks + group * rank_group);

  for (;;) {
    uint32_t lowest = least[0];
    for (size_t group = 1; group < groups; ++group)
      lowest = least[group] < lowest ? least[group] : lowest;
    if (lowest == none)
      break;
    const uint32_t product = listed ? tables.products[lowest] : lowest;
    uint64_t changed = 0; // groups
    bool lower = false;
    for (size_t group = 0; group < groups && !lower; ++group) {
      if (least[group] != lowest)
        continue;
      const size_t base = group * rank_group;
      changed |= uint64_t{1} << group;
      for (uint64_t places = Simd::equal_in_64(ranks + base, lowest); places != 0; places &= places - 1) {
        const size_t place = base + static_cast<size_t>(__builtin_ctzll(places));
        if (ranks[place] != lowest) // its left part went into the merge before
          continue;
        const size_t right = next[place], after = next[right], before = previous[place];
        const uint32_t right_rank = tables.pairs.rank(product, symbols[after]);
        const uint32_t left_rank = tables.pairs.rank(symbols[before], product);
        symbols[place] = product;
        next[place] = static_cast<uint16_t>(after);
        previous[after] = static_cast<uint16_t>(place);
        ranks[right] = none;
        ranks[place] = right_rank;
        ranks[before] = left_rank;
        changed |= uint64_t{1} << (right / rank_group) | uint64_t{1} << (before / rank_group);
        if (right_rank < lowest || left_rank < lowest) {
          lower = true;
          break;
        }
      }
    }
    for (; changed != 0; changed &= changed - 1) {
      const size_t group = static_cast<size_t>(__builtin_ctzll(changed));
      least[group] = Simd::least_of_64(ranks + group * rank_group);
    }
  }
  size_t count = 0;
  for (size_t place = 1; place != stop; place = next[place])
    out[count++] = symbols[place];
  return count;
}

// See long_merge.hpp.
template <class Simd>
size_t merge_rank_at_a_time(const MergeTables &tables, const uint8_t *bytes, size_t size,
                            RankMergeScratch &scratch, uint32_t *symbols) {
  return tables.products ? merge_ranks<Simd, true>(tables, bytes, size, scratch, symbols)
                         : merge_ranks<Simd, false>(tables, bytes, size, scratch, symbols);
}

// See long_merge.hpp.
template <class Simd>
void merge_each_rank_at_a_time(const MergeTables &tables, LongMerge *merges, size_t count,
                               RankMergeScratch &scratch) {
  for (size_t i = 0; i < count; ++i) {
    LongMerge &merge = merges[i];
    merge.count = static_cast<uint32_t>(
        merge_rank_at_a_time<Simd>(tables, merge.bytes, merge.size, scratch, merge.symbols));
  }
}

} // namespace

} // namespace bpe
