// Which pairs there are, how often each occurs, where it stands, and which is the best.
//
// Only pairs that occur at least `threshold` times are known: counts only fall (see trainer.hpp), so a pair
// below it cannot be the next merge while a known one is at or above it. When the queue runs dry the
// threshold is lowered and the slots are scanned again. That is exact for any choice of thresholds; it saves
// most of the lists, since the rare pairs are many and most are never merged.
//
// The places of a pair are a list written once, ascending, of the exact size needed; entries become stale as
// other merges take the ids away and are recognised on reading. Lists lie in one arena. It never needs more
// than two places a slot: a scan lists at most one a slot, and each of the merges after it, which are fewer
// than the slots, appends at most one, as the list of the left pair fits into the room of the list that is
// used up.
#pragma once

#include "merge_slots.hpp"
#include "thread_team.hpp"

#include <bit>
#include <cstdlib>
#include <memory>
#include <new>

namespace bpe {

template <class Id, class Place> class PairIndex {
public:
  // Two ids side by side in one number; the lower pair is the lower number.
  using Key = std::conditional_t<sizeof(Id) == 2, uint32_t, uint64_t>;
  static constexpr int id_bits = 8 * sizeof(Id);
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  static Key key(Id left, Id right) { return static_cast<Key>(left) << id_bits | right; }
  static Id left(Key key) { return static_cast<Id>(key >> id_bits); }
  static Id right(Key key) { return static_cast<Id>(key); }

  struct Pair {
    uint64_t count;      // 0 once merged
    uint64_t list_start; // in the arena
    Place list_size;
    Key key;
  };

  explicit PairIndex(uint64_t slots)
      : arena_(static_cast<Place *>(std::malloc(2 * slots * sizeof(Place) + 1)), std::free) {
    if (!arena_) // only what is written becomes resident
      throw std::bad_alloc();
  }

  uint64_t threshold() const { return threshold_; }
  Place *arena() const { return arena_.get(); }
  Pair &pair(uint32_t number) { return pairs_[number]; }

  // Forgets everything, sets a threshold for some `wanted` pairs, but at least `floor` and below the last
  // one, and lists the pairs that reach it and are allowed(left, right). After that best() works with `less`,
  // a strict order of (count, key).
  //
  // Each thread of the team reads a range of the slots; thread 0, the caller's, calls pause().
  template <class Allowed, class Less, class Pause>
  void scan(const MergeSlots<Id, Place> &slots, const Id *ids, uint64_t wanted, uint64_t floor,
            Allowed allowed, Less less, Pause pause, ThreadTeam &team) {
    pairs_.clear();
    queue_.clear();
    table_.reset();
    const unsigned threads = slots.size() < slots_for_threads ? 1 : std::min(team.size(), max_threads);
    auto for_each_pair = [&](auto visit) { // visit(thread, place, count), the places of each thread ascending
      auto work = [&](unsigned thread) {
        if (thread < threads)
          slots.for_each_pair(
              slots.size() * thread / threads, slots.size() * (thread + 1) / threads,
              [&](Place at, uint64_t count) { visit(thread, at, count); },
              [&] {
                if (thread == 0)
                  pause();
              });
      };
      if (threads == 1)
        work(0);
      else
        team.run(work);
    };
    // Counts by a hash of the pair are too high at worst. They keep all but a few rare pairs out of the exact
    // tables, which then stay in the cache however many pairs there are.
    int sum_bits = std::clamp<int>(std::bit_width(slots.size()), 16, 22); // 32 MiB at most
    std::vector<std::vector<uint64_t>> sums_of(threads, std::vector<uint64_t>(uint64_t{1} << sum_bits, 0));
    auto sum_of = [&](unsigned thread, Key key) -> uint64_t & {
      return sums_of[thread][hash(key) >> (64 - sum_bits)];
    };
    for_each_pair([&](unsigned thread, Place at, uint64_t count) {
      sum_of(thread, key(ids[at], ids[at + 1])) += count;
    });
    std::vector<uint64_t> &sums = sums_of.front();
    for (unsigned thread = 1; thread < threads; thread++) {
      for (size_t i = 0; i < sums.size(); i++)
        sums[i] += sums_of[thread][i];
      std::vector<uint64_t>().swap(sums_of[thread]);
    }
    threshold_ = std::max(floor, std::min(threshold_ / 2, reached_by(sums, wanted)));

    std::vector<Part> parts(threads);
    for_each_pair([&](unsigned thread, Place at, uint64_t count) {
      const Key pair_key = key(ids[at], ids[at + 1]);
      if (sum_of(0, pair_key) >= threshold_)
        parts[thread].count(pair_key, count);
    });
    for (Part &part : parts) {
      for (Counted &counted : part.pairs) {
        const uint32_t number = find_or_add(counted.key);
        Pair &pair = pairs_[number];
        counted.number = number;
        counted.next = std::exchange(pair.list_size, pair.list_size + static_cast<Place>(counted.places));
        pair.count += counted.count;
      }
    }
    arena_used_ = 0;
    for (uint32_t number = 0; number < pairs_.size(); number++) {
      Pair &pair = pairs_[number];
      if (pair.count < threshold_ || !allowed(left(pair.key), right(pair.key))) {
        pair.count = 0;
        continue;
      }
      pair.list_start = arena_used_;
      arena_used_ += pair.list_size;
      queue_.push_back({pair.count, pair.key, number});
    }
    for (Part &part : parts)
      for (Counted &counted : part.pairs)
        counted.next =
            pairs_[counted.number].count == 0 ? no_list : counted.next + pairs_[counted.number].list_start;
    for_each_pair([&](unsigned thread, Place at, uint64_t) {
      const Key pair_key = key(ids[at], ids[at + 1]);
      if (sum_of(0, pair_key) < threshold_)
        return;
      uint64_t &next = parts[thread].find(pair_key).next;
      if (next != no_list)
        arena_[next++] = at;
    });
    std::make_heap(queue_.begin(), queue_.end(), less);
  }

  // The number of the best pair, which leaves the queue; `none` if none is at or above the threshold.
  template <class Less> uint32_t best(Less less) {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), less);
      Waiting top = queue_.back();
      queue_.pop_back();
      uint64_t count = pairs_[top.number].count;
      if (count == top.count)
        return top.number;
      if (count >= threshold_)
        push({count, top.key, top.number}, less); // its count fell since it was queued
    }
    return none;
  }

  // `count` occurrences of the pair are gone.
  void subtract(Key key, uint64_t count) {
    uint32_t number = table_.find(key);
    if (number != none && pairs_[number].count != 0)
      pairs_[number].count -= count;
  }

  // Adds a pair at or above the threshold with room for its list, taken from `room` if it fits there.
  template <class Less>
  uint64_t add(Key key, uint64_t count, Place list_size, uint64_t &room, uint64_t room_stop, Less less) {
    uint64_t &from = room + list_size <= room_stop ? room : arena_used_;
    uint64_t list_start = from;
    from += list_size;
    uint32_t number = find_or_add(key);
    pairs_[number] = {count, list_start, list_size, key};
    push({count, key, number}, less);
    return list_start;
  }

  void prefetch(Key key) const { table_.prefetch(key); }

  struct Waiting {
    uint64_t count;
    Key key;
    uint32_t number;
  };

private:
  static uint64_t hash(Key key) { return key * 0x9E3779B97F4A7C15u; } // the high bits are the good ones

  // Open addressing from key to the number of a pair; keys are never 0, as no id of a pair is the separator.
  class Table {
  public:
    void reset() {
      bits_ = 12;
      used_ = 0;
      cells_.assign(size_t{1} << bits_, {0, none});
    }
    uint32_t find(Key key) const { return cells_[cell_of(key)].number; }
    void prefetch(Key key) const { __builtin_prefetch(&cells_[hash(key) >> (64 - bits_)]); }
    // The number stored for the key, which is set to `number` if there was none.
    uint32_t find_or_add(Key key, uint32_t number) {
      size_t at = cell_of(key);
      if (cells_[at].key == key)
        return cells_[at].number;
      if (2 * ++used_ > cells_.size()) {
        grow();
        at = cell_of(key);
      }
      cells_[at] = {key, number};
      return number;
    }

  private:
    struct Cell {
      Key key;
      uint32_t number;
    };
    size_t cell_of(Key key) const {
      size_t at = hash(key) >> (64 - bits_);
      while (cells_[at].key != key && cells_[at].key != 0)
        at = (at + 1) & (cells_.size() - 1);
      return at;
    }
    void grow() {
      std::vector<Cell> old(size_t{1} << ++bits_, {0, none});
      old.swap(cells_);
      for (const Cell &cell : old)
        if (cell.key != 0)
          cells_[cell_of(cell.key)] = cell;
    }
    int bits_ = 0;
    size_t used_ = 0;
    std::vector<Cell> cells_;
  };

  // What one thread finds in its range of the slots.
  struct Counted {
    Key key;
    uint32_t number; // among pairs_
    uint64_t count, places;
    uint64_t next; // where its next place goes in the arena, or no_list
  };
  struct Part {
    Table table;
    std::vector<Counted> pairs;
    Part() { table.reset(); }
    Counted &find(Key key) { return pairs[table.find(key)]; }
    void count(Key key, uint64_t count) {
      const uint32_t place = table.find_or_add(key, static_cast<uint32_t>(pairs.size()));
      if (place == pairs.size())
        pairs.push_back({key, 0, 0, 0, 0});
      pairs[place].count += count;
      pairs[place].places++;
    }
  };
  static constexpr uint64_t no_list = std::numeric_limits<uint64_t>::max();
  static constexpr uint64_t slots_for_threads = 1 << 20; // some 10 ms
  static constexpr unsigned max_threads = 8;             // each has sums of 32 MiB

  // A number that about `wanted` of the sums reach; a power of two times 4 to 7.
  static uint64_t reached_by(const std::vector<uint64_t> &sums, uint64_t wanted) {
    std::array<uint64_t, 256> sizes{};
    auto group = [](uint64_t sum) { // by the highest three bits
      int shift = std::max(0, static_cast<int>(std::bit_width(sum)) - 3);
      return 4 * shift + (sum >> shift);
    };
    for (uint64_t sum : sums)
      sizes[group(sum)]++;
    size_t chosen = sizes.size() - 1;
    for (uint64_t reached = sizes[chosen]; chosen > 1 && reached + sizes[chosen - 1] <= wanted;)
      reached += sizes[--chosen];
    return chosen < 8 ? chosen : uint64_t{chosen % 4 + 4} << (chosen / 4 - 1);
  }

  uint32_t find_or_add(Key key) {
    uint32_t number = table_.find_or_add(key, static_cast<uint32_t>(pairs_.size()));
    if (number == pairs_.size())
      pairs_.push_back({0, 0, 0, key});
    return number;
  }
  template <class Less> void push(const Waiting &waiting, Less less) {
    queue_.push_back(waiting);
    std::push_heap(queue_.begin(), queue_.end(), less);
  }

  uint64_t threshold_ = std::numeric_limits<uint64_t>::max();
  std::unique_ptr<Place[], decltype(&std::free)> arena_;
  uint64_t arena_used_ = 0;
  std::vector<Pair> pairs_;
  std::vector<Waiting> queue_;
  Table table_;
};

} // namespace bpe
