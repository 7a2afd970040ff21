// Which of the 64 bytes of a block are letters, numbers, whitespace: one bit a byte for each class, the ASCII
// part as the SIMD variant gives it, the characters beyond ASCII added.
#pragma once

#include "pretokenize/pretokenize_scalar.hpp"
#include "simd/simd_masks.hpp"
#include "simd/simd_variants.hpp"

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

} // namespace
} // namespace bpe
