// Eight 32-bit lanes and their gathers. Only for sources compiled with -mavx2.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace bpe {
namespace {

struct Avx2Lanes {
  static constexpr size_t width = 8;
  static constexpr size_t fewest = 2;      // pretokens; fewer are quicker in turns
  static constexpr size_t fewest_long = 3; // of more than 15 bytes; fewer are quicker by sweeps
  using Vector = int32_t __attribute__((vector_size(32)));
  using Unsigned = uint32_t __attribute__((vector_size(32)));

  [[gnu::always_inline]] static inline bool any(Vector v) {
    return _mm256_testz_si256((__m256i)v, (__m256i)v) == 0;
  }
  // base[index] of each lane.
  [[gnu::always_inline]] static inline Vector gather(const uint32_t *base, Vector index) {
    return (Vector)_mm256_i32gather_epi32(reinterpret_cast<const int *>(base), (__m256i)index, 4);
  }
  // Four bytes from base + offset on.
  [[gnu::always_inline]] static inline Vector gather_bytes(const uint8_t *base, Vector offset) {
    return (Vector)_mm256_i32gather_epi32(reinterpret_cast<const int *>(base), (__m256i)offset, 1);
  }
  // One lane of sixteen vectors: first[0], first[width], first[2 * width] ...
  [[gnu::always_inline]] static inline void store_column(const uint32_t *first, uint32_t *out) {
    const int *const words = reinterpret_cast<const int *>(first);
    const __m256i lines = _mm256_set_epi32(56, 48, 40, 32, 24, 16, 8, 0);
    __m256i *const halves = reinterpret_cast<__m256i *>(out);
    _mm256_storeu_si256(halves, _mm256_i32gather_epi32(words, lines, 4));
    _mm256_storeu_si256(halves + 1, _mm256_i32gather_epi32(words + 64, lines, 4));
  }
  // The same of 64-bit words, their low and high halves apart.
  [[gnu::always_inline]] static inline void gather_halves(const uint64_t *base, Vector index, Vector &low,
                                                          Vector &high) {
    const long long *const words = reinterpret_cast<const long long *>(base);
    const __m256i a = _mm256_i32gather_epi64(words, _mm256_castsi256_si128((__m256i)index), 8);
    const __m256i b = _mm256_i32gather_epi64(words, _mm256_extracti128_si256((__m256i)index, 1), 8);
    const __m256 lows = _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88); // 0 1 4 5 2 3 6 7 of the lanes
    const __m256 highs = _mm256_shuffle_ps((__m256)a, (__m256)b, 0xDD);
    low = (Vector)_mm256_permute4x64_epi64((__m256i)lows, 0xD8);
    high = (Vector)_mm256_permute4x64_epi64((__m256i)highs, 0xD8);
  }
};

} // namespace
} // namespace bpe
