// Pretokens to cache keys and their hashes.
//
// Built for each SIMD variant, so nothing here may become a symbol that variants share. Sixteen at a time
// with AVX-512 (make_keys_avx512.hpp), one by one elsewhere.
#pragma once

#include "cache/cache_key.hpp"
#include "cache/key_walk.hpp"
#include "text/wordless_leads.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// Pretokens end to end: the first is origin + [start, ends[0]), number i is origin + [ends[i - 1], ends[i]).
// None is empty; bytes up to `readable` may be read.
struct PretokenSpans {
  const uint8_t *origin;
  uint32_t start;
  const uint32_t *ends;
  size_t count;
  const uint8_t *readable;
};

// Keys and hashes of up to 64 pretokens, but not of those that are not looked up whole: of more than
// CacheKey::max_bytes, or of more than 3 bytes that begin with a character of three that words are not made
// of (most of CJK and kana are split into characters). Returns a bit for each of these; what stands in their
// places means nothing, and so do up to key_spare more elements of both arrays.
using MakeKeys = uint64_t (*)(const PretokenSpans &run, CacheKey *keys, uint32_t *hashes);
constexpr size_t key_spare = 16;

namespace {

inline bool is_split(uint8_t first_byte, size_t size) { // one condition, one branch
  return (size > CacheKey::max_bytes) | ((size > 3) & is_wordless_lead(first_byte) & (first_byte < 0xF0));
}

struct KeyMask {
  uint64_t low, high, length;
};

// For a pretoken's size: which of sixteen loaded bytes are its own, and the length in its place.
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

// Of 1 to CacheKey::max_bytes bytes.
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

// One by one, up to the first that is split; returns its number.
inline size_t make_keys_to_split(const PretokenSpans &run, CacheKey *keys, uint32_t *hashes) {
  const uint8_t *bytes = run.origin + run.start;
  size_t i = 0;
  for (; i < run.count; ++i) {
    const uint8_t *const end = run.origin + run.ends[i];
    const size_t size = static_cast<size_t>(end - bytes);
    if (is_split(*bytes, size)) [[unlikely]]
      break;
    const CacheKey key = key_of(bytes, size, run.readable);
    keys[i] = key;
    hashes[i] = key.hash();
    bytes = end;
  }
  return i;
}

inline uint64_t make_keys(const PretokenSpans &run, CacheKey *keys, uint32_t *hashes) {
  PretokenSpans rest = run;
  uint64_t split = 0;
  for (size_t done = 0;;) {
    const size_t made = make_keys_to_split(rest, keys + done, hashes + done);
    if (made == rest.count)
      return split;
    done += made;
    split |= uint64_t{1} << done++;
    rest.start = rest.ends[made];
    rest.ends += made + 1;
    rest.count -= made + 1;
  }
}

} // namespace
} // namespace bpe
