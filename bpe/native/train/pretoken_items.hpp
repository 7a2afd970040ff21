// Pretokens and their counts as arrays: the result of a counter.
#pragma once

#include "common/page_memory.hpp"
#include "train/sorted_run.hpp"

#include <vector>

namespace bpe {

// Pretoken i is bytes [i == 0 ? 0 : ends[i - 1], ends[i]). Pretokens are ascending as byte strings and
// distinct.
struct PretokenItems {
  size_t size = 0, byte_count = 0;
  PageMemory bytes, ends, counts; // uint8[byte_count], uint64[size], uint64[size]
};

// Convert runs that are each less than the next, and release their blocks during the conversion.
PretokenItems items_of(std::vector<SortedRun> &runs, unsigned threads);

} // namespace bpe
