// Where each pretoken goes among the slots: those of one count side by side, in falling order of the counts.
//
// Pretokens of one count keep the order they were given in. Sorted as byte strings is best: the places of a
// pair then lie closer together (13 million pretokens: 11 s, in the order of their hashes 19 s). Pretokens
// without a pair take no slots.
#pragma once

#include "trainer.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bpe {

template <class Visit> void for_each_pretoken(const PretokenView &pretokens, Visit visit) {
  uint64_t start = 0;
  for (size_t i = 0; i < pretokens.size; i++) {
    visit(pretokens.bytes + start, pretokens.ends[i] - start, pretokens.counts[i]);
    start = pretokens.ends[i];
  }
}

class SlotPlan {
public:
  // Throws std::invalid_argument when counts times lengths pass 2^63.
  explicit SlotPlan(const PretokenView &pretokens) : slots_of_small_(small_counts, 0) {
    unsigned __int128 weighted_bytes = 0;
    for_each_pretoken(pretokens, [&](const uint8_t *, uint64_t size, uint64_t count) {
      weighted_bytes += static_cast<unsigned __int128>(size) * count;
      if (size < 2 || count == 0)
        return;
      slots_ += size + 1;
      if (count < small_counts)
        slots_of_small_[count] += size + 1;
      else
        large_.push_back({count, size + 1});
    });
    if (weighted_bytes >> 63)
      throw std::invalid_argument("the counts times the lengths of the pretokens pass 2^63 bytes");
    // Counts that few pretokens have; equal ones become one.
    std::sort(large_.begin(), large_.end(), [](const Large &a, const Large &b) { return a.count > b.count; });
    size_t distinct = 0;
    for (const Large &large : large_) {
      if (distinct > 0 && large_[distinct - 1].count == large.count)
        large_[distinct - 1].slots += large.slots;
      else
        large_[distinct++] = large;
    }
    large_.resize(distinct);
  }

  uint64_t slots() const { return slots_; } // with a separator before all

  // Turns the sizes into places: for each count that occurs, falling, visit(count, the place where it
  // starts).
  template <class Visit> void place(Visit visit) {
    uint64_t next = 1;
    auto put = [&](uint64_t count, uint64_t &slots) {
      if (slots > 0)
        visit(count, next);
      next += std::exchange(slots, next);
    };
    for (Large &large : large_)
      put(large.count, large.slots);
    for (uint64_t count = small_counts - 1; count > 0; count--)
      put(count, slots_of_small_[count]);
  }

  // After place(): where a pretoken of so many bytes goes; no two go to the same place.
  uint64_t take(uint64_t size, uint64_t count) {
    uint64_t &next = count < small_counts ? slots_of_small_[count] : find_large(count).slots;
    return std::exchange(next, next + size + 1);
  }

private:
  static constexpr uint64_t small_counts = 1 << 16; // looked up in an array; the few others by searching

  struct Large {
    uint64_t count, slots;
  };

  Large &find_large(uint64_t count) {
    return *std::lower_bound(large_.begin(), large_.end(), count,
                             [](const Large &large, uint64_t value) { return large.count > value; });
  }

  uint64_t slots_ = 1;
  std::vector<uint64_t> slots_of_small_;
  std::vector<Large> large_;
};

} // namespace bpe
