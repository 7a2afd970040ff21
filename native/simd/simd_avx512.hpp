// Operations that turn 64 bytes into masks, in one register. Include only in sources compiled with -mavx512f
// -mavx512bw -mavx512vl -mavx512vbmi -mavx512vbmi2 -mbmi -mbmi2 -mpopcnt -mlzcnt.
#pragma once

#include "pretokenize/scan_window.hpp"
#include "text/first_two_bytes.hpp"
#include "text/utf8_blocks.hpp"

#include <immintrin.h>

namespace bpe {
namespace {

struct Avx512Simd {
  static __m512i load(const uint8_t *p) { return _mm512_loadu_si512(p); }
  static __m512i set(uint8_t byte) { return _mm512_set1_epi8(static_cast<char>(byte)); }
  static constexpr int most_pages = 2;

  // Classify characters that need more than their lead byte one page of classes at a time, since most text
  // uses few pages. Chinese text uses many, and each page would wait for the previous one, so after the first
  // page the rest are handled one character at a time.
  static uint64_t classify(const CharacterClasses &classes, const uint8_t *p, uint8_t *to) {
    const __m512i v = load(p);
    const uint64_t high = _mm512_movepi8_mask(v);
    __m512i found = _mm512_permutex2var_epi8(load(classes.of_byte), v, load(classes.of_byte + 64));
    if (high == 0) {
      _mm512_storeu_si512(to, found);
      return 0;
    }
    const uint64_t leads = _mm512_cmpge_epu8_mask(v, set(0xC0)), within = high & ~leads;
    found = _mm512_mask_mov_epi8(found, within, set(classes.of_byte[0x80]));
    found = _mm512_mask_permutexvar_epi8(found, leads, v, load(classes.of_byte + 0xC0));
    uint64_t unclear = leads & _mm512_cmpeq_epi8_mask(found, set(CharacterClasses::unclear));
    const __m512i second = _mm512_loadu_si512(p + 1), third = _mm512_loadu_si512(p + 2);
    for (int pages = 0; unclear != 0 && pages < most_pages; ++pages) {
      const uint8_t *const c = p + _tzcnt_u64(unclear);
      uint64_t alike = unclear & _mm512_cmpeq_epi8_mask(v, set(*c));
      __m512i place = second;
      if (*c >= 0xE0) {
        alike &= _mm512_cmpeq_epi8_mask(second, set(c[1]));
        place = third;
      }
      if (*c >= 0xF0) {
        alike &= _mm512_cmpeq_epi8_mask(third, set(c[2]));
        place = _mm512_loadu_si512(p + 3);
      }
      found = _mm512_mask_permutexvar_epi8(found, alike, place, load(classes.page(c).data()));
      unclear &= ~alike;
    }
    _mm512_storeu_si512(to, found);
    classify_places(classes, p, unclear, to);
    return within;
  }
  static uint64_t with_bit(const uint8_t *bytes, uint8_t bit) {
    return _mm512_test_epi8_mask(load(bytes), set(bit));
  }

  static uint64_t wordless_leads(const uint8_t *p) { // text/wordless_leads.hpp
    const __m512i v = _mm512_loadu_si512(p);
    return _mm512_cmpge_epu8_mask(v, set(0xE2)) &
           ~_mm512_cmplt_epu8_mask(_mm512_sub_epi8(v, set(0xEA)), set(4));
  }

  static bool any_high(const uint8_t *p) { return _mm512_movepi8_mask(_mm512_loadu_si512(p)) != 0; }

  static __m512i lookup(const uint8_t (&table)[16], __m512i halves) {
    return _mm512_shuffle_epi8(
        _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i *>(table))), halves);
  }
  static __m512i low_half(__m512i v) { return _mm512_and_si512(v, set(15)); }
  static __m512i high_half(__m512i v) { return low_half(_mm512_srli_epi16(v, 4)); }

  static uint64_t first_two(const FirstTwoBytes &pairs, const uint8_t *p) { // text/first_two_bytes.hpp
    const __m512i first = load(p), second = load(p + 1);
    const __m512i groups = _mm512_and_si512(lookup(pairs.first_low, low_half(first)),
                                            lookup(pairs.first_high, high_half(first)));
    return _mm512_test_epi8_mask(groups, _mm512_and_si512(lookup(pairs.second_low, low_half(second)),
                                                          lookup(pairs.second_high, high_half(second))));
  }

  // Return whether any byte of the block is invalid given the 3 bytes before it.
  static bool utf8_faults(const uint8_t *p) {
    const __m512i first = _mm512_loadu_si512(p - 1);
    __m512i pair = lookup(utf8_tables.first_high, high_half(first));
    pair = _mm512_and_si512(pair, lookup(utf8_tables.first_low, low_half(first)));
    pair = _mm512_and_si512(pair, lookup(utf8_tables.second_high, high_half(_mm512_loadu_si512(p))));
    // Top bit: the lead of a 3-byte sequence two bytes before, or of a 4-byte sequence three bytes before.
    const __m512i third = _mm512_subs_epu8(_mm512_loadu_si512(p - 2), _mm512_set1_epi8(0xE0 - 0x80));
    const __m512i fourth = _mm512_subs_epu8(_mm512_loadu_si512(p - 3), _mm512_set1_epi8(0xF0 - 0x80));
    const __m512i expected =
        _mm512_and_si512(_mm512_or_si512(third, fourth), _mm512_set1_epi8(static_cast<char>(0x80)));
    return _mm512_cmpneq_epi8_mask(pair, expected) != 0;
  }

  // Return the minimum of values[0, 64) and set the bit of each one that equals `value`.
  static uint32_t least_of_64(const uint32_t *values) {
    const __m512i a = _mm512_min_epu32(_mm512_loadu_si512(values), _mm512_loadu_si512(values + 16));
    const __m512i b = _mm512_min_epu32(_mm512_loadu_si512(values + 32), _mm512_loadu_si512(values + 48));
    return _mm512_reduce_min_epu32(_mm512_min_epu32(a, b));
  }
  static uint64_t equal_in_64(const uint32_t *values, uint32_t value) {
    const __m512i wanted = _mm512_set1_epi32(static_cast<int>(value));
    uint64_t equal = 0;
    for (int i = 0; i < 4; ++i)
      equal |= static_cast<uint64_t>(_mm512_cmpeq_epi32_mask(_mm512_loadu_si512(values + 16 * i), wanted))
               << (16 * i);
    return equal;
  }
};

} // namespace
} // namespace bpe
