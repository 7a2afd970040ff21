// Input and output of merging pretokens, many at once. Implemented by merge_by_lanes.hpp and
// merge_one_by_one.hpp.
//
// Plain data without shared symbols, since sources for several instruction sets include it.
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

// plus an offset before and after: 64 groups of 64 offsets
inline constexpr size_t max_rank_merge_bytes = 4094;

struct PretokenMerge {
  const uint8_t *bytes; // in; nothing after `size` bytes is read
  uint32_t size;        // in, 1 to max_rank_merge_bytes
  uint32_t count;       // out
  uint32_t *symbols;    // out; `count` symbols, with room for `size`
};

// Working memory of a thread, 57 KiB. Keeps no state between calls.
struct RankMergeScratch {
  alignas(64) uint32_t ranks[4096]; // rank of the pair that starts at the offset
  uint32_t symbols[4096];
  uint16_t next[4096], previous[4096], counts[4096]; // see merge_rank_at_a_time.hpp
  alignas(64) uint32_t least[64];                    // rank of each group
};

// Set count and symbols of merges[0, count), for any number of merges, to the result of merge_by_heap.hpp.
// Duplicates are merged separately. Larger batches are faster, and sizes may be mixed. The symbol arrays must
// not overlap.
using MergePretokens = void (*)(const MergeTables &tables, PretokenMerge *merges, size_t count,
                                RankMergeScratch &scratch);

} // namespace bpe
