// Merge eight short pretokens at once by interleaving, with the result of merge_by_heap.hpp.
//
// A merge waits for a chain of loads (displacement, slot) and multiplications that leaves the CPU idle, so
// eight pretokens take one step each in turn. Finished pretokens idle until the last one ends, so the longest
// come first. The keys of a pretoken stay in registers: sixteen lanes of rank * 16 + lane, so that the least
// key identifies the lowest rank and, among equal ranks, the leftmost lane.
//
// Written with compiler vectors, so one source serves every instruction set. Included only by the sources of
// the variants, hence the unnamed namespace.
#pragma once

#include "merge/short_merge.hpp"

namespace bpe {

namespace {

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" // all functions that take or return vectors are inlined
#endif

using Lanes = int32_t __attribute__((vector_size(64)));
using Lanes8 = int32_t __attribute__((vector_size(32)));
using Lanes4 = int32_t __attribute__((vector_size(16)));

constexpr size_t turns = 8;
constexpr int32_t dead_key = 0x7FFFFFFF;
constexpr int32_t end_key = static_cast<int32_t>(PairTable::no_rank << 4); // this or more: no merge is left
constexpr Lanes lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

[[gnu::always_inline]] inline int32_t least_of(Lanes v) {
#if __has_builtin(__builtin_shufflevector)
  const Lanes8 low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  const Lanes8 high = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const Lanes8 a = low < high ? low : high;
  const Lanes4 a_low = __builtin_shufflevector(a, a, 0, 1, 2, 3);
  const Lanes4 a_high = __builtin_shufflevector(a, a, 4, 5, 6, 7);
  Lanes4 b = a_low < a_high ? a_low : a_high;
  const Lanes4 swapped = __builtin_shufflevector(b, b, 2, 3, 0, 1);
  b = b < swapped ? b : swapped;
  const Lanes4 crossed = __builtin_shufflevector(b, b, 1, 0, 3, 2);
  b = b < crossed ? b : crossed;
  return b[0];
#else // GCC 11
  int32_t least = v[0];
  for (int i = 1; i < 16; ++i)
    least = v[i] < least ? v[i] : least;
  return least;
#endif
}

// `lane` -1: none.
[[gnu::always_inline]] inline Lanes with_lane(Lanes v, int32_t lane, int32_t value) {
  return lane_numbers == lane ? (Lanes{} + value) : v;
}

struct Turn {
  Lanes keys;
  uint32_t alive;               // lanes at which a symbol starts
  uint32_t symbols[1 + 16 + 1]; // no_symbol before and after, so the ends need no special case
};

[[gnu::always_inline]] inline void start_turn(const MergeTables &tables, const ShortMerge &merge,
                                              Turn &turn) {
  alignas(64) int32_t keys[16];
  turn.symbols[0] = turn.symbols[17] = PairTable::no_symbol;
  for (uint32_t i = 0; i < 16; ++i)
    turn.symbols[1 + i] = tables.symbol_of_byte[merge.bytes[i]];
  for (uint32_t i = 0; i < 15; ++i)
    keys[i] = static_cast<int32_t>(tables.rank_of_bytes(merge.bytes[i], merge.bytes[i + 1]) << 4 | i);
  keys[15] = dead_key;
  Lanes all;
  __builtin_memcpy(&all, keys, sizeof all);
  turn.keys = lane_numbers < static_cast<int32_t>(merge.size) - 1 ? all : (Lanes{} + dead_key);
  turn.alive = (1u << merge.size) - 1;
}

// Perform one merge. Returns false and changes nothing if none is left.
template <bool listed> [[gnu::always_inline]] inline bool take_turn(const MergeTables &tables, Turn &turn) {
  const int32_t key = least_of(turn.keys);
  const bool active = key < end_key;
  const uint32_t place = static_cast<uint32_t>(key) & 15;
  const uint32_t rank = active ? static_cast<uint32_t>(key) >> 4 : 0;
  const uint32_t product = listed ? tables.products[rank] : rank;
  uint32_t *const symbol = turn.symbols + 1;

  uint32_t after = turn.alive & ~1u << place;
  const uint32_t right_bit = active ? after & -after : 0;
  after &= after - 1;
  const uint32_t next = static_cast<uint32_t>(__builtin_ctz(after | 1u << 16));
  const uint32_t before = turn.alive & ((1u << place) - 1);
  const int32_t previous = 31 - __builtin_clz(before << 1 | 1) - 1; // -1: none
  const int32_t left_rank = static_cast<int32_t>(tables.pairs.rank(symbol[previous], product));
  const int32_t right_rank = static_cast<int32_t>(tables.pairs.rank(product, symbol[next]));
  symbol[place] = active ? product : symbol[place];
  turn.alive &= ~right_bit;
  const int32_t right = active ? __builtin_ctz(right_bit | 1u << 16) : -1;
  const int32_t here = active ? static_cast<int32_t>(place) : -1;
  Lanes keys = with_lane(turn.keys, right, dead_key);
  keys = with_lane(keys, active ? previous : -1, left_rank << 4 | (previous & 15));
  turn.keys = with_lane(keys, here, right_rank << 4 | static_cast<int32_t>(place));
  return active;
}

[[gnu::always_inline]] inline void finish_turn(const Turn &turn, ShortMerge &merge) {
  uint32_t count = 0;
  for (uint32_t alive = turn.alive; alive; alive &= alive - 1)
    merge.symbols[count++] = turn.symbols[1 + __builtin_ctz(alive)];
  merge.count = count;
}

template <bool listed> void merge_group(const MergeTables &tables, ShortMerge **group, size_t size) {
  Turn turn[turns];
  for (size_t w = 0; w < size; ++w)
    start_turn(tables, *group[w], turn[w]);
  bool active;
  do {
    active = false;
    for (size_t w = 0; w < size; ++w)
      active |= take_turn<listed>(tables, turn[w]);
  } while (active);
  for (size_t w = 0; w < size; ++w)
    finish_turn(turn[w], *group[w]);
}

inline void sort_longest_first(ShortMerge *merges, size_t count, ShortMerge **sorted) {
  size_t starts[18] = {};
  for (size_t i = 0; i < count; ++i)
    ++starts[16 - merges[i].size + 1];
  for (size_t i = 1; i < 18; ++i)
    starts[i] += starts[i - 1];
  for (size_t i = 0; i < count; ++i)
    sorted[starts[16 - merges[i].size]++] = merges + i;
}

// See short_merge.hpp.
void merge_interleaved(const MergeTables &tables, ShortMerge *merges, size_t count) {
  ShortMerge *sorted[max_short_merges];
  sort_longest_first(merges, count, sorted);
  for (size_t i = 0; i < count; i += turns) {
    const size_t size = count - i < turns ? count - i : turns;
    if (tables.products)
      merge_group<true>(tables, sorted + i, size);
    else
      merge_group<false>(tables, sorted + i, size);
  }
}

} // namespace

} // namespace bpe
