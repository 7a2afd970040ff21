// Pretoken boundaries of 64 bytes at once, by arithmetic on one bit a byte.
//
// A block starts at a pretoken's start, wherever that is, so it needs nothing of what came before it. It
// yields the boundaries that are certain whatever follows, and the next block starts at the last of them:
// bits that the end of the block leaves open (whitespace that reaches it, say) are dropped, never guessed.
// The last bytes of a text are a block with blanks behind them; a block without a boundary is walked by
// match_end. That every rule here equals match_end's, and that the regular expression's, is what
// tests/bpe/test_pretokenize.py is about.
//
// Notation: in a mask `m`, m << 1 marks the bytes after those of m, m >> 1 the bytes before. Starts of runs
// are m & ~(m << 1). Adding a mask of run starts to the mask of the runs carries through exactly those runs.
#pragma once

#include "pretokenize/pretokenize_scalar.hpp"
#include "simd/simd_masks.hpp"
#include "simd/simd_variants.hpp"

#include <cstring>

namespace bpe {
namespace {

constexpr size_t block_reads =
    68; // a block may look at a character that starts in it, and 2 bytes behind a "'"
constexpr uint64_t top_bit = uint64_t{1} << 63;

inline uint64_t bit(int place) {
  return uint64_t{1} << place;
}
inline uint64_t below(int place) {
  return bit(place) - 1;
}
inline int lowest(uint64_t mask) {
  return __builtin_ctzll(mask);
}
inline int highest(uint64_t mask) {
  return 63 - __builtin_clzll(mask);
}

// One bit for each byte of a character of that class. other is what is in none of them.
struct ClassMasks {
  uint64_t upper, lower, letter, mark, number, space; // without letter case, all letters are in `letter`
  uint64_t continuation;                              // bytes of characters but their first
};

// The class of the character, not ASCII, at p.
inline uint8_t wide_class(const uint8_t *p) {
  const uint32_t lead = p[0];
  if (lead < 0xE0)
    return unicode_pages[unicode_page_numbers[lead & 31]][p[1] & 63];
  if (lead < 0xF0)
    return unicode_pages[unicode_page_numbers[(lead & 15) << 6 | (p[1] & 63u)]][p[2] & 63];
  return char_class(read_char(p, p + 4).code_point);
}

// Adds the characters beyond ASCII to the classes. Not inline: ASCII text would pay for the registers (2,000
// MB/s against 2,600 for gpt2 with AVX-512).
template <class Simd, bool cased>
[[gnu::noinline]] void add_wide_classes(ClassMasks &m, const uint8_t *p, uint64_t high) {
  const LeadMasks leads = Simd::template leads<cased>(p, high);
  m.letter |= leads.letter;
  m.continuation = high & ~leads.lead;
  // The three bits of CharClass at each lead byte.
  uint64_t bits[3] = {};
  uint64_t rest = leads.lead & ~leads.letter;
  if (rest != 0)
    rest &= ~Simd::vector_classes(p, rest, bits);
  for (; rest != 0; rest &= rest - 1) {
    const int place = lowest(rest);
    const uint64_t kind = wide_class(p + place);
    bits[0] |= (kind & 1) << place;
    bits[1] |= (kind >> 1 & 1) << place;
    bits[2] |= (kind >> 2) << place;
  }
  static_assert(upper == 1 && lower == 2 && letter == 3 && mark == 4 && number == 5 && space == 6);
  if (cased) {
    m.upper |= bits[0] & ~bits[1] & ~bits[2];
    m.lower |= bits[1] & ~bits[0] & ~bits[2];
    m.letter |= bits[0] & bits[1];
    m.mark |= bits[2] & ~bits[0] & ~bits[1];
  } else {
    m.letter |= (bits[0] | bits[1]) & ~bits[2];
  }
  const uint64_t numbers = bits[2] & bits[0], spaces = bits[2] & bits[1];
  const auto spread = [&](uint64_t &mask) {
    mask |= (mask << 1) & m.continuation;
    mask |= (mask << 1) & m.continuation;
    mask |= (mask << 1) & m.continuation;
  };
  if (cased) {
    spread(m.upper);
    spread(m.lower);
    spread(m.mark);
  }
  spread(m.letter);
  if ((numbers | spaces) != 0) {
    m.number |= numbers;
    m.space |= spaces;
    spread(m.number);
    spread(m.space);
  }
}

// Where the patterns without case look for letters, number and space only, the others stay 0.
template <class Simd, bool cased> inline ClassMasks classes_of(const uint8_t *p, const BlockMasks &ascii) {
  ClassMasks m{};
  m.number = ascii.number;
  m.space = ascii.space;
  if (cased) {
    m.upper = ascii.upper;
    m.lower = ascii.lower;
  } else {
    m.letter = ascii.lower;
  }
  if (ascii.high != 0)
    add_wide_classes<Simd, cased>(m, p, ascii.high);
  return m;
}

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

// Long runs a block at a time: of letters, as in Chinese, and of dashes and blanks, as in tables.
template <class Simd, bool cased> struct BlockRuns {
  static const uint8_t *letters(const uint8_t *p, const uint8_t *stop) {
    while (static_cast<size_t>(stop - p) >= block_reads) {
      const ClassMasks m = classes_of<Simd, cased>(p, Simd::template classify<cased>(p));
      const uint64_t ends = ~(m.letter | m.mark);
      if (ends != 0)
        return p + lowest(ends);
      p += block_bytes;
      for (int i = 0; i < 3 && (*p & 0xC0) == 0x80; ++i) // the rest of a character
        ++p;
    }
    return p;
  }
  static const uint8_t *others(const uint8_t *p, const uint8_t *stop) {
    return run(p, stop,
               [](const BlockMasks &m) { return ~(m.upper | m.lower | m.number | m.space | m.high); });
  }
  static const uint8_t *blanks(const uint8_t *p, const uint8_t *stop) {
    return run(p, stop, [](const BlockMasks &m) { return m.blank; });
  }

private:
  template <class Kind> static const uint8_t *run(const uint8_t *p, const uint8_t *stop, Kind kind) {
    for (; static_cast<size_t>(stop - p) >= block_bytes; p += block_bytes) {
      const uint64_t ends = ~kind(Simd::template classify<cased>(p));
      if (ends != 0)
        return p + lowest(ends);
    }
    return p;
  }
};

template <class Simd, Pattern pattern> inline uint64_t block_boundaries(const uint8_t *p) {
  if constexpr (pattern == Pattern::gpt2)
    return gpt2_boundaries<Simd>(p) & ~uint64_t{1};
  else
    return prefix_boundaries<Simd, pattern>(p) & ~uint64_t{1};
}

// The last bytes of a text, 1 to tail_bytes, in a block of their own: blanks and a letter behind them. No
// pattern's boundaries before the end of a text change if blanks follow (whitespace at the end is whitespace
// that goes on), and the boundary before the last blank is there if and only if none was dropped. Returns
// boundaries as a block does, with that at the end of the text if they are all of them. Code in documents of
// 800 bytes 472 -> 499 MB/s against walking them by match_end.
constexpr size_t tail_bytes = block_bytes - 4, tail_block_bytes = block_reads + 4;
template <class Simd, Pattern pattern>
uint64_t tail_boundaries(const uint8_t *p, size_t size, uint8_t (&block)[tail_block_bytes]) {
  std::memset(block, ' ', sizeof block);
  block[block_bytes - 1] = 'a';
  std::memcpy(block, p, size);
  const uint64_t boundaries = block_boundaries<Simd, pattern>(block);
  int end = static_cast<int>(size);
  if constexpr (rules_of(pattern).prefix && rules_of(pattern).end_of_text_whole) {
    // Whitespace at the end is one pretoken, line breaks and all: it is left to match_end.
    while (end > 0 && (p[end - 1] == ' ' || (p[end - 1] >= '\t' && p[end - 1] <= '\r')))
      --end;
    if (end == 0 || p[end - 1] >= 0x80) // perhaps whitespace too
      return 0;
    if (end < static_cast<int>(size))
      return boundaries & below(end);
  }
  return (boundaries & below(end)) | ((boundaries & bit(block_bytes - 2)) != 0 ? bit(end) : 0);
}

template <class Simd, Pattern pattern>
size_t walk_blocks(const uint8_t *origin, const uint8_t *&at, const uint8_t *stop, uint32_t *ends,
                   size_t room) {
  const uint8_t *p = at;
  uint32_t *out = ends;
  uint32_t *const full = ends + (room - block_bytes);
  while (p < stop && out <= full) {
    const size_t from = static_cast<size_t>(p - origin), left = static_cast<size_t>(stop - p);
    if ((left >= block_reads || left <= tail_bytes) && from <= max_pretoken_bytes - block_bytes) {
      uint8_t tail[tail_block_bytes];
      const uint64_t boundaries = left >= block_reads ? block_boundaries<Simd, pattern>(p)
                                                      : tail_boundaries<Simd, pattern>(p, left, tail);
      if (boundaries != 0) {
        out = Simd::emit(out, boundaries, static_cast<uint32_t>(from));
        p += highest(boundaries);
        continue;
      }
    }
    const uint8_t *end = match_end<pattern, BlockRuns<Simd, rules_of(pattern).cased>>(p, stop);
    if (static_cast<size_t>(end - origin) > max_pretoken_bytes)
      break;
    *out++ = static_cast<uint32_t>(end - origin);
    p = end;
  }
  at = p;
  return static_cast<size_t>(out - ends);
}

} // namespace
} // namespace bpe
