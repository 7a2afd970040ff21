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
// its run, found with an index of blocks and, for ascending offsets, mostly without a search.
#pragma once

#include "common/page_memory.hpp"
#include "train/slot_plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace bpe {

template <class Id, class Place> class MergeSlots {
public:
  static constexpr Id separator = 0;
  static constexpr Id dead = std::numeric_limits<Id>::max();

  // id_of(i) returns the ID of symbol i of the pretokens, at least 1. The plan is consumed.
  template <class IdOf>
  MergeSlots(SlotPlan &plan, IdOf id_of, ThreadTeam &team)
      : memory_(plan.slots() * sizeof(Id)), ids_(static_cast<Id *>(memory_.data())), size_(plan.slots()) {
    plan.place([&](uint64_t count, uint64_t start) { runs_.push_back({static_cast<Place>(start), count}); });
    team.run([&](unsigned thread) {
      plan.take(thread, [&](uint64_t first, uint64_t size, uint64_t start) {
        Id *to = ids_ + start;
        for (uint64_t i = 0; i < size; i++)
          to[i] = id_of(first + i);
        // The separator after it is already 0 in fresh memory.
      });
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

  // Return the offset of the separator after it. May be called at any time.
  uint64_t pretoken_stop(uint64_t place) const {
    while (ids_[place] != separator)
      place++;
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
