// Where each pretoken goes among the slots: in falling order of their counts, those of one count by their first bytes.
//
// Equal counts side by side are what MergeSlots needs. The first bytes are for speed alone: the places of a pair then
// lie closer together. 13 million pretokens in the order of their hashes 19 s, by first bytes 13 s, sorted 11 s and 5 s
// for the sort. Pretokens without a pair take no slots.
#pragma once

#include "trainer.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bpe {

class SlotPlan {
public:
  // Throws std::invalid_argument when counts times lengths pass 2^63.
  explicit SlotPlan(const PretokenSource &pretokens) : slots_of_small_(small_counts, 0) {
    unsigned __int128 weighted_bytes = 0;
    pretokens([&](const uint8_t *bytes, uint64_t size, uint64_t count) {
      weighted_bytes += static_cast<unsigned __int128>(size) * count;
      if (size < 2 || count == 0)
        return;
      slots_ += size + 1;
      if (count < grouped_counts) {
        if (slots_of_group_[count].empty())
          slots_of_group_[count].resize(groups, 0);
        slots_of_group_[count][group_of(bytes, size)] += size + 1;
      } else if (count < small_counts) {
        slots_of_small_[count] += size + 1;
      } else {
        large_.push_back({count, size + 1});
      }
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

  // Turns the sizes into places: for each count that occurs, falling, visit(count, the place where it starts).
  template <class Visit> void place(Visit visit) {
    uint64_t next = 1;
    auto put = [&](uint64_t &slots) { next += std::exchange(slots, next); };
    for (Large &large : large_) {
      visit(large.count, next);
      put(large.slots);
    }
    for (uint64_t count = small_counts - 1; count >= grouped_counts; count--) {
      if (slots_of_small_[count] > 0)
        visit(count, next);
      put(slots_of_small_[count]);
    }
    for (uint64_t count = grouped_counts - 1; count > 0; count--) {
      if (!slots_of_group_[count].empty())
        visit(count, next);
      for (uint64_t &slots : slots_of_group_[count])
        put(slots);
    }
  }

  // After place(): where a pretoken goes; no two go to the same place.
  uint64_t take(const uint8_t *bytes, uint64_t size, uint64_t count) {
    uint64_t &next = count < grouped_counts ? slots_of_group_[count][group_of(bytes, size)]
                     : count < small_counts ? slots_of_small_[count]
                                            : find_large(count).slots;
    return std::exchange(next, next + size + 1);
  }

private:
  static constexpr uint64_t grouped_counts = 32;      // most pretokens are as rare as that
  static constexpr uint64_t small_counts = 1 << 16;   // looked up in an array; the few others by searching
  static constexpr size_t groups = size_t{1} << 16;

  struct Large {
    uint64_t count, slots;
  };

  // Most pretokens start with a space: whether they do, and the two bytes behind it, less their lowest bit.
  static size_t group_of(const uint8_t *bytes, uint64_t size) {
    const size_t space = bytes[0] == ' ';
    const size_t second = space + 1 < size ? bytes[space + 1] : 0;
    return space << 15 | size_t{bytes[space]} << 7 | second >> 1;
  }

  Large &find_large(uint64_t count) {
    return *std::lower_bound(large_.begin(), large_.end(), count,
                             [](const Large &large, uint64_t value) { return large.count > value; });
  }

  uint64_t slots_ = 1;
  std::array<std::vector<uint64_t>, grouped_counts> slots_of_group_;
  std::vector<uint64_t> slots_of_small_;
  std::vector<Large> large_;
};

} // namespace bpe
