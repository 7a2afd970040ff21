// The pairs: how often each occurs, where it occurs, and which one is the best.
//
// Counts only fall (see trainer.hpp), which allows two thresholds. Pairs that occur at least
// `min_tracked_count` times are tracked: their counts are always exact, so none is counted twice. Pairs that
// occur at least `threshold` times, which are far fewer, wait in a queue, each with the list of its offsets.
// While one of them is left, no pair below the threshold can be the next merge. When the queue is empty, the
// threshold is lowered and lists are written again in one pass over the slots. If there are too many tracked
// pairs, the rarest are forgotten. They are counted again only if the threshold falls to min_tracked_count,
// as it does when most of a text is merged. The result is exact for any choice of the two thresholds.
//
// The list of a pair is written once, in ascending order, with the exact size needed. Entries become stale
// when other merges replace their IDs, which is detected on reading. Lists are stored in one arena, which
// never needs more than two offsets per slot: list() writes at most one per slot, and each later merge, of
// which there are fewer than slots, appends at most one, since the list of the left pair fits into the memory
// of the merged pair's list.
#pragma once

#include "train/count_pairs.hpp"
#include "train/listed_pairs.hpp"

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>

namespace bpe {

template <class Id, class Place> class PairIndex {
public:
  using Keys = PairKey<Id>;
  using Key = typename Keys::Key;
  static constexpr uint64_t no_list = std::numeric_limits<uint64_t>::max();

  struct Waiting {
    uint64_t count;      // when it was queued
    uint64_t list_start; // offset in the arena
    Key key;
    Place list_size;
  };

  // only_bytes: the slots initially contain no ID above 256. Pairs that occur less often than `floor`, at
  // least 1, are ignored. About `max_tracked_pairs` are tracked at once. The limit is checked before each
  // allocation and must outlive this object.
  PairIndex(uint64_t slots, bool only_bytes, uint64_t floor, uint64_t max_tracked_pairs,
            const MemoryLimit &limit)
      : limit_(limit), only_bytes_(only_bytes), floor_(floor), min_tracked_count_(floor),
        max_tracked_pairs_(max_tracked_pairs), pairs_(limit),
        arena_(static_cast<Place *>(std::malloc(2 * slots * sizeof(Place) + 1)), std::free) {
    if (!arena_) // only written pages become resident
      throw std::bad_alloc();
  }

  Place *arena() const { return arena_.get(); }
  bool has_more() const { return threshold_ > floor_; } // than those in the queue

  // Lower the threshold so that about `wanted` pairs with at most `most_places` offsets reach it, or one
  // pair, and list these. Requires slots where an entry is one slot and IDs are below id_count. Only pairs
  // with allowed(left, right) are tracked. Afterwards best() works with `less`, a strict order of Waiting.
  template <class Allowed, class Less, class Pause>
  void list(const MergeSlots<Id, Place> &slots, size_t id_count, uint64_t wanted, uint64_t most_places,
            Allowed allowed, Less less, Pause pause, ThreadTeam &team) {
    auto keep_allowed = [&] {
      pairs_.keep([&](const Pair &pair) {
        return pair.count >= min_tracked_count_ && allowed(Keys::left(pair.key), Keys::right(pair.key));
      });
    };
    if (threshold_ == unlimited && only_bytes_) {
      count_byte_pairs(slots, team, pairs_, pause);
      keep_allowed();
    } else if (threshold_ == unlimited || threshold_ <= min_tracked_count_) {
      const uint64_t below = threshold_ == unlimited ? unlimited : min_tracked_count_;
      pairs_.clear();
      min_tracked_count_ =
          count_frequent_pairs(slots, team, max_tracked_pairs_ / 2, floor_, below, pairs_, pause, limit_);
      keep_allowed();
    }
    CountHistogram histogram;
    pairs_.for_each([&](const Pair &pair) { histogram.add(pair.count, pair.places); });
    threshold_ = std::max(min_tracked_count_, std::min({threshold_ - 1, histogram.reached_by_some(),
                                                        histogram.reached_by(wanted, most_places)}));
    queue_.clear();
    arena_used_ = 0;
    pairs_.for_each([&](const Pair &pair) {
      if (pair.count < threshold_)
        return;
      queue_.push_back({pair.count, arena_used_, pair.key, pair.places});
      arena_used_ += pair.places;
    });
    expect_arena(arena_used_ + 128);
    // Apart from the lists: the queue as it grows, and the cells for the next offsets.
    limit_.expect(queue_.size() * 128 + id_count * 8);
    write_places(slots, id_count, pause, team);
    arena_written(arena_used_ + 128);
    std::make_heap(queue_.begin(), queue_.end(), less);
  }

  // Remove the best pair from the queue and return it; none if no pair reaches the threshold.
  template <class Less> std::optional<Waiting> best(Less less) {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), less);
      Waiting top = queue_.back();
      queue_.pop_back();
      Pair *pair = pairs_.find(top.key); // null if it was forgotten
      if (!pair || pair->count < threshold_)
        continue;
      if (pair->count == top.count) {
        pair->count = 0;
        return top;
      }
      top.count = pair->count; // the count fell since it was queued
      push(top, less);
    }
    return std::nullopt;
  }

  // Subtract occurrences of the pair, with the weighted number `count`.
  void subtract(Key key, uint64_t count, Place places) {
    Pair *pair = pairs_.find(key);
    if (pair && pair->count != 0) {
      pair->count -= count;
      pair->places -= places;
    }
  }

  // Add a pair. Returns where its list goes, with room for list_size, taken from `room` if it fits there, or
  // no_list.
  template <class Less>
  uint64_t add(Key key, uint64_t count, Place places, Place list_size, uint64_t &room, uint64_t room_stop,
               Less less) {
    if (count >= min_tracked_count_ && pairs_.size() >= max_tracked_pairs_)
      forget();
    if (count < min_tracked_count_)
      return no_list;
    Pair &pair = pairs_.find_or_add(key);
    pair.count = count;
    pair.places = places;
    if (count < threshold_)
      return no_list;
    uint64_t &from = room + list_size <= room_stop ? room : arena_used_;
    const uint64_t list_start = from;
    from += list_size;
    if (arena_used_ > arena_expected_)
      expect_arena(arena_used_ + arena_step);
    arena_filled_ = std::max(arena_filled_, arena_used_);
    push({count, list_start, key, list_size}, less);
    return list_start;
  }

  // All lists with room are written.
  void lists_written() {
    if (arena_filled_ > arena_written_)
      arena_written(arena_filled_);
  }

  void prefetch(Key key) const { pairs_.prefetch(key); }

private:
  using Pair = typename TrackedPairs<Id, Place>::Pair;
  static constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();

  // Write the lists of the queue. One thread reads the slots from the front and writes each list from its
  // front, another does the same from the back, so neither needs to know how many offsets the other finds.
  template <class Pause>
  void write_places(const MergeSlots<Id, Place> &slots, size_t id_count, Pause pause, ThreadTeam &team) {
    using Listed = ListedPairs<Id, Place>;
    Listed upwards(id_count);
    for (const Waiting &waiting : queue_)
      upwards.add(Keys::left(waiting.key), Keys::right(waiting.key), static_cast<Place>(waiting.list_start));
    upwards.place();
    Listed downwards = upwards;
    auto cell_in = [](Listed &listed, Key key) -> Place & {
      return listed.cell_of(Keys::left(key), Keys::right(key)).next;
    };
    for (const Waiting &waiting : queue_)
      cell_in(downwards, waiting.key) += waiting.list_size;

    const Id *const ids = slots.ids();
    Place *const places = arena();
    const uint64_t last = slots.size() - 1, middle = threads_for(slots, team) > 1 ? last / 2 : last;
    // Offsets of pairs that are not listed overwrite each other after all lists. Those of the second thread
    // use another cache line.
    const uint64_t sink0 = arena_used_, sink1 = sink0 + 64;
    auto read_upwards = [&] {
      in_pieces(0, middle, pause, [&](uint64_t start, uint64_t stop) {
        for (uint64_t at = start; at < stop; at++) {
          auto &cell = upwards.cell_of(ids[at], ids[at + 1]);
          const bool is_listed = cell.left == ids[at];
          places[is_listed ? cell.next : sink0] = static_cast<Place>(at);
          cell.next += is_listed;
        }
      });
    };
    auto read_downwards = [&] {
      for (uint64_t at = last; at-- > middle;) {
        auto &cell = downwards.cell_of(ids[at], ids[at + 1]);
        const bool is_listed = cell.left == ids[at];
        cell.next -= is_listed;
        places[is_listed ? cell.next : sink1] = static_cast<Place>(at);
      }
    };
    if (middle == last)
      read_upwards();
    else
      team.run([&](unsigned thread) {
        if (thread == 0)
          read_upwards();
        else if (thread == 1)
          read_downwards();
      });
    for (const Waiting &waiting : queue_)
      if (cell_in(upwards, waiting.key) != cell_in(downwards, waiting.key))
        throw std::logic_error("a pair stands at other places than were counted");
  }

  // Make room among the tracked pairs, if necessary by raising their threshold.
  void forget() {
    CountHistogram histogram;
    pairs_.for_each([&](const Pair &pair) { histogram.add(pair.count, 0); });
    min_tracked_count_ = std::max(
        min_tracked_count_, std::min(threshold_, histogram.reached_by(max_tracked_pairs_ / 2, unlimited)));
    pairs_.keep([&](const Pair &pair) { return pair.count >= min_tracked_count_; });
    max_tracked_pairs_ = std::max<uint64_t>(max_tracked_pairs_, 2 * pairs_.size());
  }

  template <class Less> void push(const Waiting &waiting, Less less) {
    queue_.push_back(waiting);
    std::push_heap(queue_.begin(), queue_.end(), less);
  }

  // Check the limit for this many offsets of the arena, since written pages stay resident.
  void expect_arena(uint64_t places) {
    if (places <= arena_expected_)
      return;
    limit_.owe((places - arena_expected_) * sizeof(Place));
    arena_expected_ = places;
  }
  void arena_written(uint64_t places) {
    if (places <= arena_written_)
      return;
    limit_.settle((places - arena_written_) * sizeof(Place));
    arena_written_ = places;
  }

  static constexpr uint64_t arena_step = uint64_t{1} << 18; // offsets, when lists are added one by one

  const MemoryLimit &limit_;
  const bool only_bytes_;
  const uint64_t floor_;
  uint64_t min_tracked_count_, threshold_ = unlimited, max_tracked_pairs_;
  TrackedPairs<Id, Place> pairs_;
  std::unique_ptr<Place[], decltype(&std::free)> arena_;
  uint64_t arena_used_ = 0;
  uint64_t arena_expected_ = 0, arena_filled_ = 0, arena_written_ = 0; // the maximum so far of each
  std::vector<Waiting> queue_;
};

} // namespace bpe
