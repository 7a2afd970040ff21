// Convert Chinese text to IDs, sixteen characters at a time.
//
//     while three-byte characters follow and there is room:
//         block = the next 16 characters, with the IDs of each
//         joined = the borders in the block that are not safe and where no pretoken ends
//         for each run of characters with joined borders between them:
//             two characters that merge with nothing else: use the ID of the pair
//             more: write the IDs before the run; the run becomes a part
//         write the remaining IDs; a line feed between two blocks is written, too
//
// 1. Nearly all borders are safe (character_table.hpp). Between safe borders, a character has the same IDs
//    for any pretokens.
// 2. If pretoken ends are not known, the two characters at a joined border determine it, or the walk stops.
// 3. The caller looks up parts in the cache, or cuts them like other pretokens.
//
// Compiled once per SIMD variant, hence the unnamed namespace. `Block` comes from character_block.hpp or
// character_block_avx512.hpp.
#pragma once

#include "encode/character_block.hpp"
#include "encode/character_walk.hpp"

namespace bpe {
namespace {

// Return the first of 64 bits and every third one after it.
inline uint32_t every_third(uint64_t bits) {
#if defined(__BMI2__)
  return static_cast<uint32_t>(__builtin_ia32_pext_di(bits, 0x1249249249249249));
#else
  uint32_t gathered = 0;
  for (unsigned i = 0; i < 21; ++i)
    gathered |= static_cast<uint32_t>(bits >> 3 * i & 1) << i;
  return gathered;
#endif
}

template <class Block> void walk_characters(const Characters &characters, CharacterWalk &walk) {
  const typename Block::Tables tables(characters);
  const uint8_t *const origin = walk.window.origin, *const stop = origin + walk.window.certain;
  const uint8_t *p = origin + walk.at;
  uint32_t *out = walk.out;
  const uint32_t *last_part_out = out;
  walk.part_count = 0;
  walk.full = false;
  const bool scanned = walk.window.starts != nullptr;
  const auto starts_from = [&](const uint8_t *at) {
    return scanned ? bits_from(walk.window.starts, static_cast<size_t>(at - origin)) : 0;
  };
  const auto is_apart = [&](const uint8_t *border) {
    return characters.joined_bytes[border[-1] << 8 | border[0]] == 0;
  };
  for (;;) {
    // A block has at most eight parts.
    if (out > walk.out_stop || walk.part_count > CharacterWalk::most_parts / 2) {
      walk.full = true;
      break;
    }
    Block block(tables, p, stop);
    const unsigned count = block.count;
    if (count == 0)
      break;
    // Bit i: a pretoken starts at character i, which may be the one after the block.
    const uint32_t starts = every_third(starts_from(p)) | static_cast<uint32_t>(p == origin);
    uint32_t joined = 0, partly = 0; // one bit for the border after each character
    for (uint32_t rest = block.partly_joined & ~(starts >> 1); rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      partly |= uint32_t{characters.is_partly_joined(p + 3 * (i + 1))} << i;
    }
    joined = partly;
    uint32_t pairs[16]; // of wholly joined borders
    for (uint32_t rest = block.wholly_joined & ~(starts >> 1); rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      pairs[i] = characters.pair_before(p + 3 * (i + 1));
      joined |= uint32_t{pairs[i] != Characters::no_pair} << i;
    }
    uint32_t unknown = 0; // whether a pretoken starts after the character
    for (uint32_t rest = walk.borders ? joined : 0; rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      const Automaton::Border border = walk.borders->border(p + 3 * i, p + 3 * (i + 1));
      unknown |= uint32_t{border == Automaton::depends} << i;
      joined ^= uint32_t{border == Automaton::cut} << i;
    }
    const uint8_t *const end = p + 3 * count;
    const bool goes_on = block.ends && end < stop;
    const bool boundary = // at `end`
        goes_on && walk.borders ? walk.borders->border(end - 3, end) == Automaton::cut
                                : (starts >> count & 1) != 0;
    if (goes_on && !boundary && !is_apart(end))
      joined |= uint32_t{1} << (count - 1);
    unsigned done = 0, keep = count;
    bool stopped = false;
    while (joined != 0) {
      const unsigned first = static_cast<unsigned>(__builtin_ctz(joined));
      const unsigned size = static_cast<unsigned>(__builtin_ctz(~(joined >> first))) + 1;
      const uint32_t borders = ((uint32_t{1} << (size - 1)) - 1) << first;
      if (first + size > count || (borders & unknown) != 0) { // it continues after the block, or may end
        keep = first;
        stopped = first == 0 || goes_on;
        break;
      }
      joined ^= borders;
      if (size == 2 && (partly & borders) == 0) {
        const uint32_t pair = pairs[first];
        if (pair == Characters::apart)
          continue;
        if (pair != Characters::unreachable) {
          block.join(first, pair - 1);
          continue;
        }
      }
      out = block.write(done, first, out);
      const bool whole = (starts >> first & starts >> (first + size) & 1) != 0;
      walk.parts[walk.part_count++] = {p + 3 * first, 3 * size, static_cast<uint32_t>(out - last_part_out),
                                       whole};
      last_part_out = out;
      done = first + size;
    }
    out = block.write(done, keep, out);
    p += 3 * keep;
    if (stopped || p == stop)
      break;
    if (!goes_on || keep < count)
      continue;
    // If starts are unknown, the border before it cannot be joined here.
    if (*p != '\n' ||
        !(scanned ? boundary && (starts_from(p + 1) & 1) != 0 : p + 1 == stop || is_apart(p + 1)))
      break;
    *out++ = characters.line_feed_id;
    if (++p == stop)
      break;
  }
  walk.at = static_cast<size_t>(p - origin);
  walk.out = out;
}

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
