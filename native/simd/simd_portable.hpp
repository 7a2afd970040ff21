// Operations that turn 64 bytes into masks, eight bytes at a time in general-purpose registers.
// Little-endian.
#pragma once

#include "common/byte_order.hpp"
#include "pretokenize/scan_window.hpp"
#include "text/first_two_bytes.hpp"
#include "text/wordless_leads.hpp"

#include <bit>
#include <cstring>

namespace bpe {
namespace {

struct PortableSimd {
  static constexpr uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;

  // Gather the top bits of the eight bytes into the low byte. No other bits of x may be set.
  static uint64_t gather(uint64_t x) { return (x * 0x0002040810204081) >> 56; }
  // Set the top bit of each byte of v (all < 0x80) in the range [low, high].
  static uint64_t between(uint64_t v, uint8_t low, uint8_t high) {
    return (v + ones * (0x80u - low)) & ~(v + ones * (0x7Fu - high)) & tops;
  }

  static uint64_t classify(const CharacterClasses &classes, const uint8_t *p, uint8_t *to) {
    return classify_each(classes, p, to);
  }
  static uint64_t with_bit(const uint8_t *bytes, uint8_t bit) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i += 8) {
      uint64_t word;
      memcpy(&word, bytes + i, 8);
      mask |= gather((word & ones * bit) * (0x80u / bit)) << i;
    }
    return mask;
  }

  static uint64_t wordless_leads(const uint8_t *p) { // text/wordless_leads.hpp
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i += 8) {
      uint64_t word;
      memcpy(&word, p + i, 8);
      mask |= gather(bpe::wordless_leads(word)) << i;
    }
    return mask;
  }

  static bool any_high(const uint8_t *p) {
    uint64_t words[8];
    memcpy(words, p, sizeof words);
    uint64_t any = 0;
    for (const uint64_t word : words)
      any |= word;
    return (any & tops) != 0;
  }

  static uint64_t first_two(const FirstTwoBytes &pairs, const uint8_t *p) { // text/first_two_bytes.hpp
    uint64_t met = 0;
    for (unsigned i = 0; i < 64; ++i)
      met |= uint64_t{has_first_two(pairs, p + i)} << i;
    return met;
  }

  // Return the minimum of values[0, 64) and set the bit of each one that equals `value`.
  static uint32_t least_of_64(const uint32_t *values) {
    int32_t least[8]; // signed: plain SSE2 has no unsigned comparison
    for (int i = 0; i < 8; ++i)
      least[i] = static_cast<int32_t>(values[i]);
    for (int i = 8; i < 64; i += 8)
      for (int j = 0; j < 8; ++j) {
        const int32_t value = static_cast<int32_t>(values[i + j]);
        least[j] = value < least[j] ? value : least[j];
      }
    for (int j = 1; j < 8; ++j)
      least[0] = least[j] < least[0] ? least[j] : least[0];
    return static_cast<uint32_t>(least[0]);
  }
  static uint64_t equal_in_64(const uint32_t *values, uint32_t value) {
    uint64_t equal = 0;
    for (int i = 0; i < 64; ++i)
      equal |= static_cast<uint64_t>(values[i] == value) << i;
    return equal;
  }
};

} // namespace
} // namespace bpe
