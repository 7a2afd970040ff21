// UTF-8 validation of whole vectors: three 16-entry lookups classify the errors of a byte and the previous
// one.
//
// Based on Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2021). Each kind of
// error is a bit that is set in all three lookups (high and low half of the first byte, high half of the
// second) only if the two bytes have that error. Two bytes cannot show whether the second of two continuation
// bytes belongs to a 3-byte or 4-byte sequence, so this is compared with the lead bytes two and three before.
// The preceding bytes are loaded from memory, so a block needs no state: it is valid if no byte is an error
// given the bytes before it.
#pragma once

#include "common/prefetch.hpp"
#include "simd/simd_variants.hpp"

#include <cstring>

namespace bpe {
namespace {

constexpr uint8_t too_short = 1;       // a lead byte without a continuation byte
constexpr uint8_t too_long = 2;        // an ASCII byte followed by a continuation byte
constexpr uint8_t overlong_3 = 4;      // E0 80..9F
constexpr uint8_t too_large = 8;       // F4 90.. and F5..FF, except overlong_4
constexpr uint8_t surrogate = 16;      // ED A0..BF
constexpr uint8_t overlong_2 = 32;     // C0, C1
constexpr uint8_t overlong_4 = 64;     // F0 80..8F, and F5..FF 80..8F
constexpr uint8_t continuations = 128; // two continuation bytes: valid in some positions

struct Utf8Tables {
  alignas(16) uint8_t first_high[16], first_low[16], second_high[16];
};

constexpr Utf8Tables make_utf8_tables() {
  Utf8Tables tables{};
  for (int half = 0; half < 16; ++half) {
    tables.first_high[half] = half < 8     ? too_long
                              : half < 12  ? continuations
                              : half == 12 ? too_short | overlong_2
                              : half == 13 ? too_short
                              : half == 14 ? too_short | overlong_3 | surrogate
                                           : too_short | too_large | overlong_4;
    // A low half of 5 or more after F means F5..FF; overlong_4 then marks a second byte of 80..8F.
    tables.first_low[half] =
        static_cast<uint8_t>(too_short | too_long | continuations | (half < 2 ? overlong_2 : 0) |
                             (half == 0 ? overlong_3 | overlong_4 : 0) | (half >= 4 ? too_large : 0) |
                             (half >= 5 ? overlong_4 : 0) | (half == 13 ? surrogate : 0));
    const bool continues = half >= 8 && half < 12;
    tables.second_high[half] = static_cast<uint8_t>(
        !continues ? too_short
                   : too_long | overlong_2 | continuations | (half < 10 ? overlong_3 : 0) |
                         (half == 8 ? overlong_4 : too_large) | (half >= 10 ? surrogate : 0));
  }
  return tables;
}

constexpr Utf8Tables utf8_tables = make_utf8_tables();

// Return the end of a valid prefix of text[0, size) that ends with a complete character: `size`, or at most a
// block and a character before the first error.
template <class Simd> size_t valid_prefix(const uint8_t *text, size_t size) {
  bool behind_ascii = true; // or after complete characters
  const auto is_valid = [&](const uint8_t *block) {
    const bool high = Simd::any_high(block);
    if ((high || !behind_ascii) && Simd::utf8_faults(block))
      return false;
    behind_ascii = !high;
    return true;
  };
  const auto whole_characters = [&](size_t at) { // in text[0, at)
    for (size_t back = 1; back <= 3 && back <= at; ++back)
      if (text[at - back] >= 0xC0)
        return at - back;
    return at;
  };
  // Nothing precedes the first block, and the last block is incomplete, so both are copied and padded with
  // zeros.
  constexpr size_t bytes_before = 3;
  // Validation is often the first to touch the text, and hardware prefetching stops at page boundaries.
  constexpr size_t bytes_ahead = 2048;
  uint8_t copy[bytes_before + block_bytes] = {};
  size_t at = 0;
  if (size >= block_bytes) {
    std::memcpy(copy + bytes_before, text, block_bytes);
    if (!is_valid(copy + bytes_before))
      return 0;
    for (at = block_bytes; size - at >= block_bytes; at += block_bytes) {
      prefetch_to_read(text + at + bytes_ahead);
      if (!is_valid(text + at))
        return whole_characters(at);
    }
    std::memcpy(copy, text + at - bytes_before, bytes_before);
    std::memset(copy + bytes_before, 0, block_bytes);
  }
  std::memcpy(copy + bytes_before, text + at, size - at);
  return is_valid(copy + bytes_before) ? size : whole_characters(at);
}

} // namespace
} // namespace bpe
