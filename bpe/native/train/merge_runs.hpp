// Many sorted runs into their sum.
#pragma once

#include "train/sorted_run.hpp"

#include <vector>

namespace bpe {

// The sum of the runs, which are used up, in runs each less than the next, by so many
// threads. Cost: a comparison for each record and doubling of the number of runs; a few blocks of memory for
// each run and thread, beside what the sum takes.
std::vector<SortedRun> merged_ranges(std::vector<SortedRun> &&runs, RunMemory &memory, unsigned threads);

} // namespace bpe
