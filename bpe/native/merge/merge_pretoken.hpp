// One pretoken's bytes -> its symbols: the allowed merge of lowest rank, leftmost first, until none is left.
//
// merge_short holds up to 16 bytes in sixteen lanes and looks for the lowest of them each time. merge_long
// keeps a tree of minima over the places, sixteen children a node, so every merge costs O(log n) whatever the
// bytes and whatever the order of the ranks (a rank file may make a lower rank possible by a merge of a
// higher one). Texts seldom come here: see merge_in_turns.hpp, merge_by_sweeps.hpp and merge_by_windows.hpp.
// Cost: about 25 ns a byte short, 20 to 40 ns long. No thread state; a MergeScratch belongs to one thread.
//
// Rules is a Vocabulary, or what a Vocabulary is made from: symbol_of_byte(byte), rank_of_bytes(left, right),
// rank(left, right) with PairTable::no_rank and no_symbol, product(rank).
#pragma once

#include "common/page_memory.hpp"
#include "vocabulary/pair_table.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

inline constexpr size_t short_pretoken_bytes = 16;

namespace merge_keys {

// A key is rank * 16 + lane, so the least key of a group names the lowest rank and, of equals, the leftmost
// lane. Keys stay below 2^26; signed compares, which plain SSE2 has, order them.
inline constexpr unsigned lane_bits = 4;
inline constexpr uint32_t lanes = 1u << lane_bits;
inline constexpr uint32_t lane_mask = lanes - 1;
inline constexpr uint32_t dead = 0x7FFFFFFF;
inline constexpr uint32_t end = PairTable::no_rank << lane_bits; // this or more: no merge is left

inline uint32_t make(uint32_t rank, uint32_t lane) {
  return rank << lane_bits | (lane & lane_mask);
}

// The least of sixteen keys: halves folded onto each other, which compilers turn into vector minima.
inline uint32_t least(const uint32_t *keys) {
  int32_t m[8];
  for (int i = 0; i < 8; ++i) {
    const int32_t a = static_cast<int32_t>(keys[i]), b = static_cast<int32_t>(keys[i + 8]);
    m[i] = a < b ? a : b;
  }
  for (int i = 0; i < 4; ++i)
    m[i] = m[i] < m[i + 4] ? m[i] : m[i + 4];
  const int32_t a = m[0] < m[2] ? m[0] : m[2], b = m[1] < m[3] ? m[1] : m[3];
  return static_cast<uint32_t>(a < b ? a : b);
}

} // namespace merge_keys

// The symbols of bytes[0, size), 1 <= size <= 16, into symbols[0, result); symbols has room for `size`.
template <class Rules>
size_t merge_short(const Rules &rules, const uint8_t *bytes, size_t size, uint32_t *symbols) {
  using namespace merge_keys;
  // padded[0] and the lane behind the last merge with nothing, so the ends need no case of their own.
  uint32_t padded[lanes + 2];
  uint32_t *const symbol = padded + 1;
  alignas(64) uint32_t keys[lanes];
  padded[0] = PairTable::no_symbol;
  symbol[lanes] = PairTable::no_symbol;
  for (uint32_t i = 0; i < lanes; ++i)
    keys[i] = dead;
  for (uint32_t i = 0; i < size; ++i)
    symbol[i] = rules.symbol_of_byte(bytes[i]);
  for (uint32_t i = 0; i + 1 < size; ++i)
    keys[i] = make(rules.rank_of_bytes(bytes[i], bytes[i + 1]), i);

  uint32_t alive = (1u << size) - 1; // lanes at which a symbol starts
  for (;;) {
    const uint32_t key = least(keys);
    if (key >= end)
      break;
    const uint32_t place = key & lane_mask;
    const uint32_t product = rules.product(key >> lane_bits);
    uint32_t after = alive & ~1u << place;
    const int right = std::countr_zero(after);
    after &= after - 1;
    const int next = std::countr_zero(after | 1u << lanes);
    const uint32_t before = alive & ((1u << place) - 1);
    const int previous = 31 - std::countl_zero(before); // -1: none, padded[0]
    alive &= ~(1u << right);
    symbol[place] = product;
    keys[right] = dead;
    keys[place] = make(rules.rank(product, symbol[next]), place);
    if (before)
      keys[previous] = make(rules.rank(symbol[previous], product), static_cast<uint32_t>(previous));
  }
  size_t count = 0;
  for (; alive; alive &= alive - 1)
    symbols[count++] = symbol[std::countr_zero(alive)];
  return count;
}

// Working memory of merge_long: 21 bytes for each byte of the longest pretoken yet, less once trimmed.
//
// Merges of a giant pretoken jump about in it, so what belongs to a place lies together, in huge pages where
// the system has them: 16 MB of random digits as one pretoken fell from 7.8 s to 6.2 s.
class MergeScratch {
public:
  // The symbols of bytes[0, size), size >= 1, valid until the next call. At most 2^32 - 1 bytes.
  // Throws std::bad_alloc.
  template <class Rules>
  const std::vector<uint32_t> &merge_long(const Rules &rules, const uint8_t *bytes, size_t size);

  // Gives memory back if a long pretoken left more than 21 MiB.
  void trim() {
    if (places_memory_.bytes() > size_t{16} << 20)
      *this = MergeScratch();
  }

private:
  static constexpr uint32_t none = UINT32_MAX; // no neighbour: before the first and after the last

  struct Place {
    uint32_t symbol, next, previous;
    uint32_t unused; // a line holds four
  };

  void lay_out(size_t size);
  template <class T> static T *room(PageMemory &memory, size_t count) {
    if (memory.bytes() < count * sizeof(T))
      memory = PageMemory(count * sizeof(T));
    return static_cast<T *>(memory.data());
  }
  void set_groups(uint32_t a, uint32_t b, uint32_t c);
  void set_group(uint32_t group);
  uint32_t least_key(size_t level, size_t group) const {
    return merge_keys::least(keys_ + level_starts_[level] + group * merge_keys::lanes);
  }

  PageMemory places_memory_, keys_memory_;
  Place *places_ = nullptr;
  uint32_t *keys_ = nullptr; // all levels of the tree, the leaves first
  std::vector<uint32_t> result_;
  std::vector<size_t> level_starts_; // of each level in keys_; the last level is one group
};

inline void MergeScratch::lay_out(size_t size) {
  using merge_keys::lanes;
  places_ = room<Place>(places_memory_, size);
  level_starts_.clear();
  size_t total = 0;
  for (size_t width = size;; width = (width + lanes - 1) / lanes) {
    level_starts_.push_back(total);
    total += (width + lanes - 1) / lanes * lanes;
    if (width <= lanes)
      break;
  }
  keys_ = room<uint32_t>(keys_memory_, total);
  std::fill(keys_, keys_ + total, merge_keys::dead);
}

// The stored key of a group, at each level above the leaves, is its least key with the lane of the group
// itself.
inline void MergeScratch::set_group(uint32_t group) {
  using namespace merge_keys;
  for (size_t level = 0; level + 1 < level_starts_.size(); ++level) {
    uint32_t &stored = keys_[level_starts_[level + 1] + group];
    const uint32_t key = make(least_key(level, group) >> lane_bits, group);
    if (stored == key)
      return; // and so are all above
    stored = key;
    group >>= lane_bits;
  }
}

inline void MergeScratch::set_groups(uint32_t a, uint32_t b, uint32_t c) {
  a >>= merge_keys::lane_bits, b >>= merge_keys::lane_bits, c >>= merge_keys::lane_bits;
  set_group(a);
  if (b != a)
    set_group(b);
  if (c != b && c != a)
    set_group(c);
}

template <class Rules>
const std::vector<uint32_t> &MergeScratch::merge_long(const Rules &rules, const uint8_t *bytes, size_t size) {
  using namespace merge_keys;
  lay_out(size);
  const uint32_t count = static_cast<uint32_t>(size);
  for (uint32_t i = 0; i < count; ++i) {
    places_[i] = {rules.symbol_of_byte(bytes[i]), i + 1 < count ? i + 1 : none, i - 1, 0}; // none at 0
    if (i + 1 < count)
      keys_[i] = make(rules.rank_of_bytes(bytes[i], bytes[i + 1]), i);
  }
  for (size_t level = 0; level + 1 < level_starts_.size(); ++level) {
    const size_t groups = (level_starts_[level + 1] - level_starts_[level]) / lanes;
    for (size_t group = 0; group < groups; ++group)
      keys_[level_starts_[level + 1] + group] =
          make(least_key(level, group) >> lane_bits, static_cast<uint32_t>(group));
  }

  for (;;) {
    size_t level = level_starts_.size() - 1;
    uint32_t key = least_key(level, 0);
    if (key >= end)
      break;
    uint32_t place = key & lane_mask;
    while (level-- > 0) {
      key = least_key(level, place);
      place = place << lane_bits | (key & lane_mask);
    }
    const uint32_t product = rules.product(key >> lane_bits);
    const uint32_t right = places_[place].next;
    const uint32_t next = places_[right].next;
    const uint32_t previous = places_[place].previous;
    places_[place].symbol = product;
    places_[place].next = next;
    keys_[right] = dead;
    keys_[place] = dead;
    if (next != none) {
      places_[next].previous = place;
      keys_[place] = make(rules.rank(product, places_[next].symbol), place);
    }
    if (previous != none)
      keys_[previous] = make(rules.rank(places_[previous].symbol, product), previous);
    set_groups(place, previous != none ? previous : place, right);
  }
  result_.clear();
  for (uint32_t place = 0; place != none; place = places_[place].next)
    result_.push_back(places_[place].symbol);
  return result_;
}

} // namespace bpe
