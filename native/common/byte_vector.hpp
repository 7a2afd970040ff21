// Vectors of sixteen bytes, written with compiler extensions. Every base instruction set supports them, so
// searches that use them need no SIMD variants.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bpe {

using ByteVector = uint8_t __attribute__((vector_size(16)));

inline ByteVector load_bytes(const uint8_t *bytes) {
  ByteVector vector;
  std::memcpy(&vector, bytes, sizeof vector);
  return vector;
}

inline bool is_any(ByteVector vector) {
  uint64_t halves[2];
  std::memcpy(halves, &vector, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

// Return the top bit of each byte as a mask. A comparison sets or clears all bits of a byte.
inline uint32_t mask_of(ByteVector vector) {
#if defined(__SSE2__)
  return static_cast<uint32_t>(_mm_movemask_epi8(reinterpret_cast<__m128i>(vector)));
#else
  uint64_t halves[2];
  std::memcpy(halves, &vector, sizeof halves);
  const auto gathered = [](uint64_t half) { // move each top bit to its position in the highest byte
    return static_cast<uint32_t>((half >> 7 & 0x0101010101010101) * 0x0102040810204080 >> 56);
  };
  return gathered(halves[0]) | gathered(halves[1]) << 8;
#endif
}

// The same for 64 bytes.
inline uint64_t mask_of(const ByteVector (&vectors)[4]) {
  uint64_t mask = 0;
  for (int i = 0; i < 4; ++i)
    mask |= uint64_t{mask_of(vectors[i])} << 16 * i;
  return mask;
}

} // namespace bpe
