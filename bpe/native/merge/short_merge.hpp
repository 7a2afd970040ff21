// What merging several short pretokens at once works on; merge_short_by_lanes.hpp and
// merge_in_turns.hpp do it.
//
// Plain data without member functions of its own, since sources with other instruction sets include it.
#pragma once

#include "vocabulary/pair_table.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// A Vocabulary as plain arrays; valid while it lives.
struct MergeTables {
  const uint32_t *symbol_of_byte; // [256]
  const uint32_t *byte_ranks;     // [left << 8 | right]
  const uint32_t *products;       // by rank; null: the rank is the product
  PairTable::View pairs;
};

struct ShortMerge {
  uint8_t bytes[16];    // in; `size` of them, 1 to 16, and zeros
  uint32_t size;        // in
  uint32_t count;       // out
  uint32_t symbols[16]; // out; `count` of them
};

inline constexpr size_t max_short_merges = 128;

// Fills in count and symbols of merges[0, count), count <= max_short_merges: each its bytes' symbols, as
// merge_short gives them.
using MergeShortPretokens = void (*)(const MergeTables &tables, ShortMerge *merges, size_t count);

} // namespace bpe
