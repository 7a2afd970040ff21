// From Chinese text to ids, sixteen characters at a time, without looking for pretokens.
//
// Nearly all borders between characters are safe (character_table.hpp), and between those a character has the
// same ids whatever the pretokens are. So pretokens are asked for only where a border is not safe, and what
// the two characters there are tells mostly whether one ends between them. Two that merge with nothing else
// are looked up as a pair; what is left is handed over as a part for the cache, or to be cut in the ordinary
// way.
//
// Built for each SIMD variant, hence the unnamed namespace. `Block` is of character_block.hpp or
// character_block_avx512.hpp.
#pragma once

#include "encode/character_block.hpp"
#include "encode/character_walk.hpp"
#include "pretokenize/pretokenize_blocks.hpp"

namespace bpe {
namespace {

// Of a character of three bytes.
inline Side wide_side(const uint8_t *p) {
  return {unicode_pages[unicode_page_numbers[(p[0] & 15) << 6 | (p[1] & 63)]][p[2] & 63], *p};
}

// What is between two neighbouring characters of three bytes, the first at p - 3.
enum class Between { pretokens, nothing, unknown };

// `lowest`: what lies between it and p is such characters. start: of a pretoken, if it is p - 3.
template <Pattern pattern>
Between between_characters(const uint8_t *p, const uint8_t *lowest, const uint8_t *start) {
  constexpr Rules rules = rules_of(pattern);
  const Side left = wide_side(p - 3), right = wide_side(p);
  if (safe_between(rules, left, right))
    return Between::pretokens;
  if (left.kind == letter && right.kind == letter)
    return Between::nothing;
  if (left.kind != other)
    return Between::unknown;
  if (right.kind == other)
    return Between::nothing;
  if (!rules.prefix || right.kind != letter)
    return Between::unknown;
  // The first of a run of others is one pretoken with the word behind it, any other is not.
  if (p - 3 == start)
    return Between::nothing;
  if (p - 6 < lowest)
    return Between::unknown;
  const Side before = wide_side(p - 6);
  return safe_between(rules, before, left) ? Between::nothing
         : before.kind == other            ? Between::pretokens
                                           : Between::unknown;
}

// Of a character at p that is no letter, number or whitespace, and begins a pretoken, with line feeds behind
// it: the end of that pretoken if it ends with them.
template <Pattern pattern> const uint8_t *end_of_line(const uint8_t *p, const uint8_t *stop) {
  constexpr Rules rules = rules_of(pattern);
  constexpr int most = 8;
  const uint8_t *end = p + 3;
  for (int i = 0; i < most && end < stop && *end == '\n'; ++i)
    ++end;
  return end == stop || !(is_line_break(*end) || (rules.cased && *end == '/')) ? end : nullptr;
}

template <class Block, Pattern pattern>
void walk_characters(const Characters &characters, CharacterWalk &walk) {
  constexpr Rules rules = rules_of(pattern);
  const typename Block::Tables tables(characters);
  const uint8_t *p = walk.at, *lowest = p, *start = walk.start;
  const uint8_t *const stop = walk.stop;
  uint32_t *out = walk.out;
  const uint32_t *last_part_out = out;
  const auto add_part = [&](const uint8_t *bytes, size_t size, bool whole) {
    walk.parts[walk.part_count++] = {bytes, static_cast<uint32_t>(size),
                                     static_cast<uint32_t>(out - last_part_out), whole};
    last_part_out = out;
  };
  walk.part_count = 0;
  walk.full = false;
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
    const auto bit_of = [](unsigned i) { return uint32_t{1} << i; };
    uint32_t joined = 0, partly = 0, unknown = 0; // a bit for the border behind each character
    for (uint32_t rest = block.partly_joined; rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      partly |= uint32_t{characters.is_partly_joined(p + 3 * (i + 1))} << i;
    }
    joined = partly;
    uint32_t pair_ids[16]; // of the wholly joined
    for (uint32_t rest = block.wholly_joined; rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      pair_ids[i] = characters.pair_id(p + 3 * (i + 1));
      joined |= uint32_t{pair_ids[i] != Characters::no_pair} << i;
    }
    for (uint32_t rest = joined & ~(block.letters & block.letters >> 1); rest != 0; rest &= rest - 1) {
      const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
      const Between between = between_characters<pattern>(p + 3 * (i + 1), lowest, start);
      if (between == Between::pretokens)
        joined ^= bit_of(i);
      else if (between == Between::unknown)
        unknown |= bit_of(i);
    }
    const uint8_t *const end = p + 3 * count;
    const bool goes_on = block.ends && end < stop;
    const uint8_t *line_end = nullptr;
    bool boundary = false; // at `end`
    if (goes_on) {
      if ((block.letters >> (count - 1) & 1) != 0 && *end == '\n') {
        boundary = true;
      } else {
        const Side last = wide_side(end - 3);
        boundary = safe_between(rules, last, side_of(end, stop));
        if (rules.prefix && last.kind == other && *end == '\n' && count > 1 &&
            (block.letters >> (count - 2) & 1) != 0)
          line_end = end_of_line<pattern>(end - 3, stop);
      }
      if (line_end || (!boundary && characters.joined_bytes[end[-1] << 8 | end[0]] != 0))
        joined |= bit_of(count - 1);
    }
    unsigned done = 0, keep = count;
    bool stopped = false;
    while (joined != 0) {
      const unsigned first = static_cast<unsigned>(__builtin_ctz(joined));
      const unsigned size = static_cast<unsigned>(__builtin_ctz(~(joined >> first))) + 1;
      if (first + size > count) { // it goes on behind the block
        keep = first;
        stopped = first == 0 || goes_on;
        line_end = size == 2 ? line_end : nullptr;
        break;
      }
      const uint32_t borders = (bit_of(size - 1) - 1) << first;
      joined ^= borders;
      if (size == 2 && ((partly | unknown) & borders) == 0) {
        const uint32_t id = pair_ids[first];
        if (id == Characters::no_id)
          continue;
        if (id != Characters::unreachable) {
          block.join(first, id);
          continue;
        }
      }
      // Where a letter has a letter beside it no pretoken ends.
      const uint32_t words = block.letters & block.letters >> 1;
      const bool inside = ((words << 1 | words >> (size - 1)) >> first & 1) != 0;
      if ((unknown & borders) != 0 || (walk.ask_whole && !inside)) {
        keep = first;
        stopped = true;
        line_end = nullptr;
        break;
      }
      out = block.write(done, first, out);
      add_part(p + 3 * first, 3 * size, false);
      done = first + size;
    }
    out = block.write(done, keep, out);
    p += 3 * keep;
    if (line_end && stopped) { // before its last character
      add_part(p, static_cast<size_t>(line_end - p), true);
      start = lowest = p = line_end;
      if (p == stop)
        break;
      continue;
    }
    if (stopped || p == stop)
      break;
    if (!goes_on || keep < count)
      continue;
    if (!boundary)
      break;
    start = p;
    // A line feed before what is no whitespace is a pretoken, and so it is at the end.
    if (*p != '\n' || (p + 1 < stop && side_of(p + 1, stop).kind == space))
      break;
    *out++ = characters.line_feed_id;
    start = lowest = ++p;
    if (p == stop)
      break;
  }
  walk.at = p;
  walk.start = start;
  walk.out = out;
}

template <Pattern pattern>
const uint8_t *last_boundary(const uint8_t *from, const uint8_t *p, const uint8_t *stop) {
  Side right = side_of(p, stop);
  for (; p > from; p -= 3) {
    const Side left = wide_side(p - 3);
    if (safe_between(rules_of(pattern), left, right))
      return p;
    right = left;
  }
  return nullptr;
}

template <class Block, class Simd, Pattern pattern> constexpr CharacterWalks character_walks() {
  return {walk_characters<Block, pattern>, match_end<pattern, BlockRuns<Simd, rules_of(pattern).cased>>,
          near_boundaries<Simd, pattern>, last_boundary<pattern>};
}

} // namespace
} // namespace bpe
