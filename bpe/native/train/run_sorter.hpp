// Convert the cells of a table to a sorted run.
#pragma once

#include "train/sorted_run.hpp"

#include <memory>
#include <vector>

namespace bpe {

// Sorts the contents of tables with a reused buffer.
class RunSorter {
public:
  // Return the run of the non-empty cells, `used` distinct ones in any order.
  SortedRun sorted(const std::vector<PretokenCell> &cells, size_t used, RunMemory &memory);
  size_t memory_bytes() const { return 2 * room_ * sizeof(PretokenRecord); }

private:
  std::unique_ptr<PretokenRecord[]> records_, spare_;
  size_t room_ = 0;
};

} // namespace bpe
