// What merging several short pretokens at once works on; merge_short_by_lanes.hpp and
// merge_interleaved.hpp do it.
//
// Plain data without member functions of its own, since sources with other instruction sets include it.
#pragma once

#include "vocabulary/pair_table.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// A Vocabulary as plain arrays; valid while it lives.
struct MergeTables {
  static constexpr unsigned pair_symbol_shift = 22; // of BytePairs
  static_assert(PairTable::no_rank == (1u << pair_symbol_shift) - 1);

  const uint32_t *symbol_of_byte; // [256]
  // [left << 8 | right]: the rank of the two bytes' pair and, above it, the symbol of the left one, which is
  // so had in one load.
  const uint32_t *byte_pairs;
  bool pairs_hold_symbols;  // false: a byte's symbol is too large for that, and byte_pairs has none
  const uint32_t *products; // by rank; null: the rank is the product
  PairTable::View pairs;

  [[gnu::always_inline]] uint32_t rank_of_bytes(uint8_t left, uint8_t right) const {
    return byte_pairs[left << 8 | right] & PairTable::no_rank;
  }
};

inline constexpr size_t short_pretoken_bytes = 16;

struct ShortMerge {
  uint8_t bytes[16];    // in; `size` of them, 1 to 16, what is behind them does not count
  uint32_t size;        // in
  uint32_t count;       // out
  uint32_t symbols[16]; // out; `count` of them
};

inline constexpr size_t max_short_merges = 512;

// Fills in count and symbols of merges[0, count), count <= max_short_merges: each its bytes' symbols, as
// merge_by_heap.hpp gives them.
using MergeShortPretokens = void (*)(const MergeTables &tables, ShortMerge *merges, size_t count);

} // namespace bpe
