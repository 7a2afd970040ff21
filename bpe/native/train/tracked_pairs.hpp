// The pairs that occur often enough to matter: (left, right) -> how often, and at how many offsets.
//
// Open addressing. A pair takes one cell of 16 bytes (24 with wide IDs), so a look-up costs one cache miss.
// Cells move when the table grows or pairs are forgotten, so pointers are invalid after add(). A count of 0
// marks a removed pair; its cell is freed at the next growth.
#pragma once

#include "common/memory_limit.hpp"
#include "common/page_memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace bpe {

// Two IDs in one number, ordered like the pairs. No ID of a pair is 0, which is the separator.
template <class Id> struct PairKey {
  using Key = std::conditional_t<sizeof(Id) == 2, uint32_t, uint64_t>;
  static constexpr int id_bits = 8 * sizeof(Id);
  static Key of(Id left, Id right) { return static_cast<Key>(left) << id_bits | right; }
  static Id left(Key key) { return static_cast<Id>(key >> id_bits); }
  static Id right(Key key) { return static_cast<Id>(key); }
  static uint64_t hash(Key key) { return key * 0x9E3779B97F4A7C15u; } // the high bits are well mixed
};

// Number of pairs, and of their offsets, by the highest three bits of the count.
class CountHistogram {
public:
  void add(uint64_t count, uint64_t places) {
    pairs_[group(count)]++;
    places_[group(count)] += places;
  }
  // Return the lowest count reached by at most most_pairs pairs with at most most_places offsets.
  uint64_t reached_by(uint64_t most_pairs, uint64_t most_places) const {
    uint64_t pairs = 0, places = 0;
    size_t at = pairs_.size();
    for (; at > 1; at--) {
      pairs += pairs_[at - 1];
      places += places_[at - 1];
      if (pairs > most_pairs || places > most_places)
        break;
    }
    return lowest_of(at);
  }
  // Return a count that at least one pair reaches.
  uint64_t reached_by_some() const {
    size_t at = pairs_.size() - 1;
    while (at > 1 && pairs_[at] == 0)
      at--;
    return lowest_of(at);
  }

private:
  static size_t group(uint64_t count) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(count)) - 3);
    return static_cast<size_t>(4 * shift) + static_cast<size_t>(count >> shift);
  }
  static uint64_t lowest_of(size_t group) {
    return group < 8     ? group
           : group > 251 ? std::numeric_limits<uint64_t>::max()
                         : uint64_t{group % 4 + 4} << (group / 4 - 1);
  }
  static constexpr size_t groups = 256; // 4 * 61 + 7 is the last
  std::array<uint64_t, groups> pairs_{}, places_{};
};

template <class Id, class Place> class TrackedPairs {
public:
  using Key = typename PairKey<Id>::Key;
  struct Pair {
    uint64_t count; // weighted by the counts of the pretokens
    Key key;        // 0: an empty cell
    Place places;   // not weighted
  };

  // The limit is checked before the table grows and must outlive this object.
  explicit TrackedPairs(const MemoryLimit &limit) : limit_(&limit) { clear(); }

  size_t size() const { return used_; } // including removed pairs until they are cleared
  void prefetch(Key key) const { __builtin_prefetch(cells_ + home(key), 1); }
  Pair *find(Key key) {
    Pair &cell = cell_of(key);
    return cell.key == 0 ? nullptr : &cell;
  }
  // Return the pair, with a count and places of 0 if it is new.
  Pair &find_or_add(Key key) {
    Pair *cell = &cell_of(key);
    if (cell->key != 0)
      return *cell;
    if (used_ + 1 > cell_count_ / 10 * 7) {
      rebuild([](const Pair &) { return true; });
      cell = &cell_of(key);
    }
    used_++;
    *cell = {0, key, 0};
    return *cell;
  }
  template <class Visit> void for_each(Visit visit) const {
    for (size_t i = 0; i < cell_count_; i++)
      if (cells_[i].count != 0)
        visit(cells_[i]);
  }
  // Forget the other pairs.
  template <class Wanted> void keep(Wanted is_wanted) { rebuild(is_wanted); }
  void clear() {
    used_ = 0;
    allocate(first_cells);
  }

private:
  static constexpr size_t first_cells = 1 << 12;

  size_t home(Key key) const {
    return static_cast<size_t>(static_cast<unsigned __int128>(PairKey<Id>::hash(key)) * cell_count_ >> 64);
  }
  Pair &cell_of(Key key) const {
    size_t at = home(key);
    while (cells_[at].key != key && cells_[at].key != 0)
      at = at + 1 == cell_count_ ? 0 : at + 1;
    return cells_[at];
  }
  void allocate(size_t cells) {
    PageMemory fresh =
        cells > first_cells ? limit_->take(cells * sizeof(Pair)) : PageMemory(cells * sizeof(Pair));
    memory_ = std::move(fresh);
    cells_ = static_cast<Pair *>(memory_.data());
    cell_count_ = cells;
  }
  // Rebuild at most half full: doubling needs more memory and saves little time.
  template <class Wanted> void rebuild(Wanted is_wanted) {
    size_t kept = 0;
    for_each([&](const Pair &pair) { kept += is_wanted(pair); });
    const PageMemory old_memory = std::move(memory_);
    const Pair *old = cells_;
    const size_t old_count = cell_count_;
    allocate(std::max(first_cells, kept * 2));
    used_ = kept;
    for (size_t i = 0; i < old_count; i++)
      if (old[i].count != 0 && is_wanted(old[i]))
        cell_of(old[i].key) = old[i];
  }

  const MemoryLimit *limit_;
  PageMemory memory_;
  Pair *cells_ = nullptr;
  size_t cell_count_ = 0, used_ = 0;
};

} // namespace bpe
