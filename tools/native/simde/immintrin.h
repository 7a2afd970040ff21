// AVX-512 intrinsics emulated by SIMDe, for processors with only AVX2. The include path must list this folder before
// the compiler's own. The intrinsics below are missing in SIMDe, except a masked load that reads beyond its mask there.
#pragma once

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_NATIVE_AVX512
#include "simde/x86/avx512.h"

#include <cstdint>
#include <cstring>

namespace emulated {

template <class Vector, class Word, class At> inline Vector each(At at) {
  Word words[sizeof(Vector) / sizeof(Word)];
  for (size_t i = 0; i < std::size(words); ++i)
    words[i] = at(i);
  Vector vector;
  std::memcpy(&vector, words, sizeof vector);
  return vector;
}

template <class Word, class Vector> inline Word word(const Vector &vector, size_t i) {
  Word found;
  std::memcpy(&found, reinterpret_cast<const char *>(&vector) + i * sizeof found, sizeof found);
  return found;
}

inline simde__m512i shifted(simde__m512i high, simde__m512i low, size_t by) {
  return each<simde__m512i, uint32_t>(
      [&](size_t i) { return i + by < 16 ? word<uint32_t>(low, i + by) : word<uint32_t>(high, i + by - 16); });
}

template <class Word, class Indices> inline simde__m512i gathered(Indices indices, const void *base, int scale) {
  return each<simde__m512i, Word>([&](size_t i) {
    Word found;
    std::memcpy(&found, static_cast<const char *>(base) + int64_t{word<int32_t>(indices, i)} * scale, sizeof found);
    return found;
  });
}

inline simde__m512i loaded(uint64_t mask, const void *from) {
  return each<simde__m512i, uint8_t>(
      [&](size_t i) { return mask >> i & 1 ? static_cast<const uint8_t *>(from)[i] : uint8_t{0}; });
}

inline uint16_t greater(uint16_t mask, simde__m128i a, simde__m128i b) {
  uint16_t found = 0;
  for (size_t i = 0; i < 16; ++i)
    found |= static_cast<uint16_t>((word<uint8_t>(a, i) > word<uint8_t>(b, i)) << i);
  return found & mask;
}

} // namespace emulated

#undef _mm512_maskz_loadu_epi8
#define _mm512_maskz_loadu_epi8(mask, from) emulated::loaded(mask, from)
#define _mm512_alignr_epi32(high, low, by) emulated::shifted(high, low, by)
#define _mm512_i32gather_epi32(indices, base, scale) emulated::gathered<uint32_t>(indices, base, scale)
#define _mm512_i32gather_epi64(indices, base, scale) emulated::gathered<uint64_t>(indices, base, scale)
#define _mm_mask_cmpgt_epu8_mask(mask, a, b) emulated::greater(mask, a, b)
