#include "text/utf8.hpp"

#include "simd/simd_variants.hpp"

#include <cstring>

namespace bpe {

namespace {

// Return the length of the valid non-ASCII sequence at p, or 0 if it is truncated or invalid. See table 3-7
// of the Unicode standard.
size_t sequence_length(const uint8_t *p, size_t rest) {
  const uint8_t lead = p[0];
  const auto continues = [&](size_t i) { return i < rest && (p[i] & 0xC0) == 0x80; };
  if (lead < 0xC2 || lead > 0xF4)
    return 0;
  if (lead < 0xE0)
    return continues(1) ? 2 : 0;
  if (!continues(1))
    return 0;
  if (lead < 0xF0) {
    const bool overlong = lead == 0xE0 && p[1] < 0xA0, surrogate = lead == 0xED && p[1] >= 0xA0;
    return !overlong && !surrogate && continues(2) ? 3 : 0;
  }
  const bool overlong = lead == 0xF0 && p[1] < 0x90, too_great = lead == 0xF4 && p[1] >= 0x90;
  return !overlong && !too_great && continues(2) && continues(3) ? 4 : 0;
}

} // namespace

size_t validate_utf8(const uint8_t *text, size_t size) {
  const auto valid_prefix = simd_variant().valid_prefix;
  size_t at = valid_prefix != nullptr && size > 0 ? valid_prefix(text, size) : 0;
  while (at < size) {
    uint64_t eight;
    while (size - at >= 8 && (memcpy(&eight, text + at, 8), (eight & 0x8080808080808080) == 0))
      at += 8;
    if (at == size)
      break;
    const size_t length = text[at] < 0x80 ? 1 : sequence_length(text + at, size - at);
    if (length == 0)
      return at;
    at += length;
  }
  return at;
}

} // namespace bpe
