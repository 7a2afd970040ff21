// What merging one longer pretoken works on; merge_by_sweeps.hpp does it.
//
// Plain data without member functions of its own, since sources with other instruction sets include it.
#pragma once

#include "short_merge.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

inline constexpr size_t max_sweep_bytes = 4094; // and a place before and behind: 64 groups of 64 places

// Working memory of a thread, 49 KiB. Holds nothing between calls.
struct SweepScratch {
  alignas(64) uint32_t ranks[4096]; // of the pair that starts at the place
  uint32_t symbols[4096];
  uint16_t next[4096], previous[4096];
  alignas(64) uint32_t least[64]; // rank of each group
};

// The symbols of bytes[0, size), 1 <= size <= max_sweep_bytes, as merge_short and merge_long give them, into
// symbols[0, result); symbols has room for `size`.
using MergeLongPretoken = size_t (*)(const MergeTables &tables, const uint8_t *bytes, size_t size,
                                     SweepScratch &scratch, uint32_t *symbols);

} // namespace bpe
