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
#include "merge/merge_pretokens.hpp"

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

  // Record that the IDs of a pretoken with this key are missing at `place`. bytes: of a long pretoken.
  void add(const CacheKey &key, uint32_t hash, const uint8_t *bytes, const uint32_t *place);
  void add_row_end(const uint32_t *place) { add_hole(place, row_end); }
  // Call after each of the above: returns whether the window must be closed.
  bool is_full() const {
    return miss_count_ == max_misses || symbol_count_ + max_long_bytes > symbol_room ||
           hole_count_ == max_holes;
  }

  size_t size() const { return miss_count_; }
  const Miss &operator[](size_t number) const { return misses_[number]; }
  // The misses to be merged. Sixteen symbols may be read from each.
  PretokenMerge *merges() { return merges_; }
  // Return the maximum number of IDs in total.
  size_t most_ids() const { return id_count_ + missing_bytes_; }
  // Write the IDs to `to`, which has room for 16 more, and append to row_ends, relative to `origin`. Returns
  // the end of the IDs.
  uint32_t *write(const uint32_t *origin, uint32_t *to, std::vector<uint64_t> &row_ends);

  void clear(); // and closes the window

private:
  static constexpr size_t window_ids = 32768;
  // Pretokens of similar length are merged together, and larger batches contain more of them.
  static constexpr size_t max_misses = 512, symbol_room = 12288, max_holes = 1024;
  static constexpr size_t cells = 2048;
  static_assert(2 * max_misses < cells);
  static constexpr uint32_t row_end = UINT32_MAX;
  struct Hole {
    uint32_t place; // offset in the window
    uint32_t miss;  // the IDs of this miss, or the end of a row
  };

  void add_hole(const uint32_t *place, uint32_t miss) {
    holes_[hole_count_++] = {static_cast<uint32_t>(place - window_), miss};
  }

  bool open_ = false;
  size_t id_count_ = 0, hole_count_ = 0, miss_count_ = 0, symbol_count_ = 0;
  size_t missing_bytes_ = 0;   // summed over all holes
  uint16_t cells_[cells] = {}; // by hash: index of a miss plus 1; 0: none
  Hole holes_[max_holes];
  Miss misses_[max_misses];
  PretokenMerge merges_[max_misses];
  uint32_t symbols_[symbol_room + 16];
  uint32_t window_[window_ids + 16];
};

} // namespace bpe
