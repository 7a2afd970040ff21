// Classify each of 64 bytes: the class of the character that starts there, or of a byte within a character.
//
// Compiled once per SIMD variant, so nothing here may become a symbol shared by variants.
#pragma once

#include "pretokenize/automaton.hpp"
#include "text/utf8.hpp"

#include <cstring>

namespace bpe {
namespace {

// Classify one byte at a time. Reads up to 3 bytes after the 64. Returns a bit for each byte within a
// character.
inline uint64_t classify_each(const CharacterClasses &classes, const uint8_t *p, uint8_t *out) {
  uint64_t within = 0;
  for (size_t i = 0; i < 64; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, p + i, 8);
    for (size_t k = i; k < i + 8; ++k)
      out[k] = classes.of_byte[p[k]];
    if ((eight & 0x8080808080808080) == 0)
      continue;
    for (size_t k = i; k < i + 8; ++k) {
      within |= static_cast<uint64_t>(continues_character(p[k])) << k;
      if (out[k] == CharacterClasses::unclear)
        out[k] = classes.of_character(p + k);
    }
  }
  return within;
}

// Classify the characters that start at the set bits.
inline void classify_places(const CharacterClasses &classes, const uint8_t *p, uint64_t places,
                            uint8_t *out) {
  for (; places != 0; places &= places - 1) {
    const int place = __builtin_ctzll(places);
    out[place] = classes.of_character(p + place);
  }
}

} // namespace
} // namespace bpe
