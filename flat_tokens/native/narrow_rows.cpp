// As in cut_rows.cpp, the compiler makes the vector loops, on x86-64 also of 32 and of 64 bytes.
#include "narrow_rows.hpp"

#include "instruction_sets.hpp"

#include <bit>
#include <cstring>
#ifdef FLAT_TOKENS_HAS_AVX
#include <immintrin.h>
#endif

namespace flat_tokens {

namespace {

constexpr size_t word_bits = 64;
constexpr size_t line_ids = 32;  // of a cache line
constexpr size_t rows_ahead = 4; // whose pages are looked up
constexpr size_t block_ids = 256;

inline uint64_t bits_of(const uint32_t *encoded, size_t count) {
  uint64_t bits = 0;
  for (size_t i = 0; i < count; ++i)
    bits |= uint64_t{encoded[i] & 1} << i;
  return bits;
}

// One word of flags and its 64 ids. Sequences are long, so most words are zero: one look at all tokens says
// so.
struct Portable {
  [[gnu::always_inline]] static inline void word(const uint32_t *encoded, uint16_t *__restrict ids,
                                                 uint64_t &bits, uint32_t &largest) {
    uint32_t any = 0, most = largest;
    for (size_t i = 0; i < word_bits; ++i) {
      const uint32_t token = encoded[i];
      any |= token;
      most = token > most ? token : most;
      ids[i] = static_cast<uint16_t>(token >> 1);
    }
    largest = most;
    bits = any & 1 ? bits_of(encoded, word_bits) : 0;
  }
};

// Stores past the caches are no gain: a seventh less time here, a third more for the rows that are cut from
// it later.
template <class Words>
[[gnu::always_inline]] inline uint32_t narrow_all(const uint32_t *encoded, size_t count, uint16_t *ids,
                                                  uint64_t *start_bits, size_t at) {
  uint32_t largest = 0;
  const auto some = [&](size_t size) { // inside one word
    const size_t shift = at % word_bits;
    const uint64_t mask = (size == word_bits ? ~uint64_t{0} : (uint64_t{1} << size) - 1) << shift;
    uint64_t &word = start_bits[at / word_bits];
    word = (word & ~mask) | bits_of(encoded, size) << shift;
    for (size_t i = 0; i < size; ++i) {
      largest = encoded[i] > largest ? encoded[i] : largest;
      ids[at + i] = static_cast<uint16_t>(encoded[i] >> 1);
    }
    encoded += size, at += size, count -= size;
  };
  if (at % word_bits != 0 && count > 0)
    some(count < word_bits - at % word_bits ? count : word_bits - at % word_bits);
  for (; count >= word_bits; encoded += word_bits, at += word_bits, count -= word_bits)
    Words::word(encoded, ids + at, start_bits[at / word_bits], largest);
  if (count > 0)
    some(count);
  return largest;
}

template <class Id>
[[gnu::always_inline]] inline void cut_all(const uint16_t *ids, const uint64_t *start_bits,
                                           const int64_t *firsts, size_t count, size_t length, Id *inputs,
                                           Id *targets, uint8_t *is_start) {
  std::memset(is_start, 0, count * length);
  for (size_t row = 0; row < count; ++row, inputs += length, targets += length, is_start += length) {
    const size_t first = static_cast<size_t>(firsts[row]), stop = first + length;
    if (row + rows_ahead < count)
      __builtin_prefetch(ids + firsts[row + rows_ahead]);
    const uint16_t *const next = row + 1 < count ? ids + firsts[row + 1] : nullptr;
    for (size_t start = 0; start < length; start += block_ids) {
      const size_t size = length - start < block_ids ? length - start : block_ids;
      if (next)
        for (size_t i = 0; i < size; i += line_ids)
          __builtin_prefetch(next + start + i);
      const uint16_t *const here = ids + first + start;
      Id *__restrict const inputs_here = inputs + start;
      Id *__restrict const targets_here = targets + start;
      for (size_t i = 0; i < size; ++i) {
        targets_here[i] = here[i];
        inputs_here[i] = here[static_cast<ptrdiff_t>(i) - 1];
      }
    }
    for (size_t word = first / word_bits; word * word_bits < stop; ++word) {
      uint64_t bits = start_bits[word];
      if (word * word_bits < first)
        bits &= ~uint64_t{0} << first % word_bits;
      if ((word + 1) * word_bits > stop)
        bits &= ~uint64_t{0} >> (word_bits - stop % word_bits);
      for (; bits != 0; bits &= bits - 1) {
        const size_t i = word * word_bits + static_cast<size_t>(std::countr_zero(bits)) - first;
        inputs[i] = 0;
        is_start[i] = 1;
      }
    }
  }
}

#ifdef FLAT_TOKENS_HAS_AVX
// As Portable::word.
struct Avx2 {
  FLAT_TOKENS_AVX2 static void word(const uint32_t *encoded, uint16_t *ids, uint64_t &bits,
                                    uint32_t &largest) {
    __m256i most = _mm256_set1_epi32(static_cast<int>(largest));
    uint64_t found = 0;
    for (size_t i = 0; i < word_bits; i += 16) {
      const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(encoded + i));
      const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(encoded + i + 8));
      most = _mm256_max_epu32(most, _mm256_max_epu32(low, high));
      const auto flags = [](__m256i tokens) FLAT_TOKENS_AVX2 {
        return static_cast<uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(tokens, 31))));
      };
      found |= (flags(low) | flags(high) << 8) << i;
      const __m256i mask =
          _mm256_set1_epi32(0xFFFF); // an id too large must not saturate: nothing is undefined
      const __m256i packed = _mm256_packus_epi32(_mm256_and_si256(_mm256_srli_epi32(low, 1), mask),
                                                 _mm256_and_si256(_mm256_srli_epi32(high, 1), mask));
      _mm256_storeu_si256(reinterpret_cast<__m256i *>(ids + i), _mm256_permute4x64_epi64(packed, 0xD8));
    }
    bits = found;
    alignas(32) uint32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i *>(lanes), most);
    for (const uint32_t lane : lanes)
      largest = lane > largest ? lane : largest;
  }
};

struct Avx512 {
  FLAT_TOKENS_AVX512 static void word(const uint32_t *encoded, uint16_t *ids, uint64_t &bits,
                                      uint32_t &largest) {
    const __m512i one = _mm512_set1_epi32(1);
    __m512i most = _mm512_setzero_si512();
    uint64_t found = 0;
    for (size_t i = 0; i < word_bits; i += 32) {
      const __m512i low = _mm512_loadu_si512(encoded + i), high = _mm512_loadu_si512(encoded + i + 16);
      most = _mm512_max_epu32(most, _mm512_max_epu32(low, high));
      found |= static_cast<uint64_t>(_mm512_test_epi32_mask(low, one)) << i;
      found |= static_cast<uint64_t>(_mm512_test_epi32_mask(high, one)) << (i + 16);
      const __m256i low_ids = _mm512_cvtepi32_epi16(_mm512_srli_epi32(low, 1));
      const __m256i high_ids = _mm512_cvtepi32_epi16(_mm512_srli_epi32(high, 1));
      _mm512_storeu_si512(ids + i, _mm512_inserti64x4(_mm512_castsi256_si512(low_ids), high_ids, 1));
    }
    bits = found;
    const uint32_t here = _mm512_reduce_max_epu32(most);
    largest = here > largest ? here : largest;
  }
};

FLAT_TOKENS_AVX2 uint32_t narrow_avx2(const uint32_t *encoded, size_t count, uint16_t *ids,
                                      uint64_t *start_bits, size_t at) {
  return narrow_all<Avx2>(encoded, count, ids, start_bits, at);
}

FLAT_TOKENS_AVX512 uint32_t narrow_avx512(const uint32_t *encoded, size_t count, uint16_t *ids,
                                          uint64_t *start_bits, size_t at) {
  return narrow_all<Avx512>(encoded, count, ids, start_bits, at);
}

template <class Id>
FLAT_TOKENS_AVX2 void cut_avx2(const uint16_t *ids, const uint64_t *start_bits, const int64_t *firsts,
                               size_t count, size_t length, Id *inputs, Id *targets, uint8_t *is_start) {
  cut_all(ids, start_bits, firsts, count, length, inputs, targets, is_start);
}

template <class Id>
FLAT_TOKENS_AVX512 void cut_avx512(const uint16_t *ids, const uint64_t *start_bits, const int64_t *firsts,
                                   size_t count, size_t length, Id *inputs, Id *targets, uint8_t *is_start) {
  cut_all(ids, start_bits, firsts, count, length, inputs, targets, is_start);
}
#endif

} // namespace

uint32_t narrow(const uint32_t *encoded, size_t count, uint16_t *ids, uint64_t *start_bits, size_t at) {
#ifdef FLAT_TOKENS_HAS_AVX
  if (has_avx512())
    return narrow_avx512(encoded, count, ids, start_bits, at);
  if (has_avx2())
    return narrow_avx2(encoded, count, ids, start_bits, at);
#endif
  return narrow_all<Portable>(encoded, count, ids, start_bits, at);
}

template <class Id>
void cut_narrow(const uint16_t *ids, const uint64_t *start_bits, const int64_t *firsts, size_t count,
                size_t length, Id *inputs, Id *targets, uint8_t *is_start) {
#ifdef FLAT_TOKENS_HAS_AVX
  if (has_avx512())
    return cut_avx512(ids, start_bits, firsts, count, length, inputs, targets, is_start);
  if (has_avx2())
    return cut_avx2(ids, start_bits, firsts, count, length, inputs, targets, is_start);
#endif
  cut_all(ids, start_bits, firsts, count, length, inputs, targets, is_start);
}

template void cut_narrow(const uint16_t *, const uint64_t *, const int64_t *, size_t, size_t, uint16_t *,
                         uint16_t *, uint8_t *);
template void cut_narrow(const uint16_t *, const uint64_t *, const int64_t *, size_t, size_t, uint32_t *,
                         uint32_t *, uint8_t *);
template void cut_narrow(const uint16_t *, const uint64_t *, const int64_t *, size_t, size_t, uint64_t *,
                         uint64_t *, uint8_t *);

} // namespace flat_tokens
