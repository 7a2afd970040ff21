// The class of each byte of 64: that of the character which starts there, or of a byte within one.
//
// Built for each SIMD variant, so nothing here may become a symbol that variants share.
#pragma once

#include "pretokenize/automaton.hpp"
#include "text/utf8.hpp"

#include <cstring>

namespace bpe {
namespace {

// A byte at a time. Up to 3 bytes behind the 64 are read. Returns a bit for each byte within a character.
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

// Of the characters that start where a bit is.
inline void classify_places(const CharacterClasses &classes, const uint8_t *p, uint64_t places,
                            uint8_t *out) {
  for (; places != 0; places &= places - 1) {
    const int place = __builtin_ctzll(places);
    out[place] = classes.of_character(p + place);
  }
}

} // namespace
} // namespace bpe
