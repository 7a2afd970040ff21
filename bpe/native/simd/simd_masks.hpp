// What a SIMD variant gives the pretokenizers: 64 bytes of text as one bit a byte, byte 0 lowest.
#pragma once

#include <cstdint>

namespace bpe {

struct BlockMasks {
  // ASCII bytes only. Patterns without letter case get every letter in `lower`, and `upper` is 0.
  uint64_t upper, lower, number;
  uint64_t space;      // \t \n \v \f \r and ' '
  uint64_t blank;      // ' '
  uint64_t line_break; // \n \r
  uint64_t apostrophe;
  uint64_t slash;
  uint64_t high; // bytes from 0x80 on
};

struct LeadMasks {
  uint64_t lead;   // bytes from 0xC0 on
  uint64_t letter; // leads all of whose characters are letters (with `cased`: letters without case)
};

// Bit b of entry n: all characters whose lead byte is 16 * (12 + b) + n are letters (upper, lower or
// neither). The exhaustive test of the characters in tests/bpe/test_pretokenize.py covers every one of them.
//   C4-CA Latin   D0 D1 D3 Cyrillic   DA Arabic   E5-E9 ideographs   EB EC Hangul
alignas(16) constexpr uint8_t letter_leads[16] = {
    0x2,       0x2,       0x0,       0x2, 0x1, 0x1 | 0x4, 0x1 | 0x4, 0x1 | 0x4,
    0x1 | 0x4, 0x1 | 0x4, 0x1 | 0x2, 0x4, 0x4, 0x0,       0x0,       0x0};
// Of these without case: E5-E9, EB, EC.
alignas(16) constexpr uint8_t caseless_leads[16] = {0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 0, 4, 4, 0, 0, 0};
// High four bits of a byte -> the bit above.
alignas(16) constexpr uint8_t lead_groups[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 0};

static constexpr bool is_letter_lead(uint8_t byte, bool cased) {
  return ((cased ? caseless_leads : letter_leads)[byte & 15] & lead_groups[byte >> 4]) != 0;
}

} // namespace bpe
