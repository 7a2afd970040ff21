// Runs of characters of three bytes, by the tables of CharacterTable: how far one goes whose borders are all
// safe, and its ids.
//
// Built for each SIMD variant, so nothing here may become a symbol that variants share. Sixteen characters at
// a time with AVX-512 (character_runs_avx512.hpp), one by one elsewhere.
#pragma once

#include "vocabulary/character_table.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// Size of the longest part of [bytes, stop) from its start on that is characters of three bytes with no
// joined border between two of them; the border at its end is joined, or no such character stands behind it.
using FindCharacters = size_t (*)(const Characters &characters, const uint8_t *bytes, const uint8_t *stop);

// Ids of bytes[0, size), such characters. Returns their end; characters_spare more may be written.
using EmitCharacters = uint32_t *(*)(const Characters &characters, const uint8_t *bytes, size_t size,
                                     uint32_t *out);
constexpr size_t characters_spare = 16;

namespace {

inline size_t find_characters(const Characters &characters, const uint8_t *bytes, const uint8_t *stop) {
  const uint8_t *p = bytes;
  while (Characters::starts_at(p, static_cast<size_t>(stop - p))) {
    p += 3;
    if (Characters::starts_at(p, static_cast<size_t>(stop - p)) && characters.may_join(p))
      break;
  }
  return static_cast<size_t>(p - bytes);
}

inline uint32_t *emit_characters(const Characters &characters, const uint8_t *bytes, size_t size,
                                 uint32_t *out) {
  constexpr unsigned bits = Characters::id_bits;
  for (size_t i = 0; i < size; i += 3) {
    const uint64_t ids = characters.ids[Characters::code_point(bytes + i)];
    const uint32_t second = ids >> bits & Characters::no_id, third = static_cast<uint32_t>(ids >> 2 * bits);
    out[0] = static_cast<uint32_t>(ids) & Characters::no_id;
    out[1] = second;
    out[2] = third; // what is behind a character's ids is overwritten
    out += 1 + (second != Characters::no_id) + (third != Characters::no_id);
  }
  return out;
}

} // namespace
} // namespace bpe
