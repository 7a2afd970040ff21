// 64 bytes to masks in one register. Only for sources compiled with -mavx512f -mavx512bw -mavx512vl
// -mavx512vbmi -mavx512vbmi2 -mbmi -mbmi2 -mpopcnt -mlzcnt.
#pragma once

#include "pretokenize/kept_steps.hpp"
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
  // The classes of 64 bytes. A page of classes at a time for characters whose leads do not tell theirs: most
  // text has few pages. Chinese has many, and each would wait for the one before; there it is a character at
  // a time behind the first.
  static __m512i classify(const CharacterClasses &classes, const uint8_t *p, __m512i v, uint64_t high) {
    __m512i found = _mm512_permutex2var_epi8(load(classes.of_byte), v, load(classes.of_byte + 64));
    if (high == 0)
      return found;
    const uint64_t leads = _mm512_cmpge_epu8_mask(v, set(0xC0));
    found = _mm512_mask_mov_epi8(found, high & ~leads, set(classes.of_byte[0x80]));
    found = _mm512_mask_permutexvar_epi8(found, leads, v, load(classes.of_byte + 0xC0));
    uint64_t unclear = leads & _mm512_cmpeq_epi8_mask(found, set(CharacterClasses::unclear));
    if (unclear == 0)
      return found;
    const __m512i second = _mm512_loadu_si512(p + 1), third = _mm512_loadu_si512(p + 2);
    for (int pages = 0; pages < most_pages; ++pages) {
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
      if (unclear == 0)
        return found;
    }
    alignas(64) uint8_t each[64];
    _mm512_store_si512(each, found);
    for (; unclear != 0; unclear &= unclear - 1) {
      const size_t place = _tzcnt_u64(unclear);
      each[place] = classes.of_character(p + place);
    }
    return _mm512_load_si512(each);
  }

  class Keep {
  public:
    explicit Keep(const Automaton &automaton) : automaton_(automaton), groups_(load(automaton.runs)) {}

    size_t add(const uint8_t *p, size_t word, uint8_t *to, WindowStates &out) {
      const __m512i v = load(p);
      const uint64_t high = _mm512_movepi8_mask(v);
      const __m512i classes = classify(automaton_.classes, p, v, high);
      const uint64_t within = high & _mm512_cmplt_epu8_mask(v, set(0xC0));
      uint64_t kept = ~uint64_t{0};
      if (automaton_.has_runs) {
        const __m512i groups = _mm512_permutexvar_epi8(classes, groups_);
        const __m512i previous = _mm512_permutex2var_epi8(last_groups_, load(previous_places), groups);
        last_groups_ = groups;
        const uint64_t first = _mm512_cmpge_epu8_mask(groups, set(runs::first));
        kept = steps_.kept({.within = within,
                            .words = _mm512_cmpeq_epi8_mask(groups, set(runs::word)),
                            .unruly = _mm512_cmpeq_epi8_mask(groups, set(runs::unruly)),
                            .once = first & _mm512_cmpeq_epi8_mask(groups, previous),
                            .twice = _mm512_cmpge_epu8_mask(groups, set(runs::twice))});
      }
      _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, classes));
      out.kept[word] = kept;
      out.within[word] = within;
      return static_cast<size_t>(_mm_popcnt_u64(kept));
    }

  private:
    alignas(64) static constexpr uint8_t previous_places[64] = {
        63,  64,  65,  66,  67,  68,  69,  70,  71,  72,  73,  74,  75,  76,  77,  78,
        79,  80,  81,  82,  83,  84,  85,  86,  87,  88,  89,  90,  91,  92,  93,  94,
        95,  96,  97,  98,  99,  100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110,
        111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126};

    const Automaton &automaton_;
    const __m512i groups_;
    __m512i last_groups_ = _mm512_setzero_si512(); // of the block before
    KeptSteps steps_;
  };

  static uint64_t spread(uint64_t bits, uint64_t to) { return _pdep_u64(bits, to); }
  static uint64_t below(const uint8_t *bytes, unsigned limit) {
    return limit == 0 ? 0 : _mm512_cmple_epu8_mask(load(bytes), set(static_cast<uint8_t>(limit - 1)));
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

  // Whether a byte of the block is at fault with the 3 bytes before it.
  static bool utf8_faults(const uint8_t *p) {
    const __m512i first = _mm512_loadu_si512(p - 1);
    __m512i pair = lookup(utf8_tables.first_high, high_half(first));
    pair = _mm512_and_si512(pair, lookup(utf8_tables.first_low, low_half(first)));
    pair = _mm512_and_si512(pair, lookup(utf8_tables.second_high, high_half(_mm512_loadu_si512(p))));
    // Top bit: a lead of 3 bytes two before, or of 4 bytes three before.
    const __m512i third = _mm512_subs_epu8(_mm512_loadu_si512(p - 2), _mm512_set1_epi8(0xE0 - 0x80));
    const __m512i fourth = _mm512_subs_epu8(_mm512_loadu_si512(p - 3), _mm512_set1_epi8(0xF0 - 0x80));
    const __m512i expected =
        _mm512_and_si512(_mm512_or_si512(third, fourth), _mm512_set1_epi8(static_cast<char>(0x80)));
    return _mm512_cmpneq_epi8_mask(pair, expected) != 0;
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
