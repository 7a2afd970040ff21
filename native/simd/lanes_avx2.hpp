// Eight 32-bit lanes with gathers. Include only in sources compiled with -mavx2.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace bpe {
namespace {

struct Avx2Lanes {
  static constexpr size_t width = 8;
  static constexpr size_t fewest = 2;      // pretokens; fewer are faster interleaved
  static constexpr size_t fewest_long = 3; // pretokens of more than 15 bytes; fewer are faster one by one
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
  // Load sixteen bytes from every fourth of eight pointers.
  [[gnu::always_inline]] static inline Vector load_fourths(const uint8_t *const *places) {
    const auto load = [](const uint8_t *p) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(p)); };
    return (Vector)_mm256_inserti128_si256(_mm256_castsi128_si256(load(places[0])), load(places[4]), 1);
  }
  // Transpose four rows into four words per lane: half h of out[j] holds the words of lane 4 * h + j.
  [[gnu::always_inline]] static inline void transpose4x4(const Vector *rows, Vector *out) {
    const __m256i a = _mm256_unpacklo_epi32((__m256i)rows[0], (__m256i)rows[1]);
    const __m256i b = _mm256_unpacklo_epi32((__m256i)rows[2], (__m256i)rows[3]);
    const __m256i c = _mm256_unpackhi_epi32((__m256i)rows[0], (__m256i)rows[1]);
    const __m256i d = _mm256_unpackhi_epi32((__m256i)rows[2], (__m256i)rows[3]);
    out[0] = (Vector)_mm256_unpacklo_epi64(a, b);
    out[1] = (Vector)_mm256_unpackhi_epi64(a, b);
    out[2] = (Vector)_mm256_unpacklo_epi64(c, d);
    out[3] = (Vector)_mm256_unpackhi_epi64(c, d);
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
