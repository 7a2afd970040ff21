// Operations that turn 64 bytes into masks, in two 32-byte registers. Include only in sources compiled with
// -mavx2 -mbmi -mbmi2 -mpopcnt.
#pragma once

#include "pretokenize/scan_window.hpp"
#include "text/first_two_bytes.hpp"
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
  // Return 0xFF where low <= byte <= high (unsigned). Shifts the range to the bottom of the signed numbers.
  static __m256i between(__m256i v, uint8_t low, uint8_t high) {
    const __m256i shifted = _mm256_add_epi8(v, _mm256_set1_epi8(static_cast<char>(0x80 - low)));
    return _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(0x80 + high - low + 1)), shifted);
  }
  static __m256i equal(__m256i v, char byte) { return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(byte)); }

  static constexpr int most_pages = 3, few = 8; // number of characters

  // 64 bytes in two registers.
  struct Block {
    __m256i low, high;

    template <class Of> Block of(Of each) const { return {each(low), each(high)}; }
    template <class Of> Block of(Of each, const Block &other) const {
      return {each(low, other.low), each(high, other.high)};
    }
    uint64_t tops() const { return mask(low, high); }
    uint64_t equal_to(uint8_t byte) const {
      return of([&](__m256i v) { return equal(v, static_cast<char>(byte)); }).tops();
    }
    uint64_t at_least(uint8_t least) const {
      const __m256i bytes = _mm256_set1_epi8(static_cast<char>(least));
      return of([&](__m256i v) { return _mm256_cmpeq_epi8(_mm256_max_epu8(v, bytes), v); }).tops();
    }
  };
  static Block load_block(const uint8_t *p) { return {load(p), load(p + 32)}; }
  static void store(const Block &block, uint8_t *to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), block.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + 32), block.high);
  }
  static __m256i pick(__m256i v, __m256i other, __m256i where) { return _mm256_blendv_epi8(v, other, where); }

  // Look up table[low six bits] for each byte.
  static __m256i look_up_64(const uint8_t *table, __m256i v) {
    const __m256i place = _mm256_and_si256(v, _mm256_set1_epi8(15));
    const auto part = [&](int number) {
      const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i *>(table + 16 * number));
      return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(sixteen), place);
    };
    // Move bit 4 or 5 of each byte to its sign bit.
    const __m256i odd = _mm256_slli_epi16(v, 3), upper = _mm256_slli_epi16(v, 2);
    return pick(pick(part(0), part(1), odd), pick(part(2), part(3), odd), upper);
  }

  // Classify characters that need more than their lead byte one page of classes at a time while there are
  // many. Handle them one by one if there are few, or many pages as in Chinese text.
  static uint64_t classify(const CharacterClasses &classes, const uint8_t *p, uint8_t *to) {
    const uint8_t *const table = classes.of_byte;
    const Block block = load_block(p);
    const uint64_t high = block.tops();
    Block found = block.of([&](__m256i v) {
      return pick(look_up_64(table, v), look_up_64(table + 64, v), _mm256_slli_epi16(v, 1));
    });
    if (high == 0) {
      store(found, to);
      return 0;
    }
    const auto is_lead = [](__m256i v) { return between(v, 0xC0, 0xFF); };
    found = found.of(
        [&](__m256i classes_found, __m256i v) {
          const __m256i within = _mm256_set1_epi8(static_cast<char>(table[0x80]));
          const __m256i of_high = pick(within, look_up_64(table + 0xC0, v), is_lead(v));
          return pick(classes_found, of_high, v);
        },
        block);
    uint64_t unclear = found.equal_to(CharacterClasses::unclear);
    for (int pages = 0; __builtin_popcountll(unclear) > few && pages < most_pages; ++pages) {
      const uint8_t *const c = p + __builtin_ctzll(unclear);
      const size_t last = *c < 0xE0 ? 1 : *c < 0xF0 ? 2 : 3;
      const CharacterClasses::Page &page = classes.page(c);
      uint64_t done = 0;
      const auto fill = [&](__m256i &half, unsigned at) {
        __m256i alike = equal(load(p + at), static_cast<char>(*c));
        for (size_t i = 1; i < last; ++i)
          alike = _mm256_and_si256(alike, equal(load(p + at + i), static_cast<char>(c[i])));
        half = pick(half, look_up_64(page.data(), load(p + at + last)), alike);
        done |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(alike))) << at;
      };
      fill(found.low, 0);
      fill(found.high, 32);
      unclear &= ~done;
    }
    store(found, to);
    classify_places(classes, p, unclear, to);
    return high & ~block.at_least(0xC0);
  }
  static uint64_t with_bit(const uint8_t *bytes, uint8_t bit) {
    const __m128i places = _mm_cvtsi32_si128(__builtin_clz(bit) - 24);
    return load_block(bytes).of([&](__m256i v) { return _mm256_sll_epi16(v, places); }).tops();
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

  static __m256i lookup(const uint8_t (&table)[16], __m256i halves) {
    return _mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(table))), halves);
  }
  static __m256i low_half(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
  static __m256i high_half(__m256i v) { return low_half(_mm256_srli_epi16(v, 4)); }

  static uint64_t first_two(const FirstTwoBytes &pairs, const uint8_t *p) { // text/first_two_bytes.hpp
    const auto of_half = [&](const uint8_t *at) {
      const __m256i first = load(at), second = load(at + 1);
      const __m256i groups = _mm256_and_si256(_mm256_and_si256(lookup(pairs.first_low, low_half(first)),
                                                               lookup(pairs.first_high, high_half(first))),
                                              _mm256_and_si256(lookup(pairs.second_low, low_half(second)),
                                                               lookup(pairs.second_high, high_half(second))));
      return ~static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(groups, _mm256_setzero_si256())));
    };
    return of_half(p) | uint64_t{of_half(p + 32)} << 32;
  }

  // Return whether any byte of the block is invalid given the 3 bytes before it.
  static bool utf8_faults(const uint8_t *p) {
    __m256i faults = _mm256_setzero_si256();
    for (int half = 0; half < 64; half += 32) {
      const __m256i first = load(p + half - 1);
      __m256i pair = lookup(utf8_tables.first_high, high_half(first));
      pair = _mm256_and_si256(pair, lookup(utf8_tables.first_low, low_half(first)));
      pair = _mm256_and_si256(pair, lookup(utf8_tables.second_high, high_half(load(p + half))));
      // Top bit: the lead of a 3-byte sequence two bytes before, or of a 4-byte sequence three bytes before.
      const __m256i third = _mm256_subs_epu8(load(p + half - 2), _mm256_set1_epi8(0xE0 - 0x80));
      const __m256i fourth = _mm256_subs_epu8(load(p + half - 3), _mm256_set1_epi8(0xF0 - 0x80));
      const __m256i expected =
          _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(static_cast<char>(0x80)));
      faults = _mm256_or_si256(faults, _mm256_xor_si256(pair, expected));
    }
    return _mm256_testz_si256(faults, faults) == 0;
  }

  // Return the minimum of values[0, 64) and set the bit of each one that equals `value`.
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
