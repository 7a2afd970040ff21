// What the readers of JSON Lines share: the bytes of a line, a place in them, the first fault; strings and
// their escapes. A line is given whole (json_lines.cpp) or in pieces (json_long_line.cpp).
#pragma once

#include "text/json_lines.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bpe {

constexpr size_t json_block = 16;

// How many of the sixteen bytes come before the first quote, backslash or control character.
inline size_t json_plain_bytes(const uint8_t *p) {
#if defined(__SSE2__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
  const __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  const __m128i controls = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8(0x1F)), _mm_set1_epi8(0x1F));
  const int mask = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quotes, backslashes), controls));
  return mask == 0 ? json_block : static_cast<size_t>(std::countr_zero(static_cast<unsigned>(mask)));
#else
  size_t i = 0;
  while (i < json_block && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20)
    ++i;
  return i;
#endif
}

inline int json_hex_digit(uint8_t c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  const uint8_t letter = c | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

inline bool is_json_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

inline size_t json_write_utf8(uint32_t code, uint8_t *out) {
  if (code < 0x80) {
    out[0] = static_cast<uint8_t>(code);
    return 1;
  }
  if (code < 0x800) {
    out[0] = static_cast<uint8_t>(0xC0 | code >> 6);
    out[1] = static_cast<uint8_t>(0x80 | (code & 0x3F));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = static_cast<uint8_t>(0xE0 | code >> 12);
    out[1] = static_cast<uint8_t>(0x80 | (code >> 6 & 0x3F));
    out[2] = static_cast<uint8_t>(0x80 | (code & 0x3F));
    return 3;
  }
  out[0] = static_cast<uint8_t>(0xF0 | code >> 18);
  out[1] = static_cast<uint8_t>(0x80 | (code >> 12 & 0x3F));
  out[2] = static_cast<uint8_t>(0x80 | (code >> 6 & 0x3F));
  out[3] = static_cast<uint8_t>(0x80 | (code & 0x3F));
  return 4;
}

// An index as RFC 6901 has it: decimal without leading zeros. SIZE_MAX: none.
inline size_t json_index_of(const std::string &token) {
  if (token.empty() || token.size() > 18 || (token[0] == '0' && token.size() > 1))
    return SIZE_MAX;
  size_t index = 0;
  for (const char c : token) {
    if (!is_json_digit(static_cast<uint8_t>(c)))
      return SIZE_MAX;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  return index;
}

// Goes through [p_, end_) and gives up at the first fault. Functions return whether to go on.
class JsonScanner {
public:
  JsonFault fault() const { return fault_; }
  const uint8_t *place() const { return place_; }
  uint64_t replaced() const { return replaced_; }

protected:
  explicit JsonScanner(bool replace_surrogates) : replace_surrogates_(replace_surrogates) {}

  bool fail(JsonFault fault, const uint8_t *place) {
    fault_ = place >= end_ ? JsonFault::cut : fault;
    place_ = std::min(place, end_);
    return false;
  }

  void space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r'))
      ++p_;
  }

  // Passes over the plain bytes of a string at p_, block after block as far as whole ones may be read, and
  // copies them to `out` unless that is null; a block is copied whole, so `out` has sixteen bytes more than
  // the string.
  void plain_blocks(const uint8_t *readable, uint8_t *&out) {
    while (readable - p_ >= static_cast<ptrdiff_t>(json_block)) {
      const size_t plain = json_plain_bytes(p_);
      if (out) {
        std::memcpy(out, p_, json_block);
        out += plain;
      }
      p_ += plain;
      if (plain < json_block)
        return;
    }
  }

  bool literal(const char *word) {
    for (; *word; ++word, ++p_)
      if (p_ == end_ || *p_ != static_cast<uint8_t>(*word))
        return fail(JsonFault::syntax, p_);
    return true;
  }

  // \uXXXX at p_ behind the u: the code unit, or -1.
  int32_t code_unit() {
    int32_t unit = 0;
    for (int i = 0; i < 4; ++i, ++p_) {
      const int digit = p_ < end_ ? json_hex_digit(*p_) : -1;
      if (digit < 0) {
        fail(JsonFault::escape, p_);
        return -1;
      }
      unit = unit << 4 | digit;
    }
    return unit;
  }

  // An escape at p_, behind the backslash, to out_ unless `out` is null.
  bool escape(uint8_t *&out, bool is_text) {
    const uint8_t *const start = p_ - 1;
    if (p_ == end_)
      return fail(JsonFault::cut, p_);
    static constexpr char codes[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
    const uint8_t c = *p_++;
    if (c != 'u') {
      const void *const known = std::memchr(codes, c, sizeof codes - 1);
      if (!known)
        return fail(JsonFault::escape, start);
      if (out)
        *out++ = static_cast<uint8_t>(characters[static_cast<const char *>(known) - codes]);
      return true;
    }
    const int32_t unit = code_unit();
    if (unit < 0)
      return false;
    uint32_t code = static_cast<uint32_t>(unit);
    if (code >= 0xD800 && code < 0xDC00 && end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u') {
      const uint8_t *const second = p_;
      p_ += 2;
      const int32_t low = code_unit();
      if (low < 0)
        return false;
      if (low >= 0xDC00 && low < 0xE000)
        code = 0x10000 + ((code - 0xD800) << 10) + (static_cast<uint32_t>(low) - 0xDC00);
      else
        p_ = second; // an escape of its own
    }
    if (code >= 0xD800 && code < 0xE000 && is_text) {
      if (!replace_surrogates_)
        return fail(JsonFault::surrogate, start);
      code = 0xFFFD;
      ++replaced_;
    }
    if (out)
      out += json_write_utf8(code, out); // of half a pair in a name three bytes that no path has
    return true;
  }

  const uint8_t *p_ = nullptr, *end_ = nullptr;

private:
  const bool replace_surrogates_;
  uint64_t replaced_ = 0;
  JsonFault fault_ = JsonFault::none;
  const uint8_t *place_ = nullptr;
};

} // namespace bpe
