// The ends of all pretokens of a text, a block of 64 bytes at a time.
//
// A block starts at a pretoken's start, wherever that is, and the next one at the last boundary that is
// certain in it (boundary_rules.hpp). The last bytes of a text are a block with blanks behind them; a block
// without a boundary is walked by match_end.
#pragma once

#include "pretokenize/boundary_rules.hpp"

#include <cstring>

namespace bpe {
namespace {

// Long runs a block at a time: of letters, as in Chinese, of dashes and whitespace, as in tables, of digits
// and of letters of one case (lines indented by up to 120 blanks, with tabs and a word: warm 160 -> 390 MB/s;
// 3,000 digits a document 160 -> 1,900; o200k, 3,000 small letters 160 -> 1,900).
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
  static const uint8_t *numbers(const uint8_t *p, const uint8_t *stop) {
    return run(p, stop, [](const BlockMasks &m) { return m.number; });
  }
  static const uint8_t *capitals(const uint8_t *p, const uint8_t *stop) {
    return run(p, stop, [](const BlockMasks &m) { return m.upper; });
  }
  static const uint8_t *small_letters(const uint8_t *p, const uint8_t *stop) {
    return run(p, stop, [](const BlockMasks &m) { return m.lower; });
  }
  static const uint8_t *spaces(const uint8_t *p, const uint8_t *stop, const uint8_t *&line_break_end) {
    for (; static_cast<size_t>(stop - p) >= block_bytes; p += block_bytes) {
      const BlockMasks m = Simd::template classify<cased>(p);
      const uint64_t first = m.space & ~(m.space + 1); // those from the first byte on
      if (const uint64_t line_breaks = m.line_break & first; line_breaks != 0)
        line_break_end = p + highest(line_breaks) + 1;
      if (~first != 0)
        return p + lowest(~first);
    }
    return p;
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

// Boundaries in the 64 bytes from p on, where a pretoken starts: those up to the highest are all there. 0 if
// none is certain, or so much of the text is left that it is no whole block and no tail.
template <class Simd, Pattern pattern>
inline uint64_t near_boundaries(const uint8_t *p, const uint8_t *stop) {
  const size_t left = static_cast<size_t>(stop - p);
  uint8_t tail[tail_block_bytes];
  return left >= block_reads  ? block_boundaries<Simd, pattern>(p)
         : left <= tail_bytes ? tail_boundaries<Simd, pattern>(p, left, tail)
                              : 0;
}

template <class Simd, Pattern pattern>
size_t walk_blocks(const uint8_t *origin, const uint8_t *&at, const uint8_t *stop, uint32_t *ends,
                   size_t room) {
  const uint8_t *p = at;
  uint32_t *out = ends;
  uint32_t *const full = ends + (room - block_bytes);
  while (p < stop && out <= full) {
    const size_t from = static_cast<size_t>(p - origin);
    if (from <= max_pretoken_bytes - block_bytes) {
      if (const uint64_t boundaries = near_boundaries<Simd, pattern>(p, stop); boundaries != 0) {
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
