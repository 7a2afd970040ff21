// The class of each byte of 64: that of the character which starts there, or of a byte within one.
//
// Built for each SIMD variant, so nothing here may become a symbol that variants share.
#pragma once

#include "pretokenize/automaton.hpp"

#include <cstring>

namespace bpe {
namespace {

// A byte at a time; simd_avx512.hpp has a way of its own. Up to 3 bytes behind the 64 are read.
inline void classify_each(const CharacterClasses &classes, const uint8_t *p, uint8_t *out) {
  for (size_t i = 0; i < 64; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, p + i, 8);
    for (size_t k = i; k < i + 8; ++k)
      out[k] = classes.of_byte[p[k]];
    if ((eight & 0x8080808080808080) == 0)
      continue;
    for (size_t k = i; k < i + 8; ++k)
      if (out[k] == CharacterClasses::unclear)
        out[k] = classes.of_character(p + k);
  }
}

inline uint64_t below_each(const uint8_t *bytes, unsigned limit) {
  uint64_t mask = 0;
  for (size_t i = 0; i < 64; ++i)
    mask |= static_cast<uint64_t>(bytes[i] < limit) << i;
  return mask;
}

} // namespace
} // namespace bpe
