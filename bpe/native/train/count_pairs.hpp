// Count all pairs of the slots from scratch: at the start of a training, and again after too many pairs were
// forgotten.
//
// Call only right after construction or compact(), while an entry is one slot. Each thread of the team reads
// a range of the slots.
#pragma once

#include "common/thread_team.hpp"
#include "train/merge_slots.hpp"
#include "train/tracked_pairs.hpp"

#include <vector>

namespace bpe {

constexpr uint64_t slots_for_thread = 1 << 19; // fewer are read before another thread wakes up

template <class Id, class Place>
unsigned threads_for(const MergeSlots<Id, Place> &slots, const ThreadTeam &team) {
  return static_cast<unsigned>(std::min<uint64_t>(team.size(), slots.size() / slots_for_thread + 1));
}

// Call work(start, stop) for pieces of a range of slots and pause() after each, often enough to stop soon
// when pause() throws.
template <class Pause, class Work> void in_pieces(uint64_t start, uint64_t stop, Pause pause, Work work) {
  constexpr uint64_t piece_slots = 1 << 22;
  for (uint64_t at = start; at < stop; at += piece_slots) {
    work(at, std::min(stop, at + piece_slots));
    pause();
  }
}

// Call visit(thread, place, count) for each offset of a pair; each thread reads a range of the slots.
template <class Id, class Place, class Visit, class Pause>
void for_each_pair(const MergeSlots<Id, Place> &slots, ThreadTeam &team, unsigned threads, Visit visit,
                   Pause pause) {
  auto work = [&](unsigned thread) {
    if (thread >= threads)
      return;
    in_pieces(
        slots.size() * thread / threads, slots.size() * (thread + 1) / threads,
        [&] {
          if (thread == 0) // the calling thread
            pause();
        },
        [&](uint64_t start, uint64_t stop) {
          slots.for_each_pair(start, stop, [&](Place at, uint64_t count) { visit(thread, at, count); });
        });
  };
  if (threads == 1)
    work(0);
  else
    team.run(work);
}

// Count all pairs of slots without IDs above 256, which are the IDs of bytes, in a square of 1 MiB.
template <class Id, class Place, class Pause>
void count_byte_pairs(const MergeSlots<Id, Place> &slots, ThreadTeam &team, TrackedPairs<Id, Place> &pairs,
                      Pause pause) {
  struct Sum {
    uint64_t count = 0, places = 0;
  };
  const Id *ids = slots.ids();
  const unsigned threads = threads_for(slots, team);
  std::vector<std::vector<Sum>> sums(threads, std::vector<Sum>(256 * 256));
  for_each_pair(
      slots, team, threads,
      [&](unsigned thread, Place at, uint64_t count) {
        Sum &sum = sums[thread][(ids[at] - 1u) * 256 + ids[at + 1] - 1u];
        sum.count += count;
        sum.places++;
      },
      pause);
  for (const std::vector<Sum> &of_thread : sums) {
    for (size_t i = 0; i < of_thread.size(); i++) {
      if (of_thread[i].places == 0)
        continue;
      auto &pair =
          pairs.find_or_add(PairKey<Id>::of(static_cast<Id>(i / 256 + 1), static_cast<Id>(i % 256 + 1)));
      pair.count += of_thread[i].count;
      pair.places += static_cast<Place>(of_thread[i].places);
    }
  }
}

// Find the pairs that occur at least a given number of times, and return that number: at least `floor`, and
// otherwise at most half of `below`, such that at most about `wanted` pairs reach it.
//
// Counts by a hash of the pair can only be too high. They keep all but a few rare pairs out of the exact
// tables, which therefore stay small for any number of pairs.
template <class Id, class Place, class Pause>
uint64_t count_frequent_pairs(const MergeSlots<Id, Place> &slots, ThreadTeam &team, uint64_t wanted,
                              uint64_t floor, uint64_t below, TrackedPairs<Id, Place> &pairs, Pause pause,
                              const MemoryLimit &limit) {
  const Id *ids = slots.ids();
  constexpr unsigned most_threads = 8; // each has sums of up to 32 MiB
  unsigned threads = std::min(most_threads, threads_for(slots, team));
  const int sum_bits = std::clamp<int>(std::bit_width(slots.size()), 16, 22);
  const auto sum_bytes = [&] { return threads * (sizeof(uint64_t) << sum_bits); };
  while (threads > 1 && !limit.has_room(2 * sum_bytes())) // leave some memory for the tables
    threads--;
  limit.expect(sum_bytes());
  std::vector<std::vector<uint64_t>> sums(threads, std::vector<uint64_t>(uint64_t{1} << sum_bits, 0));
  auto key_at = [&](Place at) { return PairKey<Id>::of(ids[at], ids[at + 1]); };
  auto sum_of = [&](unsigned thread, auto key) -> uint64_t & {
    return sums[thread][PairKey<Id>::hash(key) >> (64 - sum_bits)];
  };
  for_each_pair(
      slots, team, threads,
      [&](unsigned thread, Place at, uint64_t count) { sum_of(thread, key_at(at)) += count; }, pause);
  CountHistogram histogram;
  for (size_t i = 0; i < sums[0].size(); i++) {
    for (unsigned thread = 1; thread < threads; thread++)
      sums[0][i] += sums[thread][i];
    histogram.add(sums[0][i], 0);
  }
  sums.resize(1);
  const uint64_t at_least = std::max(
      floor, std::min(below / 2, histogram.reached_by(wanted, std::numeric_limits<uint64_t>::max())));

  std::vector<TrackedPairs<Id, Place>> parts;
  for (unsigned thread = 1; thread < threads; thread++)
    parts.emplace_back(limit);
  for_each_pair(
      slots, team, threads,
      [&](unsigned thread, Place at, uint64_t count) {
        const auto key = key_at(at);
        if (sum_of(0, key) < at_least)
          return;
        auto &pair = (thread == 0 ? pairs : parts[thread - 1]).find_or_add(key);
        pair.count += count;
        pair.places++;
      },
      pause);
  for (TrackedPairs<Id, Place> &part : parts) {
    part.for_each([&](const auto &found) {
      auto &pair = pairs.find_or_add(found.key);
      pair.count += found.count;
      pair.places += found.places;
    });
    part.clear();
  }
  pairs.keep([&](const auto &pair) { return pair.count >= at_least; });
  return at_least;
}

} // namespace bpe
