// What one thread finds of a merge: the places it replaced, and by neighbour what the pairs with it gain.
//
// Sums are arrays indexed by the neighbour's id and cleared by the list of those touched: an occurrence costs
// no search. Where threads share a merge each has sums of its own; include() adds them up, and follow() tells
// each where in the lists of the new pairs its places go, so that the lists are the same for any number of
// threads.
//
// An unnamed namespace: the trainer is compiled as if this stood in it.
#pragma once

#include "train/merge_slots.hpp"
#include "train/pair_index.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace bpe {
namespace {

// What the entries on one side of the merged pair take part in; index: the neighbour's id.
template <class Id, class Place> struct NeighbourSums {
  struct Neighbour {
    uint64_t count = 0; // of the new pair with it
    uint64_t next = 0;  // where the next place of that pair goes
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
  // Takes in what the next thread found; there `next` becomes how many places were found before.
  void include(NeighbourSums &other) {
    for (Id id : other.touched) {
      Neighbour &mine = neighbours[id], &theirs = other.neighbours[id];
      if (mine.places == 0)
        touched.push_back(id);
      theirs.next = std::exchange(mine.places, static_cast<Place>(mine.places + theirs.places));
      mine.count += theirs.count;
    }
  }
  // After include() and once the lists have room: where this thread writes.
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

// What one thread does of a merge: a range of the list that begins and ends between two pretokens.
template <class Id, class Place> struct MergePart {
  struct Occurrence {
    Id left, right; // the neighbours when it was replaced
    Place place;
  };
  NeighbourSums<Id, Place> left, right;
  Occurrence *occurrences = nullptr; // room that all parts share
  size_t occurrence_count = 0;
  // Of those that directly followed another one ("abab"), see add_pairs: by weight, and how many.
  uint64_t after_merged = 0;
  Place after_merged_places = 0;

  // Replaces the pair at those places of [list, stop) that still hold it, and sums up the neighbours.
  // lengths: the slots of each id.
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

  // The list of the merged pair has been read: its room may be written over.
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
  // How far ahead in a list its slots are prefetched: some 40 cache misses in flight or done.
  static constexpr size_t prefetch_places = 40;
};

} // namespace
} // namespace bpe
