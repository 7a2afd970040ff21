// Input and output of merging longer pretokens, one or many at once. Implemented by merge_rank_at_a_time.hpp
// and merge_long_by_lanes.hpp.
//
// Plain data without member functions, since sources for several instruction sets include it.
#pragma once

#include "merge/short_merge.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// plus an offset before and after: 64 groups of 64 offsets
inline constexpr size_t max_rank_merge_bytes = 4094;

// Working memory of a thread, 57 KiB. Keeps no state between calls.
struct RankMergeScratch {
  alignas(64) uint32_t ranks[4096]; // rank of the pair that starts at the offset
  uint32_t symbols[4096];
  uint16_t next[4096], previous[4096], counts[4096]; // see merge_rank_at_a_time.hpp
  alignas(64) uint32_t least[64];                    // rank of each group
};

// Merge bytes[0, size) into symbols[0, result), with the result of merge_by_heap.hpp. 1 <= size <=
// max_rank_merge_bytes; symbols has room for `size`.
using MergeLongPretoken = size_t (*)(const MergeTables &tables, const uint8_t *bytes, size_t size,
                                     RankMergeScratch &scratch, uint32_t *symbols);

struct LongMerge {
  const uint8_t *bytes; // in; nothing after `size` bytes is read
  uint32_t size;        // in, 1 to max_rank_merge_bytes
  uint32_t count;       // out
  uint32_t *symbols;    // out; `count` symbols, with room for `size`
};

// Set count and symbols of merges[0, count), for any number of merges, to the result of merge_by_heap.hpp.
// Duplicates are merged separately. Larger batches are faster, and sizes up to max_rank_merge_bytes may be
// mixed. The symbol arrays must not overlap.
using MergeLongPretokens = void (*)(const MergeTables &tables, LongMerge *merges, size_t count,
                                    RankMergeScratch &scratch);

} // namespace bpe
