// Distinct pretokens with their counts, in segments that split in two when they are full.
//
// A segment holds the hashes that start with some bits, in open addressing over 2,048 cells: a split works in
// the cache and moves half of the cells into fresh memory, where a table that doubles would read and write
// all of it far from the cache, into pages the system has to clear first. The directory says which segment a
// hash is in. Walking the segments in their order goes through the hashes in ascending order, nearly.
#pragma once

#include "page_memory.hpp"
#include "prefetch.hpp"
#include "pretoken_key.hpp"

#include <mutex>

namespace bpe {

// Zeroed cells for many tables, from memory in large pages.
class CellMemory {
public:
  static constexpr size_t segment_cells = 2048;

  // segment_cells cells; they live as long as this does, or until clear().
  PretokenCell *take() {
    std::lock_guard lock(mutex_);
    if (left_ == 0) {
      slabs_.emplace_back(slab_segments * segment_cells * sizeof(PretokenCell));
      next_ = static_cast<PretokenCell *>(slabs_.back().data());
      left_ = slab_segments;
    }
    left_--;
    taken_++;
    return std::exchange(next_, next_ + segment_cells);
  }
  size_t memory_bytes() const { return taken_ * segment_cells * sizeof(PretokenCell); }
  void clear() {
    slabs_.clear();
    left_ = taken_ = 0;
  }

private:
  static constexpr size_t slab_segments = 256; // 12 MiB; what is not taken is not resident
  std::mutex mutex_;
  std::vector<PageMemory> slabs_;
  PretokenCell *next_ = nullptr;
  size_t left_ = 0, taken_ = 0;
};

class PretokenTable {
public:
  // skipped_bits: the high bits of the hash that all keys of this table share.
  explicit PretokenTable(int skipped_bits) : skipped_bits_(skipped_bits) {}

  size_t size() const { return size_; }

  void prefetch(uint64_t hash) const {
    if (segments_.empty())
      return;
    // A cell and those after it are rarely in one line.
    const PretokenCell *cell = cell_of(segments_[directory_[slot_of(hash)]], hash);
    prefetch_to_write(cell);
    prefetch_to_write(reinterpret_cast<const char *>(cell) + 64);
  }

  // The cells and the bytes of a long pretoken that is new come from `memory` and `text`.
  void add(const PretokenKey &key, uint64_t count, CellMemory &memory, PretokenText &text) {
    if (segments_.empty()) {
      segments_.push_back({memory.take(), 0, 0, segment_bits});
      directory_.push_back(0);
    }
    for (;;) {
      const uint32_t number = directory_[slot_of(key.hash)];
      Segment &segment = segments_[number];
      PretokenCell *cell = cell_of(segment, key.hash);
      for (; cell->high != 0; cell = after(segment, cell)) {
        if (cell->holds(key)) {
          cell->count += count;
          return;
        }
      }
      if (segment.used < (uint64_t{4} << segment.cell_bits) / 5) [[likely]] {
        *cell = {key.low, key.is_long() ? text.store(key) : key.high, count};
        segment.used++;
        size_++;
        return;
      }
      make_room(number, memory);
    }
  }

  template <class Visit> void for_each(Visit visit) const {
    for (const Segment &segment : segments_)
      for (size_t i = 0; i < size_t{1} << segment.cell_bits; i++)
        if (segment.cells[i].high != 0)
          visit(segment.cells[i]);
  }

private:
  static constexpr uint8_t segment_bits = 11;
  static_assert(size_t{1} << segment_bits == CellMemory::segment_cells);
  // 2^26 segments in all, for 10^11 pretokens; only hashes that were made to collide come to deeper ones.
  static constexpr int max_depth = 20;

  struct Segment {
    PretokenCell *cells;
    uint32_t used;
    uint8_t depth; // how many bits after the skipped ones its hashes share
    uint8_t cell_bits;
  };

  size_t slot_of(uint64_t hash) const { return hash << skipped_bits_ >> 1 >> (63 - depth_); }
  PretokenCell *cell_of(const Segment &segment, uint64_t hash) const {
    return segment.cells + (hash << (skipped_bits_ + segment.depth) >> (64 - segment.cell_bits));
  }
  static PretokenCell *after(const Segment &segment, PretokenCell *cell) {
    return cell + 1 == segment.cells + (size_t{1} << segment.cell_bits) ? segment.cells : cell + 1;
  }
  void insert(const Segment &segment, const PretokenCell &cell, uint64_t hash) {
    PretokenCell *to = cell_of(segment, hash);
    while (to->high != 0)
      to = after(segment, to);
    *to = cell;
  }

  void make_room(uint32_t number, CellMemory &memory) {
    if (segments_[number].depth == max_depth)
      return grow(segments_[number]);
    if (segments_[number].depth == depth_) { // each segment gets two slots for one
      std::vector<uint32_t> wider(2 * directory_.size());
      for (size_t slot = 0; slot < wider.size(); slot++)
        wider[slot] = directory_[slot / 2];
      directory_ = std::move(wider);
      depth_++;
    }
    const uint32_t added = static_cast<uint32_t>(segments_.size());
    segments_.push_back({memory.take(), 0, ++segments_[number].depth, segment_bits});
    Segment &lower = segments_[number], &upper = segments_[added];
    scratch_.assign(lower.cells, lower.cells + CellMemory::segment_cells);
    std::fill(lower.cells, lower.cells + CellMemory::segment_cells, PretokenCell{});
    lower.used = 0;
    size_t slot = 0;
    for (const PretokenCell &cell : scratch_) {
      if (cell.high == 0)
        continue;
      const uint64_t hash = cell.hash();
      slot = slot_of(hash);
      Segment &segment = hash << (skipped_bits_ + lower.depth - 1) >> 63 ? upper : lower;
      insert(segment, cell, hash);
      segment.used++;
    }
    // All slots whose first bits are those of the two: the upper half of them is now the new segment's.
    const size_t slots = size_t{2} << (depth_ - lower.depth), first = slot / slots * slots;
    std::fill(directory_.begin() + static_cast<ptrdiff_t>(first + slots / 2),
              directory_.begin() + static_cast<ptrdiff_t>(first + slots), added);
  }

  void grow(Segment &segment) {
    const size_t cells = size_t{1} << segment.cell_bits;
    grown_.emplace_back(new PretokenCell[2 * cells]());
    const PretokenCell *old = std::exchange(segment.cells, grown_.back().get());
    segment.cell_bits++;
    for (size_t i = 0; i < cells; i++)
      if (old[i].high != 0)
        insert(segment, old[i], old[i].hash());
  }

  int skipped_bits_;
  int depth_ = 0; // of the directory
  size_t size_ = 0;
  std::vector<uint32_t> directory_; // by the bits after the skipped ones: a number in segments_
  std::vector<Segment> segments_;
  std::vector<PretokenCell> scratch_;
  std::vector<std::unique_ptr<PretokenCell[]>> grown_;
};

} // namespace bpe
