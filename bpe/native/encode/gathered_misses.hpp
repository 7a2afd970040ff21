// Cache misses, collected over many batches so that they are merged in parallel.
//
// In English, one pretoken in fifty is new, so a batch has two or three: too few to fill the lanes of
// merge_by_lanes.hpp. After a miss, the emitting loop therefore continues in a window instead of the result
// and records which IDs are missing at which offset of the window. When there are enough misses or the window
// is full, all are merged at once, and window and IDs are copied to the result in order. A pretoken missed
// twice in between is merged once.
//
// The ends of rows after a miss are not known yet, so they are recorded in the same list. Bytes of long
// pretokens must stay in place until clear(). Not thread-safe. Empty after each clear().
#pragma once

#include "cache/cache_key.hpp"
#include "merge/long_merge.hpp"
#include "merge/short_merge.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace bpe {

class GatheredMisses {
public:
  static constexpr size_t max_long_bytes =
      512; // of a pretoken to be collected; longer ones fill the lanes alone

  struct Miss {
    CacheKey key;
    uint32_t hash;
    uint32_t merge; // index among the short or the long ones
    // After merge(): symbols; sixteen may be read for a short pretoken.
    uint32_t count;
    uint32_t *ids;
  };

  // The window is open from the first miss.
  bool is_open() const { return open_; }
  uint32_t *open() {
    open_ = true;
    return window_;
  }
  const uint32_t *begin() const { return window_; }
  // Return where the next ID goes. The caller must check that there is room.
  uint32_t *end() { return window_ + id_count_; }
  void set_end(const uint32_t *end) { id_count_ = static_cast<size_t>(end - window_); }
  bool has_room(const uint32_t *end, size_t count) const {
    return static_cast<size_t>(window_ + window_ids - end) >= count;
  }

  // Record that the IDs of a pretoken with this key are missing at `place`.
  void add_short(const CacheKey &key, uint32_t hash, const uint32_t *place);
  void add_long(const CacheKey &key, uint32_t hash, const uint8_t *bytes, const uint32_t *place);
  void add_row_end(const uint32_t *place) { add_hole(place, row_end); }
  // Call after each of the above: returns whether the window must be closed.
  bool is_full() const {
    return short_count_ == max_short || long_count_ == max_long || long_bytes_ + max_long_bytes > long_room ||
           hole_count_ == max_holes;
  }

  // Merge all misses. Calls `scratch` if there are long ones.
  template <class Scratch>
  void merge(const MergeTables &tables, MergeShortPretokens merge_short, MergeLongPretokens merge_long,
             Scratch scratch) {
    merge_short(tables, shorts_, short_count_);
    if (long_count_ > 0)
      merge_long(tables, longs_, long_count_, scratch());
    list_merged();
  }
  // The same one by one: merge(bytes, size, symbols) returns the number of symbols written.
  template <class Merge> void merge_each(Merge merge) {
    for (size_t i = 0; i < short_count_; ++i)
      shorts_[i].count = static_cast<uint32_t>(merge(shorts_[i].bytes, shorts_[i].size, shorts_[i].symbols));
    for (size_t i = 0; i < long_count_; ++i)
      longs_[i].count = static_cast<uint32_t>(merge(longs_[i].bytes, longs_[i].size, longs_[i].symbols));
    list_merged();
  }
  Miss *begin_misses() { return misses_; }
  Miss *end_misses() { return misses_ + miss_count_; }
  const uint8_t *bytes(const Miss &miss) const { return longs_[miss.merge].bytes; } // of a long pretoken
  // Return the maximum number of IDs in total.
  size_t most_ids() const { return id_count_ + missing_bytes_; }
  // Write the IDs to `to`, which has room for 16 more, and append to row_ends, relative to `origin`. Returns
  // the end of the IDs.
  uint32_t *write(const uint32_t *origin, uint32_t *to, std::vector<uint64_t> &row_ends);

  void clear(); // and closes the window

private:
  static constexpr size_t window_ids = 32768;
  // In text where nearly everything is new, one pretoken in twenty is long, so this many short ones include
  // enough long ones. Pretokens of similar length are merged together, and larger batches contain more of
  // them.
  static constexpr size_t max_short = max_short_merges, max_long = 64, long_room = 4096, max_holes = 1024;
  static constexpr size_t cells = 2048;
  static_assert(2 * (max_short + max_long) < cells);
  static constexpr uint32_t row_end = UINT32_MAX;
  struct Hole {
    uint32_t place; // offset in the window
    uint32_t miss;  // the IDs of this miss, or the end of a row
  };

  void list_merged() {
    for (size_t i = 0; i < miss_count_; ++i) {
      Miss &miss = misses_[i];
      const bool is_long = miss.key.is_long();
      miss.ids = is_long ? longs_[miss.merge].symbols : shorts_[miss.merge].symbols;
      miss.count = is_long ? longs_[miss.merge].count : shorts_[miss.merge].count;
    }
  }
  template <class IsSame> uint16_t &cell_of(uint32_t hash, IsSame is_same);
  void add_hole(const uint32_t *place, uint32_t miss) {
    holes_[hole_count_++] = {static_cast<uint32_t>(place - window_), miss};
  }

  bool open_ = false;
  size_t id_count_ = 0, hole_count_ = 0, miss_count_ = 0, short_count_ = 0, long_count_ = 0, long_bytes_ = 0;
  size_t missing_bytes_ = 0;   // summed over all marks
  uint16_t cells_[cells] = {}; // by hash: index of a miss plus 1; 0: none
  Hole holes_[max_holes];
  Miss misses_[max_short + max_long];
  ShortMerge shorts_[max_short];
  LongMerge longs_[max_long];
  uint32_t long_symbols_[long_room + 16];
  uint32_t window_[window_ids + 16];
};

} // namespace bpe
