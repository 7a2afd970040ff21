// UTF-8: validate text, read a character, and write a character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bpe {

// Return the offset of the first invalid sequence, or `size`. It is the offset of the lead byte of the
// sequence, like CPython's UnicodeDecodeError.start. Reads [text, text + size) only.
size_t validate_utf8(const uint8_t *text, size_t size);

static inline const uint8_t *bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t *>(text.data());
}

// Return whether a byte of valid text continues a character. static for the same reason as read_char.
static inline bool continues_character(uint8_t byte) {
  return (byte & 0xC0) == 0x80;
}

struct Char {
  uint32_t code_point;
  uint32_t length; // bytes, 1 to 4
};

// Return the character at p < stop. The text must be valid UTF-8. For invalid text the result is arbitrary,
// but nothing at or after `stop` is read, and 1 <= length <= stop - p and code_point <= 0x10FFFF hold.
// static, because sources compiled for different instruction sets must not share one copy.
static inline Char read_char(const uint8_t *p, const uint8_t *stop) {
  const uint32_t lead = p[0];
  const size_t rest = static_cast<size_t>(stop - p);
  if (lead < 0xC0 || rest < 2)
    return {lead, 1};
  if (lead < 0xE0)
    return {(lead & 31) << 6 | (p[1] & 63u), 2};
  if (rest < 3)
    return {lead, 1};
  if (lead < 0xF0)
    return {(lead & 15) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u), 3};
  if (rest < 4)
    return {lead, 1};
  const uint32_t code_point = (lead & 7) << 18 | (p[1] & 63u) << 12 | (p[2] & 63u) << 6 | (p[3] & 63u);
  return {code_point <= 0x10FFFF ? code_point : 0xFFFD, 4};
}

// Write the character to `out` and return its length of 1 to 4 bytes. Surrogates produce three bytes that are
// not valid UTF-8. static for the same reason as read_char.
static inline size_t write_utf8(uint32_t code_point, uint8_t *out) {
  const auto last_bits = [&](unsigned shift) {
    return static_cast<uint8_t>(0x80 | (code_point >> shift & 63));
  };
  if (code_point < 0x80)
    return out[0] = static_cast<uint8_t>(code_point), 1;
  if (code_point < 0x800)
    return out[0] = static_cast<uint8_t>(0xC0 | code_point >> 6), out[1] = last_bits(0), 2;
  if (code_point < 0x10000)
    return out[0] = static_cast<uint8_t>(0xE0 | code_point >> 12), out[1] = last_bits(6),
           out[2] = last_bits(0), 3;
  out[0] = static_cast<uint8_t>(0xF0 | code_point >> 18);
  out[1] = last_bits(12), out[2] = last_bits(6), out[3] = last_bits(0);
  return 4;
}

} // namespace bpe
