// Compute cache keys from a window of text with known pretoken starts, 64 bytes at a time.
//
//     while there is room for a step: block = 64 bytes from the next start
//         for each pretoken that ends in the block: key = its bytes and size; hash = key.hash()
//
// A block starts at the start of a pretoken, so pretokens that end in it are contained in it. At most
// walk_step of them are processed; if there are more, the next block starts at the first one left.
#pragma once

#include "cache/key_walk.hpp"
#include "cache/short_key.hpp"
#include "text/wordless_leads.hpp"

#include <cstring>

namespace bpe {
namespace {

inline uint64_t bit(int place) {
  return uint64_t{1} << place;
}
inline uint64_t below(int place) {
  return bit(place) - 1;
}
inline int lowest(uint64_t mask) {
  return __builtin_ctzll(mask);
}
inline int highest(uint64_t mask) {
  return 63 - __builtin_clzll(mask);
}

// For a block that is not all ASCII: the boundaries before the first pretoken that is not looked up whole,
// and the size of that pretoken. Words are looked up whole whatever their length, since they repeat.
struct SplitAhead {
  uint64_t boundaries;
  size_t size; // 0: none
};
inline SplitAhead split_ahead(const uint8_t *block, uint64_t boundaries, uint64_t wordless) {
  while (wordless != 0) {
    const int place = lowest(wordless);
    const uint64_t up_to_place = below(place) | bit(place);
    const uint64_t starts = boundaries & up_to_place, ends = boundaries & ~up_to_place;
    if (ends == 0)
      break;
    const int start = starts != 0 ? highest(starts) : 0, end = lowest(ends);
    const size_t size = static_cast<size_t>(end - start);
    if (needs_cutting(block[start], size))
      return {boundaries & (below(start) | bit(start)), size};
    wordless &= ~below(end);
  }
  return {boundaries, 0};
}

// Record that item `item` is a long pretoken. The caller computes its key.
inline void add_long(WalkedKeys &out, size_t item, const uint8_t *bytes, size_t size) {
  out.bytes[item] = bytes;
  out.values[item] = static_cast<uint32_t>(size);
  out.long_items[out.long_count++] = static_cast<uint8_t>(item);
}

// Compute the keys of the first pretokens of a block one by one. block: the text at p, or a padded copy of
// its last bytes.
struct PlainBlockKeys {
  // Return the boundaries after the processed ones.
  static uint64_t make(const uint8_t *p, const uint8_t *, uint64_t boundaries, const uint8_t *readable,
                       WalkedKeys &out) {
    size_t i = out.count;
    const size_t stop = i + walk_step;
    int start = 0;
    for (; boundaries != 0 && i < stop; boundaries &= boundaries - 1) {
      const int end = lowest(boundaries);
      const size_t size = static_cast<size_t>(end - start);
      if (size > CacheKey::max_bytes) [[unlikely]] {
        add_long(out, i, p + start, size);
      } else {
        const CacheKey key = key_of(p + start, size, readable);
        out.keys[i] = key;
        out.hashes[i] = key.hash();
      }
      ++i;
      start = end;
    }
    out.count = i;
    return boundaries;
  }
};

template <class Simd, class BlockKeys>
bool walk_keys(const WindowView &window, size_t &at, const uint8_t *readable, WalkedKeys &out) {
  size_t offset = at;
  bool stopped = false;
  WalkedKeys made = out; // in registers
  while (offset < window.certain && made.count + walk_step <= made.room && !stopped) {
    uint64_t boundaries = bits_from(window.starts, offset) & ~uint64_t{1};
    const uint8_t *const p = window.origin + offset, *block = p;
    uint8_t tail[64];
    if (readable - p < 64) [[unlikely]] {
      std::memset(tail, 0, sizeof tail);
      std::memcpy(tail, p, static_cast<size_t>(readable - p));
      block = tail;
    }
    if (Simd::any_high(block)) [[unlikely]] {
      const SplitAhead split = split_ahead(block, boundaries, Simd::wordless_leads(block));
      boundaries = split.boundaries;
      stopped = split.size > 0;
    }
    if (boundaries == 0) [[unlikely]] {
      stopped = true;
      break;
    }
    const uint64_t rest = BlockKeys::make(p, block, boundaries, readable, made);
    stopped &= rest == 0;
    offset += static_cast<size_t>(highest(boundaries & ~rest));
  }
  at = offset;
  out.count = made.count;
  out.long_count = made.long_count;
  return stopped;
}

} // namespace
} // namespace bpe
