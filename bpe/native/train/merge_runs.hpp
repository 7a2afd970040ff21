// Merge many sorted runs into their sum.
#pragma once

#include "train/sorted_run.hpp"

#include <vector>

namespace bpe {

// Return the sum of the runs, which are consumed, as runs that are each less than the next, using `threads`
// threads. Cost: two comparisons per record and doubling of the number of runs. Memory: the sum, and a few
// blocks per run and thread.
std::vector<SortedRun> merged_ranges(std::vector<SortedRun> &&runs, RunMemory &memory, unsigned threads);

} // namespace bpe
