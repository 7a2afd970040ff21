// Pretoken boundaries of 64 bytes at once, by arithmetic on one bit a byte.
//
// A block starts at a pretoken's start, so it needs nothing of what came before it. It yields the boundaries
// that are certain whatever follows: bits that the end of the block leaves open (whitespace that reaches it,
// say) are dropped, never guessed. That every rule here equals match_end's, and that the regular
// expression's, is what tests/bpe/test_pretokenize.py is about.
//
// Notation: in a mask `m`, m << 1 marks the bytes after those of m, m >> 1 the bytes before. Starts of runs
// are m & ~(m << 1). Adding a mask of run starts to the mask of the runs carries through exactly those runs.
#pragma once

#include "pretokenize/block_classes.hpp"

namespace bpe {
namespace {

// Each marked last byte of a whitespace character (at most 3 bytes) moved to its first.
inline uint64_t first_bytes(uint64_t last_bytes, uint64_t continuation) {
  for (int i = 0; i < 2; ++i) {
    const uint64_t inner = last_bytes & continuation;
    if (inner == 0)
      break;
    last_bytes = (last_bytes & ~continuation) | inner >> 1;
  }
  return last_bytes;
}

// Contractions that are pretokens, for the apostrophes that start one: the end becomes a boundary, the middle
// none.
inline uint64_t cut_contractions(const uint8_t *p, uint64_t boundaries, uint64_t apostrophes, bool any_case) {
  for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
    const int place = lowest(apostrophes);
    const int length = static_cast<int>(contraction_end(p + place, p + block_reads, any_case) - (p + place));
    if (length == 0)
      continue;
    const int end = place + length;
    if (end >= 64)
      return boundaries & (below(place) | bit(place));
    boundaries = (boundaries & ~(bit(end) - bit(place + 1))) | bit(end);
  }
  return boundaries;
}

template <class Simd> inline uint64_t gpt2_boundaries(const uint8_t *p) {
  const BlockMasks ascii = Simd::template classify<false>(p);
  const ClassMasks m = classes_of<Simd, false>(p, ascii);
  const uint64_t others = ~(m.letter | m.number | m.space);
  const uint64_t other_starts = others & ~(others << 1) & ~(ascii.blank << 1);
  const uint64_t word_starts =
      ((m.letter & ~(m.letter << 1)) | (m.number & ~(m.number << 1))) & ~(ascii.blank << 1);
  const uint64_t space_starts = m.space & ~(m.space << 1);
  const uint64_t last_spaces = first_bytes(m.space & ~(m.space >> 1) & ~top_bit, m.continuation);
  const uint64_t boundaries = other_starts | word_starts | space_starts | last_spaces;
  const uint64_t apostrophes = ascii.apostrophe & other_starts;
  return apostrophes == 0 ? boundaries : cut_contractions(p, boundaries, apostrophes, false);
}

// Line breaks (o200k: and slashes) that a run of others takes with it.
template <bool cased>
inline uint64_t absorbed_breaks(uint64_t others, uint64_t line_breaks, uint64_t slashes) {
  uint64_t starts = line_breaks & (others << 1);
  if (!cased || (slashes & (line_breaks << 1)) == 0)
    return line_breaks & ~(line_breaks + starts);
  // A slash after a line break goes on, so one run of both may have many starts; only the first of them
  // counts.
  const uint64_t runs = line_breaks | slashes;
  uint64_t absorbed = 0;
  while (starts != 0) {
    const uint64_t run = runs & ~(runs + (starts & -starts));
    absorbed |= run;
    starts &= ~run;
  }
  return absorbed;
}

// Whitespace that is not absorbed: a run ends after its last line break; what is left of it keeps all but its
// last.
inline uint64_t whitespace_boundaries(uint64_t spaces, uint64_t line_breaks, uint64_t continuation) {
  const uint64_t flats = spaces & ~line_breaks; // whitespace other than line breaks
  uint64_t boundaries = spaces & ~(spaces << 1);
  boundaries |= first_bytes(flats & ~(spaces >> 1) & ~top_bit, continuation);
  const uint64_t rests = flats & (line_breaks << 1); // starts of flat runs after a line break
  if (rests == 0)
    return boundaries;
  boundaries |= rests;
  // No boundary if another line break follows the flat run, or if that lies outside the block.
  uint64_t ends = (flats + rests) & ~flats & line_breaks;
  for (; ends != 0; ends &= ends - 1) {
    const int end = lowest(ends);
    boundaries &= ~bit(highest(~flats & below(end)) + 1);
  }
  if ((flats & top_bit) != 0)
    boundaries &= ~(bit(highest(~flats) + 1) & rests);
  return boundaries;
}

// Every `limit`-th number of a run starts a pretoken.
inline uint64_t number_boundaries(uint64_t numbers, uint64_t continuation, unsigned limit) {
  const uint64_t starts = numbers & ~(numbers << 1);
  if (limit == 1)
    return numbers & ~continuation;
  uint64_t boundaries = starts;
  const uint64_t long_runs = numbers & numbers >> 1 & numbers >> 2 & numbers >> 3;
  if (long_runs == 0)
    return boundaries;
  if (limit == 3 && (numbers & continuation) == 0) { // a run at a time (o200k: hexadecimal 171 -> 407 MB/s)
    constexpr uint64_t every_third = 0x9249249249249249;
    for (uint64_t rest = starts & long_runs; rest != 0; rest &= rest - 1) {
      const uint64_t run = numbers & ~(numbers + (rest & -rest));
      boundaries |= every_third << lowest(rest) & run;
    }
    return boundaries;
  }
  unsigned count = 0;
  for (uint64_t rest = numbers & ~continuation; rest != 0; rest &= rest - 1) {
    const uint64_t here = rest & -rest;
    count = (here & starts) != 0 || count == limit ? 1 : count + 1;
    if (count == 1)
      boundaries |= here;
  }
  return boundaries;
}

// o200k's boundaries inside words. Letters without case and marks ("caseless") count as both cases, so an
// upper-case letter starts a pretoken if a lower-case one came before it in the word, with or without
// caseless ones between; and if only caseless ones did, when no lower-case letter ends the run of upper-case
// and caseless ones that it is in and no caseless one follows it in that run. Returns `boundaries` with these
// added, and cut short where the block does not tell.
inline uint64_t cut_at_case(uint64_t boundaries, const ClassMasks &m) {
  const uint64_t upper_starts = m.upper & ~m.continuation;
  boundaries |= upper_starts & (m.lower << 1);
  const uint64_t caseless = m.letter | m.mark;
  for (uint64_t rest = upper_starts & (caseless << 1); rest != 0; rest &= rest - 1) {
    const int place = lowest(rest);
    const uint64_t before = ~(m.lower | caseless) & below(place);
    const uint64_t run_before = below(place) & ~(before != 0 ? below(highest(before) + 1) : 0);
    if ((m.lower & run_before) != 0) {
      boundaries |= bit(place);
      continue;
    }
    const uint64_t after = ~(m.upper | caseless) & ~below(place);
    if (after == 0)
      return boundaries & below(place);
    const int end = lowest(after);
    if ((m.lower & bit(end)) == 0 && (caseless & below(end) & ~below(place)) == 0)
      boundaries |= bit(place);
  }
  return boundaries;
}

// Contractions behind the words of o200k.
inline uint64_t join_contractions(const uint8_t *p, uint64_t boundaries, uint64_t apostrophes,
                                  uint64_t caseless) {
  int last_end = -1;
  for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
    const int place = lowest(apostrophes);
    if (place == last_end) // "it's's": the second is a prefix of the next word
      continue;
    const int length = static_cast<int>(contraction_end(p + place, p + block_reads, true) - (p + place));
    if (length == 0)
      continue;
    last_end = place + length;
    if (last_end >= 64)
      return boundaries & below(place);
    boundaries = (boundaries & ~(bit(last_end) - bit(place))) | bit(last_end);
    if (caseless != 0) // the letters behind it would see those of the contraction as theirs
      return boundaries & (below(last_end) | bit(last_end));
  }
  return boundaries;
}

// The patterns in which a character may stand before a word and line breaks count: all but gpt2.
template <class Simd, Pattern pattern> inline uint64_t prefix_boundaries(const uint8_t *p) {
  constexpr Rules rules = rules_of(pattern);
  const BlockMasks ascii = Simd::template classify<rules.cased>(p);
  const ClassMasks m = classes_of<Simd, rules.cased>(p, ascii);
  const uint64_t words = m.letter | m.upper | m.lower | m.mark;
  uint64_t others = ~(words | m.number | m.space);
  const uint64_t absorbed = absorbed_breaks<rules.cased>(others, ascii.line_break, ascii.slash);
  if (rules.cased)
    others &= ~absorbed;
  uint64_t boundaries =
      whitespace_boundaries(m.space & ~absorbed, ascii.line_break & ~absorbed, m.continuation);
  boundaries |= number_boundaries(m.number, m.continuation, rules.digits);

  // The first character of a run of others may be a prefix if no blank took the run.
  const uint64_t other_starts = others & ~(others << 1) & ~(ascii.blank << 1);
  const uint64_t inner = others & m.continuation;
  const uint64_t prefixes = other_starts | (inner & ~(inner + (other_starts << 1 & inner)));
  const uint64_t flats = m.space & ~ascii.line_break;
  boundaries |= other_starts | (words & ~(words << 1) & ~((flats | prefixes) << 1));

  if (!rules.cased) {
    const uint64_t apostrophes = ascii.apostrophe & other_starts;
    return apostrophes == 0 ? boundaries : cut_contractions(p, boundaries, apostrophes, true);
  }
  boundaries = cut_at_case(boundaries, m);
  if (const uint64_t apostrophes = ascii.apostrophe & (words << 1); apostrophes != 0)
    boundaries = join_contractions(p, boundaries, apostrophes, m.letter | m.mark);
  // A mark that follows neither letter nor mark is one of others, a prefix or a word: left to match_end.
  if (const uint64_t unclear = m.mark & ~m.continuation & ~(words << 1); unclear != 0)
    boundaries &= below(lowest(unclear));
  return boundaries;
}

} // namespace
} // namespace bpe
