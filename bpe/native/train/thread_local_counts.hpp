// The pretokens counted by one thread since the last flush: a table of fixed size in its cache.
#pragma once

#include "common/prefetch.hpp"
#include "train/pretoken_key.hpp"

#include <algorithm>

namespace bpe {

class ThreadLocalCounts {
public:
  ThreadLocalCounts() : cells_(cell_count, PretokenCell{}) {}

  // Return whether `more` new pretokens are too many without a flush.
  bool is_full(size_t more) const {
    return used_ + more > cell_count / 4 * 3 || text_.used_bytes() > text_bytes * 3 / 4;
  }
  size_t size() const { return used_; }
  void prefetch(uint64_t hash) const { prefetch_to_write(&cells_[hash >> (64 - cell_bits)]); }

  void add(const PretokenKey &key, uint64_t count = 1) {
    size_t at = key.hash >> (64 - cell_bits);
    for (; cells_[at].high != 0; at = (at + 1) % cell_count) {
      if (cells_[at].holds(key)) {
        cells_[at].count += count;
        return;
      }
    }
    cells_[at] = {key.low, key.is_long() ? text_.store(key) : key.high, count};
    used_++;
  }

  const std::vector<PretokenCell> &cells() const { return cells_; }
  size_t text_bytes_held() const { return text_.memory_bytes(); } // of the long pretokens
  void clear() {
    std::fill(cells_.begin(), cells_.end(), PretokenCell{});
    text_.clear();
    used_ = 0;
  }

private:
  // 3 MiB, partly in the second-level cache. A smaller table is flushed more often. A larger one is slower on
  // prose and faster on rare words.
  static constexpr int cell_bits = 17;
  static constexpr size_t cell_count = size_t{1} << cell_bits;
  static constexpr size_t text_bytes = 1 << 20; // of long pretokens

  std::vector<PretokenCell> cells_;
  PretokenText text_{text_bytes};
  size_t used_ = 0;
};

} // namespace bpe
