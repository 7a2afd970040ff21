#include "narrow_rows.hpp"

#include <bit>
#include <cstring>

// As in cut_rows.cpp, the compiler makes the vector loops, on x86-64 also of 32 and of 64 bytes.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FLAT_TOKENS_HAS_AVX 1
#define FLAT_TOKENS_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define FLAT_TOKENS_AVX512                                                                                   \
  __attribute__((target("avx2,bmi,bmi2,avx512f,avx512bw,avx512vl,prefer-vector-width=512")))
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

// Sequences are long, so most words of flags are zero: one look at all 64 tokens says so.
[[gnu::always_inline]] inline uint32_t narrow_all(const uint32_t *encoded, size_t count,
                                                  uint16_t *__restrict ids, uint64_t *__restrict start_bits,
                                                  size_t at) {
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
  for (; count >= word_bits; encoded += word_bits, at += word_bits, count -= word_bits) {
    uint32_t any = 0;
    uint16_t *const here = ids + at;
    for (size_t i = 0; i < word_bits; ++i) {
      const uint32_t token = encoded[i];
      any |= token;
      largest = token > largest ? token : largest;
      here[i] = static_cast<uint16_t>(token >> 1);
    }
    start_bits[at / word_bits] = any & 1 ? bits_of(encoded, word_bits) : 0;
  }
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
FLAT_TOKENS_AVX2 uint32_t narrow_avx2(const uint32_t *encoded, size_t count, uint16_t *ids,
                                      uint64_t *start_bits, size_t at) {
  return narrow_all(encoded, count, ids, start_bits, at);
}

FLAT_TOKENS_AVX512 uint32_t narrow_avx512(const uint32_t *encoded, size_t count, uint16_t *ids,
                                          uint64_t *start_bits, size_t at) {
  return narrow_all(encoded, count, ids, start_bits, at);
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

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return has;
}

bool has_avx512() {
  static const bool has = has_avx2() && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return has;
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
  return narrow_all(encoded, count, ids, start_bits, at);
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
