// The position of each pretoken among the slots: grouped by count, in falling order of counts.
//
// Pretokens with the same count keep their input order. Sorted byte strings are best, because the offsets of
// a pair are then closer together. Pretokens without a pair take no slots. Each thread plans and fills a
// range of the pretokens.
#pragma once

#include "common/thread_team.hpp"
#include "train/trainer.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bpe {

class SlotPlan {
public:
  // Throws std::invalid_argument if counts times lengths exceed 2^63.
  SlotPlan(const PretokenView &pretokens, ThreadTeam &team) : pretokens_(pretokens), parts_(team.size()) {
    team.run([&](unsigned thread) { survey(thread); });
    unsigned __int128 weighted_symbols = 0;
    for (const Part &part : parts_) {
      weighted_symbols += part.weighted_symbols;
      slots_ += part.slots;
    }
    if (weighted_symbols >> 63)
      throw std::invalid_argument("the counts times the lengths of the pretokens pass 2^63 bytes");
  }

  uint64_t slots() const { return slots_; } // including a separator before all

  // Convert the sizes to offsets. Calls visit(count, its start offset) for each count that occurs, in falling
  // order.
  template <class Visit> void place(Visit visit) {
    uint64_t next = 1;
    auto put = [&](uint64_t &slots) { next += std::exchange(slots, next); };
    for (std::vector<size_t> at(parts_.size(), 0);;) {
      uint64_t count = 0; // the highest count left
      for (size_t i = 0; i < parts_.size(); i++)
        if (at[i] < parts_[i].large.size())
          count = std::max(count, parts_[i].large[at[i]].count);
      if (count == 0)
        break;
      visit(count, next);
      for (size_t i = 0; i < parts_.size(); i++)
        if (at[i] < parts_[i].large.size() && parts_[i].large[at[i]].count == count)
          put(parts_[i].large[at[i]++].slots);
    }
    for (uint64_t count = small_counts - 1; count > 0; count--) {
      const uint64_t start = next;
      for (Part &part : parts_)
        put(part.slots_of_small[count]);
      if (next > start)
        visit(count, start);
    }
  }

  // After place(), for the pretokens of one thread: visit(first symbol, size, target offset). Each offset is
  // different, with room for a separator after the pretoken.
  template <class Visit> void take(unsigned thread, Visit visit) {
    Part &part = parts_[thread];
    for_each_pretoken(thread, [&](uint64_t first, uint64_t size, uint64_t count) {
      if (size < 2 || count == 0)
        return;
      uint64_t &next = count < small_counts ? part.slots_of_small[count] : part.find_large(count).slots;
      visit(first, size, std::exchange(next, next + size + 1));
    });
  }

private:
  static constexpr uint64_t small_counts = 1 << 16; // looked up in an array; the few others by search

  struct Large {
    uint64_t count, slots;
  };
  struct Part { // results of a thread; `slots` are first the numbers, then the next offsets
    uint64_t slots = 0;
    unsigned __int128 weighted_symbols = 0;
    std::vector<uint64_t> slots_of_small;
    std::vector<Large> large; // by falling count
    Large &find_large(uint64_t count) {
      return *std::lower_bound(large.begin(), large.end(), count,
                               [](const Large &one, uint64_t value) { return one.count > value; });
    }
  };

  template <class Visit> void for_each_pretoken(unsigned thread, Visit visit) const {
    const size_t first = pretokens_.size * thread / parts_.size();
    const size_t stop = pretokens_.size * (thread + 1) / parts_.size();
    uint64_t start = first == 0 ? 0 : pretokens_.ends[first - 1];
    for (size_t i = first; i < stop; i++) {
      visit(start, pretokens_.ends[i] - start, pretokens_.counts[i]);
      start = pretokens_.ends[i];
    }
  }

  void survey(unsigned thread) {
    Part part;
    part.slots_of_small.assign(small_counts, 0);
    for_each_pretoken(thread, [&](uint64_t, uint64_t size, uint64_t count) {
      part.weighted_symbols += static_cast<unsigned __int128>(size) * count;
      if (size < 2 || count == 0)
        return;
      part.slots += size + 1;
      if (count < small_counts)
        part.slots_of_small[count] += size + 1;
      else
        part.large.push_back({count, size + 1});
    });
    // Counts that few pretokens have; equal ones are merged.
    std::vector<Large> &large = part.large;
    std::sort(large.begin(), large.end(), [](const Large &a, const Large &b) { return a.count > b.count; });
    size_t distinct = 0;
    for (const Large &one : large) {
      if (distinct > 0 && large[distinct - 1].count == one.count)
        large[distinct - 1].slots += one.slots;
      else
        large[distinct++] = one;
    }
    large.resize(distinct);
    parts_[thread] = std::move(part);
  }

  const PretokenView pretokens_;
  uint64_t slots_ = 1;
  std::vector<Part> parts_; // one per thread
};

} // namespace bpe
