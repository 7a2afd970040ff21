#include "merge_pretoken.hpp"

#include <algorithm>
#include <bit>

namespace bpe {

namespace {

// A key is rank * 16 + lane, so the least key of a group names the lowest rank and, of equals, the leftmost
// lane. Keys stay below 2^26; signed compares, which plain SSE2 has, order them.
constexpr unsigned lane_bits = 4;
constexpr uint32_t lanes = 1u << lane_bits;
constexpr uint32_t lane_mask = lanes - 1;
constexpr uint32_t dead_key = 0x7FFFFFFF;
constexpr uint32_t end_key = PairTable::no_rank << lane_bits; // this or more: no merge is left

uint32_t key_of(uint32_t rank, uint32_t lane) {
  return rank << lane_bits | (lane & lane_mask);
}

// The least of sixteen keys: halves folded onto each other, which compilers turn into vector minima.
inline uint32_t least_key(const uint32_t *keys) {
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

} // namespace

size_t merge_short(const Vocabulary &vocabulary, const uint8_t *bytes, size_t size, uint32_t *symbols) {
  // padded[0] and padded[size + 1 ...] merge with nothing, so the ends need no case of their own.
  uint32_t padded[lanes + 2];
  uint32_t *const symbol = padded + 1;
  alignas(64) uint32_t keys[lanes];
  padded[0] = PairTable::no_symbol;
  symbol[lanes] = PairTable::no_symbol;
  for (uint32_t i = 0; i < lanes; ++i)
    keys[i] = dead_key;
  for (uint32_t i = 0; i < size; ++i)
    symbol[i] = vocabulary.symbol_of_byte(bytes[i]);
  for (uint32_t i = 0; i + 1 < size; ++i)
    keys[i] = key_of(vocabulary.rank_of_bytes(bytes[i], bytes[i + 1]), i);

  uint32_t alive = (1u << size) - 1; // lanes at which a symbol starts
  for (;;) {
    const uint32_t key = least_key(keys);
    if (key >= end_key)
      break;
    const uint32_t place = key & lane_mask;
    const uint32_t product = vocabulary.product(key >> lane_bits);
    uint32_t after = alive & ~1u << place;
    const int right = std::countr_zero(after);
    after &= after - 1;
    const int next = std::countr_zero(after | 1u << lanes);
    const uint32_t before = alive & ((1u << place) - 1);
    const int previous = 31 - std::countl_zero(before); // -1: none, padded[0]
    alive &= ~(1u << right);
    symbol[place] = product;
    keys[right] = dead_key;
    keys[place] = key_of(vocabulary.rank(product, symbol[next]), place);
    if (before)
      keys[previous] = key_of(vocabulary.rank(symbol[previous], product), static_cast<uint32_t>(previous));
  }
  size_t count = 0;
  for (; alive; alive &= alive - 1)
    symbols[count++] = symbol[std::countr_zero(alive)];
  return count;
}

// The stored key of a group, at each level above the leaves, is its least key with the lane of the group
// itself.
void MergeScratch::set_group(uint32_t group) {
  for (size_t level = 0; level + 1 < level_starts_.size(); ++level) {
    const uint32_t least = least_key(keys_.data() + level_starts_[level] + size_t{group} * lanes);
    uint32_t &stored = keys_[level_starts_[level + 1] + group];
    const uint32_t key = key_of(least >> lane_bits, group);
    if (stored == key)
      return; // and so are all above
    stored = key;
    group >>= lane_bits;
  }
}

void MergeScratch::set_groups(uint32_t a, uint32_t b, uint32_t c) {
  a >>= lane_bits, b >>= lane_bits, c >>= lane_bits;
  set_group(a);
  if (b != a)
    set_group(b);
  if (c != b && c != a)
    set_group(c);
}

const std::vector<uint32_t> &MergeScratch::merge_long(const Vocabulary &vocabulary, const uint8_t *bytes,
                                                      size_t size) {
  const uint32_t none = UINT32_MAX; // no neighbour: before the first and after the last
  const uint32_t count = static_cast<uint32_t>(size);
  symbols_.resize(size);
  next_.resize(size);
  previous_.resize(size);
  level_starts_.clear();
  size_t total = 0;
  for (size_t width = size;; width = (width + lanes - 1) / lanes) {
    level_starts_.push_back(total);
    total += (width + lanes - 1) / lanes * lanes;
    if (width <= lanes)
      break;
  }
  keys_.assign(total, dead_key);
  for (uint32_t i = 0; i < count; ++i) {
    symbols_[i] = vocabulary.symbol_of_byte(bytes[i]);
    next_[i] = i + 1 < count ? i + 1 : none;
    previous_[i] = i - 1; // none at 0
    if (i + 1 < count)
      keys_[i] = key_of(vocabulary.rank_of_bytes(bytes[i], bytes[i + 1]), i);
  }
  for (size_t level = 0; level + 1 < level_starts_.size(); ++level) {
    const size_t groups = (level_starts_[level + 1] - level_starts_[level]) / lanes;
    for (size_t group = 0; group < groups; ++group) {
      const uint32_t least = least_key(keys_.data() + level_starts_[level] + group * lanes);
      keys_[level_starts_[level + 1] + group] = key_of(least >> lane_bits, static_cast<uint32_t>(group));
    }
  }

  for (;;) {
    size_t level = level_starts_.size() - 1;
    uint32_t key = least_key(keys_.data() + level_starts_[level]);
    if (key >= end_key)
      break;
    uint32_t place = key & lane_mask;
    while (level-- > 0) {
      key = least_key(keys_.data() + level_starts_[level] + size_t{place} * lanes);
      place = place << lane_bits | (key & lane_mask);
    }
    const uint32_t product = vocabulary.product(key >> lane_bits);
    const uint32_t right = next_[place];
    const uint32_t next = next_[right];
    const uint32_t previous = previous_[place];
    symbols_[place] = product;
    next_[place] = next;
    keys_[right] = dead_key;
    keys_[place] = dead_key;
    if (next != none) {
      previous_[next] = place;
      keys_[place] = key_of(vocabulary.rank(product, symbols_[next]), place);
    }
    if (previous != none)
      keys_[previous] = key_of(vocabulary.rank(symbols_[previous], product), previous);
    set_groups(place, previous != none ? previous : place, right);
  }
  result_.clear();
  for (uint32_t place = 0; place != none; place = next_[place])
    result_.push_back(symbols_[place]);
  return result_;
}

void MergeScratch::trim() {
  if (symbols_.capacity() <= size_t{1} << 20)
    return;
  for (std::vector<uint32_t> *values : {&symbols_, &next_, &previous_, &result_, &keys_})
    std::vector<uint32_t>().swap(*values);
}

} // namespace bpe
