// What the patterns distinguish among the code points: one class each, from a table of 64-code-point pages.
#pragma once

#include <cstdint>

namespace bpe {

// upper: Lu, Lt; lower: Ll; letter: Lm, Lo (both cases for o200k); mark: M; number: N; space: White_Space.
enum CharClass : uint8_t { other, upper, lower, letter, mark, number, space };

extern const uint16_t unicode_page_numbers[]; // code point / 64 -> page
extern const uint8_t unicode_pages[][64];     // CharClass of the page's code points

// The same for the characters of two bytes, for lookups of whole vectors: bit i of the class of code point c
// is bit c % 8 of unicode_two_byte_bits[i][c / 8].
extern const uint8_t unicode_two_byte_bits[3][256];
// And for the commonest ranges of 512 characters of three bytes: those with this lead byte and a second byte
// of `second` or up to 7 more; bit i of the class of the range's character n is bit n % 8 of bits[i][n / 8].
struct UnicodeRange {
  uint8_t lead, second;
  uint8_t bits[3][64];
};
extern const UnicodeRange unicode_three_byte_ranges[12];

// code_point <= 0x10FFFF; surrogates are other.
// static: sources compiled for different instruction sets must not share one copy.
static inline uint8_t char_class(uint32_t code_point) {
  return unicode_pages[unicode_page_numbers[code_point >> 6]][code_point & 63];
}

} // namespace bpe
