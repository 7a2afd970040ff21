// Compute the keys of up to sixteen pretokens of a block, four at a time. Include only in sources compiled
// for simd_avx2.hpp.
//
// Always computes sixteen keys and never branches on the size of a pretoken: the mask of the block shows
// which pretokens are too long for a key.
#pragma once

#include "cache/walk_keys.hpp"

#include <immintrin.h>

namespace bpe {
namespace {

// Per pretoken size: a mask of the bytes of the pretoken among sixteen loaded bytes, with the length in its
// position; all zero if the pretoken is too long.
struct alignas(32) KeyBytes {
  uint8_t own[16], length[16];
};
constexpr auto key_bytes = [] {
  struct {
    KeyBytes of[65];
  } bytes{};
  for (unsigned size = 1; size <= CacheKey::max_bytes; ++size) {
    for (unsigned i = 0; i < size; ++i)
      bytes.of[size].own[i] = 0xFF;
    bytes.of[size].length[15] = static_cast<uint8_t>(size);
  }
  return bytes;
}();

struct Avx2BlockKeys {
  static constexpr size_t reads = 64 + 16; // bytes read from p

  static __m128i load(const void *from) { return _mm_loadu_si128(static_cast<const __m128i *>(from)); }

  // Return the products of the quarters of a key.
  static __m128i products(__m128i key) {
    const __m128i salted = _mm_add_epi32(key, load(CacheKey::salts));
    return _mm_mul_epu32(salted, _mm_srli_epi64(salted, 32));
  }
  // Sum the products of each of two keys and fold the sums into the lower half of their lanes.
  static __m128i folded(__m128i products, __m128i next_products) {
    const __m128i sums = _mm_add_epi64(_mm_unpacklo_epi64(products, next_products),
                                       _mm_unpackhi_epi64(products, next_products));
    return _mm_xor_si128(sums, _mm_srli_epi64(sums, 32));
  }

  // Return the boundaries where a pretoken of more than CacheKey::max_bytes ends.
  static uint64_t ends_of_long(uint64_t boundaries) {
    uint64_t near = boundaries | 1; // less than max_bytes after a start
    near |= near << 1;
    near |= near << 2;
    near |= near << 4;
    near |= near << (CacheKey::max_bytes - 8);
    return boundaries & ~(near << 1);
  }

  // See PlainBlockKeys.
  [[gnu::always_inline]] static uint64_t make(const uint8_t *p, const uint8_t *block, uint64_t boundaries,
                                              const uint8_t *readable, WalkedKeys &out) {
    if (static_cast<size_t>(readable - p) < reads) [[unlikely]]
      return PlainBlockKeys::make(p, block, boundaries, readable, out);
    CacheKey *const keys = out.keys + out.count;
    uint32_t *const hashes = out.hashes + out.count;
    uint64_t start = 0, rest = boundaries;
    for (unsigned i = 0; i < walk_step; i += 4) {
      __m128i product[4];
      for (unsigned k = 0; k < 4; ++k) {
        const uint64_t end = _tzcnt_u64(rest); // 64 after the last: the resulting key is overwritten
        rest = _blsr_u64(rest);
        const KeyBytes &bytes = key_bytes.of[end - start];
        const __m128i key = _mm_or_si128(_mm_and_si128(load(p + start), load(bytes.own)), load(bytes.length));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(keys + i + k), key);
        product[k] = products(key);
        start = end;
      }
      const __m128 first = _mm_castsi128_ps(folded(product[0], product[1]));
      const __m128 second = _mm_castsi128_ps(folded(product[2], product[3]));
      _mm_storeu_ps(reinterpret_cast<float *>(hashes + i), _mm_shuffle_ps(first, second, 0b10'00'10'00));
    }
    const uint64_t taken = boundaries ^ rest;
    for (uint64_t longs = ends_of_long(taken); longs != 0; longs &= longs - 1) [[unlikely]] {
      const int end = lowest(longs);
      const uint64_t before = taken & below(end);
      const int begin = before != 0 ? highest(before) : 0;
      const size_t item = out.count + static_cast<size_t>(_mm_popcnt_u64(before));
      add_long(out, item, p + begin, static_cast<size_t>(end - begin));
    }
    out.count += static_cast<size_t>(_mm_popcnt_u64(taken));
    return rest;
  }
};

} // namespace
} // namespace bpe
