// What one thread finds of a merge: the places it replaced, and by neighbour what the pairs with it gain.
//
// Sums are arrays indexed by the neighbour's id and cleared by the list of those touched: an occurrence costs
// no search. Where threads share a merge each has sums of its own; include() adds them up, and follow() tells
// each where in the lists of the new pairs its places go, so that the lists are the same for any number of
// threads.
//
// An unnamed namespace: the trainer is compiled as if this stood in it.
#pragma once

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
};

} // namespace
} // namespace bpe
