// Eight 32-bit lanes with gathers. Include only in sources compiled with -mavx2.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace bpe {
namespace {

struct Avx2Lanes {
  static constexpr size_t width = 8;
  static constexpr size_t fewest = 3; // pretokens; fewer are faster one by one
  using Vector = int32_t __attribute__((vector_size(32)));
  using Unsigned = uint32_t __attribute__((vector_size(32)));

  [[gnu::always_inline]] static inline bool any(Vector v) {
    return _mm256_testz_si256((__m256i)v, (__m256i)v) == 0;
  }
  // Load base[index] in each lane.
  [[gnu::always_inline]] static inline Vector gather(const uint32_t *base, Vector index) {
    return (Vector)_mm256_i32gather_epi32(reinterpret_cast<const int *>(base), (__m256i)index, 4);
  }
  // Load four bytes from base + offset in each lane.
  [[gnu::always_inline]] static inline Vector gather_bytes(const uint8_t *base, Vector offset) {
    return (Vector)_mm256_i32gather_epi32(reinterpret_cast<const int *>(base), (__m256i)offset, 1);
  }
  // Load a 64-bit word per lane, and split it into its low and high half.
  [[gnu::always_inline]] static inline void gather_halves(const uint64_t *base, Vector index, Vector &low,
                                                          Vector &high) {
    const long long *const words = reinterpret_cast<const long long *>(base);
    const __m256i a = _mm256_i32gather_epi64(words, _mm256_castsi256_si128((__m256i)index), 8);
    const __m256i b = _mm256_i32gather_epi64(words, _mm256_extracti128_si256((__m256i)index, 1), 8);
    const __m256 lows = _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88); // lanes 0 1 4 5 2 3 6 7
    const __m256 highs = _mm256_shuffle_ps((__m256)a, (__m256)b, 0xDD);
    low = (Vector)_mm256_permute4x64_epi64((__m256i)lows, 0xD8);
    high = (Vector)_mm256_permute4x64_epi64((__m256i)highs, 0xD8);
  }
};

} // namespace
} // namespace bpe
