// 64 bytes to masks in one register. Only for sources compiled with -mavx512f -mavx512bw -mavx512vl
// -mavx512vbmi -mavx512vbmi2 -mbmi -mbmi2 -mpopcnt -mlzcnt.
#pragma once

#include "pretokenize/classify.hpp"
#include "simd/simd_masks.hpp"
#include "text/unicode_classes.hpp"
#include "text/utf8_blocks.hpp"

#include <immintrin.h>

namespace bpe {
namespace {

constexpr uint8_t upper_flag = 1, lower_flag = 2, number_flag = 4, space_flag = 8, blank_flag = 16,
                  line_break_flag = 32, apostrophe_flag = 64, slash_flag = 128;

struct FlagTable {
  alignas(64) uint8_t flags[128];
};
constexpr FlagTable make_flag_table() {
  FlagTable table{};
  for (int byte = 0; byte < 128; ++byte) {
    const bool blank = byte == ' ', line_break = byte == '\n' || byte == '\r';
    table.flags[byte] = static_cast<uint8_t>(
        (byte >= 'A' && byte <= 'Z' ? upper_flag : 0) | (byte >= 'a' && byte <= 'z' ? lower_flag : 0) |
        (byte >= '0' && byte <= '9' ? number_flag : 0) |
        (blank || (byte >= '\t' && byte <= '\r') ? space_flag : 0) | (blank ? blank_flag : 0) |
        (line_break ? line_break_flag : 0) | (byte == '\'' ? apostrophe_flag : 0) |
        (byte == '/' ? slash_flag : 0));
  }
  return table;
}
constexpr FlagTable flag_table = make_flag_table();

struct Avx512Simd {
  template <bool cased> static BlockMasks classify(const uint8_t *p) {
    const __m512i v = _mm512_loadu_si512(p);
    const uint64_t high = _mm512_movepi8_mask(v);
    // One lookup of 128 bytes gives all classes; bytes from 0x80 on are looked up without their top bit, so
    // masked.
    const __m512i flags = _mm512_maskz_permutex2var_epi8(~high, _mm512_load_si512(flag_table.flags), v,
                                                         _mm512_load_si512(flag_table.flags + 64));
    const auto test = [&](uint8_t flag) {
      return static_cast<uint64_t>(_mm512_test_epi8_mask(flags, _mm512_set1_epi8(static_cast<char>(flag))));
    };
    BlockMasks masks{};
    if (cased) {
      masks.upper = test(upper_flag);
      masks.lower = test(lower_flag);
      masks.slash = test(slash_flag);
    } else {
      masks.lower = test(upper_flag | lower_flag);
    }
    masks.number = test(number_flag);
    masks.space = test(space_flag);
    masks.blank = test(blank_flag);
    masks.line_break = test(line_break_flag);
    masks.apostrophe = test(apostrophe_flag);
    masks.high = high;
    return masks;
  }

  template <bool cased> static LeadMasks leads(const uint8_t *p, uint64_t) {
    const __m512i v = _mm512_loadu_si512(p), low_four = _mm512_set1_epi8(15);
    const __m512i places = _mm512_broadcast_i32x4(
        _mm_load_si128(reinterpret_cast<const __m128i *>(cased ? caseless_leads : letter_leads)));
    const __m512i groups =
        _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i *>(lead_groups)));
    const __m512i place = _mm512_shuffle_epi8(places, _mm512_and_si512(v, low_four));
    const __m512i group = _mm512_shuffle_epi8(groups, _mm512_and_si512(_mm512_srli_epi16(v, 4), low_four));
    return {_mm512_cmpge_epu8_mask(v, _mm512_set1_epi8(static_cast<char>(0xC0))),
            _mm512_test_epi8_mask(place, group)};
  }

  // Sets the three bits of CharClass, one mask each, at the leads of characters that the tables hold, and
  // returns these leads: all characters of two bytes, and the commonest ranges of 512 of three.
  static uint64_t vector_classes(const uint8_t *p, uint64_t leads, uint64_t *bits) {
    const __m512i v = _mm512_loadu_si512(p), next = _mm512_loadu_si512(p + 1);
    uint64_t done = 0;
    if (const uint64_t twos = leads & _mm512_cmplt_epu8_mask(v, set(0xE0)); twos != 0) {
      // Byte of a 256-byte table: five bits of the lead, then the upper three of the next byte's six.
      const __m512i place =
          _mm512_or_si512(_mm512_and_si512(_mm512_slli_epi16(v, 3), set(0xF8)), upper_three(next));
      const __m512i chosen = chosen_bit(next);
      const uint64_t upper_half = _mm512_movepi8_mask(place);
      for (int i = 0; i < 3; ++i) {
        const uint8_t *const table = unicode_two_byte_bits[i];
        const __m512i low = _mm512_permutex2var_epi8(load(table), place, load(table + 64));
        const __m512i high = _mm512_permutex2var_epi8(load(table + 128), place, load(table + 192));
        bits[i] |= twos & _mm512_test_epi8_mask(_mm512_mask_blend_epi8(upper_half, low, high), chosen);
      }
      done = twos;
    }
    if (done == leads)
      return done;
    const __m512i last = _mm512_loadu_si512(p + 2);
    // Byte of a 64-byte table: three bits of the second byte, then the upper three of the last byte's six.
    const __m512i place =
        _mm512_or_si512(_mm512_and_si512(_mm512_slli_epi16(next, 3), set(0x38)), upper_three(last));
    const __m512i chosen = chosen_bit(last), second_group = _mm512_and_si512(next, set(0xF8));
    for (const UnicodeRange &range : unicode_three_byte_ranges) {
      const uint64_t here = leads & _mm512_cmpeq_epi8_mask(v, set(range.lead)) &
                            _mm512_cmpeq_epi8_mask(second_group, set(range.second));
      if (here == 0)
        continue;
      for (int i = 0; i < 3; ++i)
        bits[i] |= here & _mm512_test_epi8_mask(_mm512_permutexvar_epi8(place, load(range.bits[i])), chosen);
      done |= here;
      if (done == leads)
        return done;
    }
    // Hangul of these leads: AC00 to AFFF, D000 to D77F.
    const uint64_t hangul =
        (leads & _mm512_cmpeq_epi8_mask(v, set(0xEA)) & _mm512_cmpge_epu8_mask(next, set(0xB0))) |
        (leads & _mm512_cmpeq_epi8_mask(v, set(0xED)) & _mm512_cmplt_epu8_mask(next, set(0x9E)));
    bits[0] |= hangul; // letter
    bits[1] |= hangul;
    return done | hangul;
  }
  static __m512i load(const uint8_t *p) { return _mm512_loadu_si512(p); }
  static __m512i set(uint8_t byte) { return _mm512_set1_epi8(static_cast<char>(byte)); }
  static __m512i upper_three(__m512i six) { return _mm512_and_si512(_mm512_srli_epi16(six, 3), set(7)); }
  // The lower three bits of each byte as the place of a bit.
  static __m512i chosen_bit(__m512i v) {
    return _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201)),
                               _mm512_and_si512(v, set(7)));
  }

  // A page of classes at a time for characters whose leads do not tell theirs: text has few pages.
  static void classify(const CharacterClasses &classes, const uint8_t *p, uint8_t *out) {
    const __m512i v = _mm512_loadu_si512(p);
    const uint64_t high = _mm512_movepi8_mask(v);
    __m512i found = _mm512_permutex2var_epi8(load(classes.of_byte), v, load(classes.of_byte + 64));
    if (high != 0) {
      const uint64_t leads = _mm512_cmpge_epu8_mask(v, set(0xC0));
      found = _mm512_mask_mov_epi8(found, high & ~leads, set(classes.of_byte[0x80]));
      found = _mm512_mask_permutexvar_epi8(found, leads, v, load(classes.of_byte + 0xC0));
      uint64_t unclear = leads & _mm512_cmpeq_epi8_mask(found, set(CharacterClasses::unclear));
      if (unclear != 0) {
        const __m512i second = _mm512_loadu_si512(p + 1), third = _mm512_loadu_si512(p + 2);
        do {
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
        } while (unclear != 0);
      }
    }
    _mm512_storeu_si512(out, found);
  }
  static uint64_t below(const uint8_t *bytes, unsigned limit) {
    return limit == 0 ? 0 : _mm512_cmple_epu8_mask(load(bytes), set(static_cast<uint8_t>(limit - 1)));
  }

  static uint64_t wordless_leads(const uint8_t *p) { // text/wordless_leads.hpp
    const __m512i v = _mm512_loadu_si512(p);
    return _mm512_cmpge_epu8_mask(v, set(0xE2)) &
           ~_mm512_cmplt_epu8_mask(_mm512_sub_epi8(v, set(0xEA)), set(4));
  }

  static bool any_high(const uint8_t *p) { return _mm512_movepi8_mask(_mm512_loadu_si512(p)) != 0; }

  // Whether a byte of the block is at fault with the 3 bytes before it.
  static bool utf8_faults(const uint8_t *p) {
    const auto lookup = [](const uint8_t *table, __m512i halves) {
      return _mm512_shuffle_epi8(
          _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i *>(table))), halves);
    };
    const __m512i low_four = _mm512_set1_epi8(15);
    const auto high_half = [&](__m512i v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), low_four); };
    const __m512i first = _mm512_loadu_si512(p - 1);
    __m512i pair = lookup(utf8_tables.first_high, high_half(first));
    pair = _mm512_and_si512(pair, lookup(utf8_tables.first_low, _mm512_and_si512(first, low_four)));
    pair = _mm512_and_si512(pair, lookup(utf8_tables.second_high, high_half(_mm512_loadu_si512(p))));
    // Top bit: a lead of 3 bytes two before, or of 4 bytes three before.
    const __m512i third = _mm512_subs_epu8(_mm512_loadu_si512(p - 2), _mm512_set1_epi8(0xE0 - 0x80));
    const __m512i fourth = _mm512_subs_epu8(_mm512_loadu_si512(p - 3), _mm512_set1_epi8(0xF0 - 0x80));
    const __m512i expected =
        _mm512_and_si512(_mm512_or_si512(third, fourth), _mm512_set1_epi8(static_cast<char>(0x80)));
    return _mm512_cmpneq_epi8_mask(pair, expected) != 0;
  }

  static uint32_t *emit(uint32_t *out, uint64_t bits, uint32_t base) {
    alignas(64) static constexpr uint8_t places[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i packed = _mm512_maskz_compress_epi8(bits, _mm512_load_si512(places));
    const __m512i bases = _mm512_set1_epi32(static_cast<int>(base));
    const auto store = [&](int quarter, __m128i sixteen) {
      _mm512_storeu_si512(out + 16 * quarter, _mm512_add_epi32(bases, _mm512_cvtepu8_epi32(sixteen)));
    };
    const int count = static_cast<int>(_mm_popcnt_u64(bits));
    store(0, _mm512_castsi512_si128(packed));
    store(1, _mm512_extracti32x4_epi32(packed, 1)); // about every fourth block of prose has more than 16
    if (count > 32) {
      store(2, _mm512_extracti32x4_epi32(packed, 2));
      store(3, _mm512_extracti32x4_epi32(packed, 3));
    }
    return out + count;
  }

  // The least of values[0, 64), and a bit for each of them that equals `value`.
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
