// What merging longer pretokens works on, one or many at once; merge_rank_at_a_time.hpp and
// merge_long_by_lanes.hpp do it.
//
// Plain data without member functions of its own, since sources with other instruction sets include it.
#pragma once

#include "merge/short_merge.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

inline constexpr size_t max_rank_merge_bytes = 4094; // and a place before and behind: 64 groups of 64 places

// Working memory of a thread, 57 KiB. Holds nothing between calls.
struct RankMergeScratch {
  alignas(64) uint32_t ranks[4096]; // of the pair that starts at the place
  uint32_t symbols[4096];
  uint16_t next[4096], previous[4096], counts[4096]; // see merge_rank_at_a_time.hpp
  alignas(64) uint32_t least[64];                    // rank of each group
};

// The symbols of bytes[0, size), 1 <= size <= max_rank_merge_bytes, as merge_by_heap.hpp gives them, into
// symbols[0, result); symbols has room for `size`.
using MergeLongPretoken = size_t (*)(const MergeTables &tables, const uint8_t *bytes, size_t size,
                                     RankMergeScratch &scratch, uint32_t *symbols);

struct LongMerge {
  const uint8_t *bytes; // in; no byte behind `size` is read
  uint32_t size;        // in, 1 to max_rank_merge_bytes
  uint32_t count;       // out
  uint32_t *symbols;    // out; `count` of them, and room for `size`
};

// Fills in count and symbols of merges[0, count), any number of them: each its bytes' symbols, as
// merge_by_heap.hpp gives them. Equal ones are each merged. The more at once the better: those of up to
// max_rank_merge_bytes need not be of like size. Rooms for symbols must not overlap.
using MergeLongPretokens = void (*)(const MergeTables &tables, LongMerge *merges, size_t count,
                                    RankMergeScratch &scratch);

} // namespace bpe
