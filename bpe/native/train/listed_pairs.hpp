// The next list position of each listed pair: (left, right) -> next, in one dependent load without a branch.
//
// Only cell base[left] ^ right can hold the pair. Bases are found by trial, for rows with many pairs first.
// There are two to four times as many cells as pairs, so few trials are needed and the table fits into the
// second-level cache. With open addressing, every second look-up is a branch misprediction.
#pragma once

#include "train/tracked_pairs.hpp"

#include <vector>

namespace bpe {

// The listed pairs of one left ID: [start, start + size) of all pairs, grouped by left ID.
struct ListedRow {
  size_t start, size;
};

// Sort rows by falling number of pairs, stably. Compiled once for all types of IDs and offsets.
inline void sort_rows(std::vector<ListedRow> &rows) {
  std::sort(rows.begin(), rows.end(), [](const ListedRow &a, const ListedRow &b) {
    return a.size != b.size ? a.size > b.size : a.start < b.start;
  });
}

template <class Id, class Place> class ListedPairs {
public:
  struct Cell {
    Id left; // `empty`, which is not an ID
    Place next;
  };

  // Pairs are added in any order, then placed. IDs must be below id_count.
  explicit ListedPairs(size_t id_count) : bases_(id_count, 0) {}
  void add(Id left, Id right, Place next) { rows_.push_back({left, right, next}); }
  void place() {
    std::sort(rows_.begin(), rows_.end(), [](const Listed &a, const Listed &b) { return a.left < b.left; });
    std::vector<ListedRow> rows;
    for (size_t i = 0; i < rows_.size(); i++) {
      if (i == 0 || rows_[i].left != rows_[i - 1].left)
        rows.push_back({i, 0});
      rows.back().size++;
    }
    sort_rows(rows);
    for (size_t cells = std::bit_ceil(std::max(bases_.size(), 2 * rows_.size() + 1));; cells *= 2) {
      cells_.assign(cells, Cell{empty, 0});
      if (std::all_of(rows.begin(), rows.end(), [&](const ListedRow &row) { return place(row); }))
        break;
    }
    std::vector<Listed>().swap(rows_);
  }

  // Return the cell of the pair if it is listed, otherwise a cell with another `left`. left and right may be
  // 0.
  Cell &cell_of(Id left, Id right) { return cells_[bases_[left] ^ right]; }
  std::vector<Cell> &cells() { return cells_; }

private:
  struct Listed {
    Id left, right;
    Place next;
  };

  bool place(const ListedRow &row) {
    const Listed *pairs = &rows_[row.start];
    const size_t mask = cells_.size() - 1;
    for (size_t tried = 0; tried < tries; tried++) {
      const size_t base = (tried_bases_ += 0x9E3779B1u) & mask;
      size_t fit = 0;
      while (fit < row.size && cells_[base ^ pairs[fit].right].left == empty)
        fit++;
      if (fit < row.size)
        continue;
      bases_[pairs[0].left] = static_cast<uint32_t>(base);
      for (size_t i = 0; i < row.size; i++)
        cells_[base ^ pairs[i].right] = {pairs[i].left, pairs[i].next};
      return true;
    }
    return false;
  }

  static constexpr Id empty = std::numeric_limits<Id>::max();
  static constexpr size_t tries = 10'000;
  std::vector<uint32_t> bases_;
  std::vector<Cell> cells_;
  std::vector<Listed> rows_;
  size_t tried_bases_ = 0;
};

} // namespace bpe
