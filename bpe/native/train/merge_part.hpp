// Results of one thread in a merge: the offsets it replaced, and per neighbour the gain of the pairs with it.
//
// Sums are arrays indexed by the neighbour's ID, cleared with the list of touched IDs, so an occurrence costs
// no search. If threads share a merge, each has separate sums. include() adds them up, and follow() gives
// each thread its positions in the lists of the new pairs, so the lists are the same for any number of
// threads.
//
// In an unnamed namespace, so that the compiler optimizes it together with the trainer.
#pragma once

#include "train/merge_slots.hpp"
#include "train/pair_index.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace bpe {
namespace {

// Sums over the entries on one side of the merged pair; index: the neighbour's ID.
template <class Id, class Place> struct NeighbourSums {
  struct Neighbour {
    uint64_t count = 0; // of the new pair with it
    uint64_t next = 0;  // where the next offset of that pair is written
    Place places = 0;
  };
  static constexpr uint64_t no_list = PairIndex<Id, Place>::no_list;
  std::vector<Neighbour> neighbours;
  std::vector<Id> touched;
  void add(Id id, uint64_t count) {
    Neighbour &neighbour = neighbours[id];
    if (neighbour.places++ == 0)
      touched.push_back(id);
    neighbour.count += count;
  }
  // Add the sums of the next thread. Its `next` becomes the number of offsets found before.
  void include(NeighbourSums &other) {
    for (Id id : other.touched) {
      Neighbour &mine = neighbours[id], &theirs = other.neighbours[id];
      if (mine.places == 0)
        touched.push_back(id);
      theirs.next = std::exchange(mine.places, static_cast<Place>(mine.places + theirs.places));
      mine.count += theirs.count;
    }
  }
  // Set where this thread writes. Call after include(), once the lists have room.
  void follow(const NeighbourSums &all) {
    for (Id id : touched) {
      const uint64_t start = all.neighbours[id].next;
      neighbours[id].next = start == no_list ? no_list : start + neighbours[id].next;
    }
  }
  void clear() {
    for (Id id : touched)
      neighbours[id] = {};
    touched.clear();
  }
};

// The part of a merge done by one thread: a range of the list that starts and ends between two pretokens.
template <class Id, class Place> struct MergePart {
  struct Occurrence {
    Id left, right; // the neighbours at the time of replacement
    Place place;
  };
  NeighbourSums<Id, Place> left, right;
  Occurrence *occurrences = nullptr; // memory shared by all parts
  size_t occurrence_count = 0;
  // Occurrences that directly followed another one ("abab"), see add_pairs: weighted count, and number.
  uint64_t after_merged = 0;
  Place after_merged_places = 0;

  // Replace the pair at those offsets of [list, stop) that still hold it, and sum up the neighbours. lengths:
  // number of slots per ID.
  void replace(MergeSlots<Id, Place> &slots, const std::vector<Place> &lengths, const Place *list,
               const Place *stop, Id a, Id b, Id merged) {
    Id *ids = slots.ids();
    size_t a_slots = lengths[a], merged_slots = lengths[merged], size = static_cast<size_t>(stop - list);
    typename MergeSlots<Id, Place>::Counts counts(slots);
    after_merged = after_merged_places = 0;
    occurrence_count = 0;
    for (size_t i = 0; i < size; i++) {
      if (i + prefetch_places < size)
        __builtin_prefetch(ids + list[i + prefetch_places], 1);
      Place at = list[i];
      if (ids[at] != a || ids[at + a_slots] != b)
        continue; // stale
      uint64_t count = counts.at(at);
      const Id before = ids[at - 1], after = ids[at + merged_slots];
      ids[at + a_slots] = MergeSlots<Id, Place>::dead;
      ids[at] = ids[at + merged_slots - 1] = merged;
      left.add(before, count);
      right.add(after, count);
      if (before == merged) {
        after_merged += count;
        after_merged_places++;
      }
      occurrences[occurrence_count++] = {before, after, at};
    }
  }

  // The list of the merged pair has been read, so its memory may be overwritten.
  void write_lists(Place *arena, const std::vector<Place> &lengths) {
    for (size_t i = 0; i < occurrence_count; i++) {
      const Occurrence &occurrence = occurrences[i];
      uint64_t &left_next = left.neighbours[occurrence.left].next;
      if (left_next != no_list)
        arena[left_next++] = static_cast<Place>(occurrence.place - lengths[occurrence.left]);
      uint64_t &right_next = right.neighbours[occurrence.right].next;
      if (right_next != no_list)
        arena[right_next++] = occurrence.place;
    }
  }

private:
  static constexpr uint64_t no_list = NeighbourSums<Id, Place>::no_list;
  // How far ahead in a list slots are prefetched: about 40 cache misses in flight or complete.
  static constexpr size_t prefetch_places = 40;
};

} // namespace
} // namespace bpe
