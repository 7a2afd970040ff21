// Keys of pretokens of more than 15 bytes, and the comparison of their bytes.
//
// Both functions process whole registers to the end without data-dependent branches. Long pretokens are few
// but produce many of the IDs of a text, and nearly all of them are cache hits.
#pragma once

#include "cache/cache_key.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bpe {

// 16 <= size <= CacheKey::max_long_bytes. Each sixteen bytes are multiplied with each other. The independent
// products are added, each half separately.
inline CacheKey long_key(const uint8_t *bytes, size_t size) {
  constexpr uint64_t salts[2] = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F};
  uint64_t low = 0, high = 0, salt = size * salts[1];
  const auto add = [&](size_t place) {
    uint64_t words[2];
    std::memcpy(words, bytes + place, 16);
    const auto product =
        static_cast<unsigned __int128>(words[0] ^ (salts[0] + salt)) * (words[1] ^ (salts[1] - salt));
    low += static_cast<uint64_t>(product);
    high += static_cast<uint64_t>(product >> 64);
    salt += salts[0];
  };
  for (size_t place = 0; place + 16 < size; place += 16)
    add(place);
  add(size - 16); // overlaps the bytes before
  // The upper bits of a product's lower half and the lower bits of its upper half depend on the most input
  // bits.
  constexpr uint64_t hash_bits = (~uint64_t{0} >> 8) & ~((uint64_t{1} << CacheKey::long_size_bits) - 1);
  return {low ^ high << 32, (high << CacheKey::long_size_bits & hash_bits) | size};
}

// size >= 16.
inline bool equal_long(const uint8_t *a, const uint8_t *b, size_t size) {
  uint64_t difference = 0;
  const auto compare = [&](size_t place) {
    uint64_t words[4];
    std::memcpy(words, a + place, 16);
    std::memcpy(words + 2, b + place, 16);
    difference |= (words[0] ^ words[2]) | (words[1] ^ words[3]);
  };
  for (size_t place = 0; place + 16 < size; place += 16)
    compare(place);
  compare(size - 16);
  return difference == 0;
}

} // namespace bpe
