// Cache keys of short pretokens.
//
// Compiled once per SIMD variant, so nothing here may become a symbol shared by variants.
#pragma once

#include "cache/cache_key.hpp"
#include "text/wordless_leads.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

namespace {

// Return whether a pretoken is not looked up whole: it has more than CacheKey::max_bytes, or more than 3 and
// starts with a three-byte character outside words (most of CJK and kana are encoded by character).
inline bool needs_cutting(uint8_t first_byte, size_t size) { // one condition, so one branch
  return (size > CacheKey::max_bytes) | ((size > 3) & is_wordless_lead(first_byte) & (first_byte < 0xF0));
}

struct KeyMask {
  uint64_t low, high, length;
};

// Per pretoken size: a mask of the bytes of the pretoken among sixteen loaded bytes, with the length in its
// position.
constexpr auto key_masks = [] {
  struct {
    KeyMask of[CacheKey::max_bytes + 1];
  } masks{};
  for (uint64_t size = 1; size <= CacheKey::max_bytes; ++size) {
    masks.of[size].low = size >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
    masks.of[size].high = size <= 8 ? 0 : (uint64_t{1} << 8 * (size - 8)) - 1;
    masks.of[size].length = size << 56;
  }
  return masks;
}();

// 1 <= size <= CacheKey::max_bytes.
inline CacheKey key_of(const uint8_t *bytes, size_t size, const uint8_t *readable) {
  uint64_t low, high;
  if (readable - bytes >= 16) [[likely]] {
    std::memcpy(&low, bytes, 8);
    std::memcpy(&high, bytes + 8, 8);
  } else {
    uint8_t copy[16] = {};
    std::memcpy(copy, bytes, size);
    std::memcpy(&low, copy, 8);
    std::memcpy(&high, copy + 8, 8);
  }
  const KeyMask &mask = key_masks.of[size];
  return {low & mask.low, (high & mask.high) | mask.length};
}

} // namespace
} // namespace bpe
