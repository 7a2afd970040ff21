// Pretokens and their counts as arrays: what a counter hands over.
#pragma once

#include "common/page_memory.hpp"
#include "train/sorted_run.hpp"

#include <vector>

namespace bpe {

// Pretoken i is bytes [i == 0 ? 0 : ends[i - 1], ends[i]); ascending as byte strings, none twice.
struct PretokenItems {
  size_t size = 0, byte_count = 0;
  PageMemory bytes, ends, counts; // uint8[byte_count], uint64[size], uint64[size]
};

// What runs hold, each less than the next. keep: otherwise their blocks are given back on the way.
PretokenItems items_of(std::vector<SortedRun> &runs, unsigned threads, bool keep);

} // namespace bpe
