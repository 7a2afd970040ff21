// 64 bytes to masks in two 32-byte registers. Only for sources compiled with -mavx2 -mbmi -mbmi2 -mpopcnt.
#pragma once

#include "pretokenize/scan_window.hpp"
#include "text/utf8_blocks.hpp"

#include <immintrin.h>

namespace bpe {
namespace {

struct Avx2Simd {
  static __m256i load(const uint8_t *p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)); }
  static uint64_t mask(__m256i a, __m256i b) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(a)) |
           static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(b))) << 32;
  }
  // 0xFF where low <= byte <= high (unsigned), by shifting the range to the bottom of the signed numbers.
  static __m256i between(__m256i v, uint8_t low, uint8_t high) {
    const __m256i shifted = _mm256_add_epi8(v, _mm256_set1_epi8(static_cast<char>(0x80 - low)));
    return _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(0x80 + high - low + 1)), shifted);
  }
  static __m256i equal(__m256i v, char byte) { return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(byte)); }

  using Keep = KeepAll;
  static uint64_t spread(uint64_t bits, uint64_t to) { return bits & to; }
  static uint64_t below(const uint8_t *bytes, unsigned limit) {
    if (limit == 0)
      return 0;
    const __m256i most = _mm256_set1_epi8(static_cast<char>(limit - 1));
    const auto at_most = [&](__m256i v) { return _mm256_cmpeq_epi8(_mm256_min_epu8(v, most), v); };
    return mask(at_most(load(bytes)), at_most(load(bytes + 32)));
  }

  static uint64_t wordless_leads(const uint8_t *p) { // text/wordless_leads.hpp
    const auto leads = [](__m256i v) {
      return _mm256_or_si256(between(v, 0xE2, 0xE9), between(v, 0xEE, 0xFF));
    };
    return mask(leads(load(p)), leads(load(p + 32)));
  }

  static bool any_high(const uint8_t *p) {
    return _mm256_movemask_epi8(_mm256_or_si256(load(p), load(p + 32))) != 0;
  }

  // Whether a byte of the block is at fault with the 3 bytes before it.
  static bool utf8_faults(const uint8_t *p) {
    const auto lookup = [](const uint8_t *table, __m256i halves) {
      return _mm256_shuffle_epi8(
          _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(table))), halves);
    };
    const __m256i low_four = _mm256_set1_epi8(15);
    const auto high_half = [&](__m256i v) { return _mm256_and_si256(_mm256_srli_epi16(v, 4), low_four); };
    __m256i faults = _mm256_setzero_si256();
    for (int half = 0; half < 64; half += 32) {
      const __m256i first = load(p + half - 1);
      __m256i pair = lookup(utf8_tables.first_high, high_half(first));
      pair = _mm256_and_si256(pair, lookup(utf8_tables.first_low, _mm256_and_si256(first, low_four)));
      pair = _mm256_and_si256(pair, lookup(utf8_tables.second_high, high_half(load(p + half))));
      // Top bit: a lead of 3 bytes two before, or of 4 bytes three before.
      const __m256i third = _mm256_subs_epu8(load(p + half - 2), _mm256_set1_epi8(0xE0 - 0x80));
      const __m256i fourth = _mm256_subs_epu8(load(p + half - 3), _mm256_set1_epi8(0xF0 - 0x80));
      const __m256i expected =
          _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(static_cast<char>(0x80)));
      faults = _mm256_or_si256(faults, _mm256_xor_si256(pair, expected));
    }
    return _mm256_testz_si256(faults, faults) == 0;
  }

  // The least of values[0, 64), and a bit for each of them that equals `value`.
  static uint32_t least_of_64(const uint32_t *values) {
    const __m256i *const v = reinterpret_cast<const __m256i *>(values);
    __m256i least = _mm256_loadu_si256(v);
    for (int i = 1; i < 8; ++i)
      least = _mm256_min_epu32(least, _mm256_loadu_si256(v + i));
    __m128i m = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
    m = _mm_min_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_min_epu32(m, _mm_shuffle_epi32(m, 0xB1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
  }
  static uint64_t equal_in_64(const uint32_t *values, uint32_t value) {
    const __m256i wanted = _mm256_set1_epi32(static_cast<int>(value));
    uint64_t equal = 0;
    for (int i = 0; i < 8; ++i) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(values) + i);
      const int eight = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(v, wanted)));
      equal |= static_cast<uint64_t>(static_cast<uint32_t>(eight)) << (8 * i);
    }
    return equal;
  }
};

} // namespace
} // namespace bpe
