// Runs of three-byte characters with safe borders, found with the tables of CharacterTable, and their IDs.
// For given pretokens; see walk_characters.hpp for texts.
//
// Compiled once per SIMD variant, so nothing here may become a symbol shared by variants.
#pragma once

#include "encode/character_block.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// Return the size of the longest prefix of [bytes, stop) that consists of three-byte characters with no
// joined border between two of them. The border at its end is joined, or no such character follows.
using FindCharacters = size_t (*)(const Characters &characters, const uint8_t *bytes, const uint8_t *stop);

// Write the IDs of bytes[0, size), a run of such characters, and return their end. May write characters_spare
// more.
using EmitCharacters = uint32_t *(*)(const Characters &characters, const uint8_t *bytes, size_t size,
                                     uint32_t *out);
constexpr size_t characters_spare = 16;

namespace {

template <class Block>
size_t find_characters(const Characters &characters, const uint8_t *bytes, const uint8_t *stop) {
  const typename Block::Tables tables(characters);
  for (const uint8_t *p = bytes;;) {
    const Block block(tables, p, stop);
    for (uint32_t rest = block.wholly_joined | block.partly_joined; rest != 0; rest &= rest - 1) {
      const uint8_t *const border = p + 3 * (__builtin_ctz(rest) + 1);
      if (characters.may_join(border))
        return static_cast<size_t>(border - bytes);
    }
    p += 3 * block.count;
    if (block.ends)
      return static_cast<size_t>(p - bytes);
  }
}

template <class Block>
uint32_t *emit_characters(const Characters &characters, const uint8_t *bytes, size_t size, uint32_t *out) {
  const typename Block::Tables tables(characters);
  for (const uint8_t *p = bytes, *const stop = bytes + size; p < stop;) {
    const Block block(tables, p, stop);
    out = block.write(0, block.count, out);
    p += 3 * block.count;
  }
  return out;
}

} // namespace
} // namespace bpe
