// Sixteen 32-bit lanes with gathers. Include only in sources compiled with -mavx512f -mavx512vl.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace bpe {
namespace {

struct Avx512Lanes {
  static constexpr size_t width = 16;
  static constexpr size_t fewest = 3; // pretokens; fewer are faster one by one
  using Vector = int32_t __attribute__((vector_size(64)));
  using Unsigned = uint32_t __attribute__((vector_size(64)));

  [[gnu::always_inline]] static inline bool any(Vector v) {
    return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) != 0;
  }
  // Load base[index] in each lane.
  [[gnu::always_inline]] static inline Vector gather(const uint32_t *base, Vector index) {
    return (Vector)_mm512_i32gather_epi32((__m512i)index, base, 4);
  }
  // Load four bytes from base + offset in each lane.
  [[gnu::always_inline]] static inline Vector gather_bytes(const uint8_t *base, Vector offset) {
    return (Vector)_mm512_i32gather_epi32((__m512i)offset, base, 1);
  }
  // Load a 64-bit word per lane, and split it into its low and high half.
  [[gnu::always_inline]] static inline void gather_halves(const uint64_t *base, Vector index, Vector &low,
                                                          Vector &high) {
    const __m512i a = _mm512_i32gather_epi64(_mm512_castsi512_si256((__m512i)index), base, 8);
    const __m512i b = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64((__m512i)index, 1), base, 8);
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    low = (Vector)_mm512_permutex2var_epi32(a, even, b);
    high = (Vector)_mm512_permutex2var_epi32(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b);
  }
};

} // namespace
} // namespace bpe
