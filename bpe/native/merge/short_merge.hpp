// Input and output of merging several short pretokens at once. Implemented by merge_short_by_lanes.hpp and
// merge_interleaved.hpp.
//
// Plain data without member functions, since sources for several instruction sets include it.
#pragma once

#include "vocabulary/pair_table.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// A Vocabulary as plain arrays, valid as long as the Vocabulary.
struct MergeTables {
  static constexpr unsigned pair_symbol_shift = 22; // of BytePairs
  static_assert(PairTable::no_rank == (1u << pair_symbol_shift) - 1);

  const uint32_t *symbol_of_byte; // [256]
  // [left << 8 | right]: the rank of the pair and, above it, the symbol of the left byte, so that one load
  // reads both.
  const uint32_t *byte_pairs;
  bool pairs_hold_symbols;  // false if the symbol of a byte is too large, so byte_pairs has none
  const uint32_t *products; // by rank; null if the rank is the product
  PairTable::View pairs;

  [[gnu::always_inline]] uint32_t rank_of_bytes(uint8_t left, uint8_t right) const {
    return byte_pairs[left << 8 | right] & PairTable::no_rank;
  }
};

inline constexpr size_t short_pretoken_bytes = 16;

struct ShortMerge {
  uint8_t bytes[16];    // in; `size` bytes, 1 to 16; the rest is ignored
  uint32_t size;        // in
  uint32_t count;       // out
  uint32_t symbols[16]; // out; `count` symbols
};

inline constexpr size_t max_short_merges = 512;

// Set count and symbols of merges[0, count), count <= max_short_merges, to the result of merge_by_heap.hpp.
using MergeShortPretokens = void (*)(const MergeTables &tables, ShortMerge *merges, size_t count);

} // namespace bpe
