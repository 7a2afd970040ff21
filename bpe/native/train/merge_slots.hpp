// The pretokens during merging: one flat array of IDs, with a slot per symbol and a separator between
// pretokens.
//
//   "aab" x 3, "ab" x 1    |a|a|b|.|a|b|       | is the separator, . a slot inside an entry
//                          after (a, b):  | a [ab .. ] | [ab ..] |
//
// An entry of n slots has its ID in its first and last slot, so both neighbours of an offset are one read
// away without links. Its other slots contain `dead` or arbitrary values, but never the ID of an entry that
// once started there, so reading a slot shows whether a stored offset is stale. compact() gives each entry
// one slot again.
//
// Pretokens are ordered by falling count, so equal counts form runs. The count of an offset is the count of
// its run, found with an index of blocks and, for ascending offsets, mostly without a search. Pretokens with
// the same count keep their input order. Sorted byte strings are best, because the offsets of a pair are then
// closer together. Pretokens without a pair take no slots.
#pragma once

#include "common/page_memory.hpp"
#include "common/thread_team.hpp"
#include "train/trainer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bpe {

// Call visit(first symbol, size, count) for each pretoken that has a pair and occurs.
template <class Visit> void for_each_pretoken(const PretokenView &pretokens, Visit visit) {
  uint64_t start = 0;
  for (size_t i = 0; i < pretokens.size; i++) {
    const uint64_t first = std::exchange(start, pretokens.ends[i]), size = start - first;
    if (size > 1 && pretokens.counts[i] > 0)
      visit(first, size, pretokens.counts[i]);
  }
}

// Return the number of slots for the pretokens, with a separator before and after each. Throws
// std::invalid_argument if counts times lengths exceed 2^63.
inline uint64_t slots_for(const PretokenView &pretokens) {
  uint64_t slots = 1;
  unsigned __int128 weighted_symbols = 0;
  for_each_pretoken(pretokens, [&](uint64_t, uint64_t size, uint64_t count) {
    slots += size + 1;
    weighted_symbols += static_cast<unsigned __int128>(size) * count;
  });
  if (weighted_symbols >> 63)
    throw std::invalid_argument("the counts times the lengths of the pretokens pass 2^63 bytes");
  return slots;
}

template <class Id, class Place> class MergeSlots {
public:
  static constexpr Id separator = 0;
  static constexpr Id dead = std::numeric_limits<Id>::max();

  // slots: slots_for(pretokens). id_of(i) returns the ID of symbol i of the pretokens, at least 1.
  template <class IdOf>
  MergeSlots(const PretokenView &pretokens, uint64_t slots, IdOf id_of)
      : memory_(slots * sizeof(Id)), ids_(static_cast<Id *>(memory_.data())), size_(slots) {
    // First the number of slots of all pretokens with a count, then the next of them. Most counts are small.
    std::vector<uint64_t> of_small(1 << 16);
    std::map<uint64_t, uint64_t> of_large;
    const auto slots_of = [&](uint64_t count) -> uint64_t & {
      return count < of_small.size() ? of_small[count] : of_large[count];
    };
    for_each_pretoken(pretokens,
                      [&](uint64_t, uint64_t size, uint64_t count) { slots_of(count) += size + 1; });
    uint64_t next = 1;
    const auto begin_run = [&](uint64_t count, uint64_t &of_count) {
      if (of_count == 0)
        return;
      runs_.push_back({static_cast<Place>(next), count});
      next += std::exchange(of_count, next);
    };
    for (auto large = of_large.rbegin(); large != of_large.rend(); ++large)
      begin_run(large->first, large->second);
    for (uint64_t count = of_small.size() - 1; count > 0; count--)
      begin_run(count, of_small[count]);
    for_each_pretoken(pretokens, [&](uint64_t first, uint64_t size, uint64_t count) {
      uint64_t &start = slots_of(count);
      for (uint64_t i = 0; i < size; i++)
        ids_[start++] = id_of(first + i);
      start++; // the separator is already 0 in fresh memory
    });
    index_runs();
  }

  Id *ids() { return ids_; }
  const Id *ids() const { return ids_; }
  uint64_t size() const { return size_; }

  // Call visit(place, count) for each offset in [start, stop) that has an ID and is not the last of its
  // pretoken, in ascending order. Call only right after construction or compact(), while an entry is one
  // slot.
  template <class Visit> void for_each_pair(uint64_t start, uint64_t stop, Visit visit) const {
    for (size_t run = run_at(std::max<uint64_t>(1, start)); run + 1 < runs_.size() && runs_[run].start < stop;
         run++) {
      uint64_t count = runs_[run].count, run_stop = std::min<uint64_t>(stop, runs_[run + 1].start);
      for (uint64_t at = std::max<uint64_t>(start, runs_[run].start); at < run_stop; at++)
        if (ids_[at] != separator && ids_[at + 1] != separator)
          visit(static_cast<Place>(at), count);
    }
  }

  // Give each entry one slot and drop pretokens that have become a single entry. lengths[id]: its number of
  // slots so far. Each thread moves the IDs of a range to its front; then the ranges are joined.
  template <class Lengths> void compact(const Lengths &lengths, ThreadTeam &team) {
    const size_t threads = team.size();
    std::vector<Compacted> parts(threads);
    for (size_t thread = 0; thread < threads; thread++)
      parts[thread].start = thread == 0 ? 1 : pretoken_start(std::max<uint64_t>(1, size_ * thread / threads));
    team.run([&](unsigned thread) {
      compact_range(thread + 1 < threads ? parts[thread + 1].start : size_, lengths, parts[thread]);
    });
    uint64_t to = 1;
    std::vector<Run> kept;
    for (const Compacted &part : parts) {
      std::memmove(ids_ + to, ids_ + part.start, (part.stop - part.start) * sizeof(Id));
      for (const Run &run : part.runs)
        if (kept.empty() || kept.back().count != run.count)
          kept.push_back({static_cast<Place>(run.start - part.start + to), run.count});
      to += part.stop - part.start;
    }
    size_ = to;
    memory_.resize(to * sizeof(Id));
    ids_ = static_cast<Id *>(memory_.data());
    runs_ = std::move(kept);
    index_runs();
  }

  // Return the start of the pretoken at this offset. May be called at any time.
  uint64_t pretoken_start(uint64_t place) const {
    while (ids_[place - 1] != separator)
      place--;
    return place;
  }

  // Look up counts at ascending offsets.
  class Counts {
  public:
    explicit Counts(const MergeSlots &slots) : slots_(slots) {}
    uint64_t at(Place place) {
      if (place >= stop_)
        seek(place);
      return count_;
    }

  private:
    void seek(Place place) {
      size_t run = slots_.run_of_block_[place / block_slots];
      while (slots_.runs_[run + 1].start <= place)
        run++;
      stop_ = slots_.runs_[run + 1].start;
      count_ = slots_.runs_[run].count;
    }
    const MergeSlots &slots_;
    Place stop_ = 0;
    uint64_t count_ = 0;
  };

private:
  struct Run {
    Place start; // [start, start of the next)
    uint64_t count;
  };
  // About ten pretokens, so few steps even if every count differs. 16 took more memory and was not faster.
  static constexpr uint64_t block_slots = 64;

  struct Compacted { // a range of slots: the IDs at its front, and their runs
    uint64_t start = 0, stop = 0;
    std::vector<Run> runs;
  };

  // Compact the slots from part.start to `stop`; a pretoken starts at each.
  template <class Lengths> void compact_range(uint64_t stop, const Lengths &lengths, Compacted &part) {
    uint64_t at = part.start, to = part.start;
    for (size_t run = at < stop ? run_at(at) : 0; at < stop; run++) {
      const uint64_t run_start = to, run_stop = std::min<uint64_t>(stop, runs_[run + 1].start);
      for (; at < run_stop; at++) {
        const uint64_t pretoken_start = to;
        while (ids_[at] != separator) {
          const Id id = ids_[at];
          at += lengths[id];
          ids_[to++] = id;
        }
        if (to - pretoken_start < 2)
          to = pretoken_start;
        else
          ids_[to++] = separator;
      }
      if (to > run_start)
        part.runs.push_back({static_cast<Place>(run_start), runs_[run].count});
    }
    part.stop = to;
  }

  // Return the index of the run that contains the offset.
  size_t run_at(uint64_t place) const {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), place,
                                        [](uint64_t at, const Run &run) { return at < run.start; });
    return static_cast<size_t>(after - runs_.begin()) - 1;
  }

  // End the runs with an empty one, and record the run of the first slot of each block.
  void index_runs() {
    runs_.push_back({static_cast<Place>(size_), 0});
    run_of_block_.assign(size_ / block_slots + 1, 0);
    for (size_t run = 0; run + 1 < runs_.size(); run++) {
      uint64_t block = (static_cast<uint64_t>(runs_[run].start) + block_slots - 1) / block_slots;
      for (; block * block_slots < runs_[run + 1].start; block++)
        run_of_block_[block] = static_cast<uint32_t>(run);
    }
  }

  PageMemory memory_;
  Id *ids_;
  uint64_t size_;
  std::vector<Run> runs_;
  std::vector<uint32_t> run_of_block_;
};

} // namespace bpe
