// Runs of characters of three bytes, by the tables of CharacterTable: how far one goes whose borders are all
// safe, and its ids. For pretokens that are there already; see walk_characters.hpp for texts.
//
// Built for each SIMD variant, so nothing here may become a symbol that variants share.
#pragma once

#include "encode/character_block.hpp"

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
