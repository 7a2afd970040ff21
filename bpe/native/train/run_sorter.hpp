// From the cells of a table to a sorted run.
#pragma once

#include "train/sorted_run.hpp"

#include <memory>
#include <vector>

namespace bpe {

// Sorts what a table of cells holds: a buffer that is used again.
class RunSorter {
public:
  // The run of the cells that are not empty, `used` of them and no two the same, in any order.
  SortedRun sorted(const std::vector<PretokenCell> &cells, size_t used, RunMemory &memory);
  size_t memory_bytes() const { return 2 * room_ * sizeof(PretokenRecord); }

private:
  std::unique_ptr<PretokenRecord[]> records_, spare_;
  size_t room_ = 0;
};

} // namespace bpe
