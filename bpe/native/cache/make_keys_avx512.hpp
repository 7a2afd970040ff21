// Keys of sixteen pretokens at a time, four in a register. Only for sources compiled for simd_avx512.hpp.
//
// About 10 instructions a pretoken where one by one takes 40; English warm 367 -> 419 MB/s.
#pragma once

#include "cache/make_keys.hpp"

#include <algorithm>
#include <immintrin.h>

namespace bpe {
namespace {

struct KeyConstants {
  alignas(
      64) uint8_t size_of[4][64]; // for each four pretokens: where their sizes stand in a register of sixteen
  alignas(64) uint8_t places[64]; // of a byte in its key; the last, which is the length's, never counts
  alignas(64) uint32_t order[16]; // of hashes
};
constexpr KeyConstants key_constants = [] {
  KeyConstants constants{};
  for (int byte = 0; byte < 64; ++byte) {
    for (int four = 0; four < 4; ++four)
      constants.size_of[four][byte] = static_cast<uint8_t>(4 * (4 * four + byte / 16));
    constants.places[byte] = byte % 16 == 15 ? 255 : static_cast<uint8_t>(byte % 16);
  }
  for (uint32_t i = 0; i < 16; ++i)
    constants.order[i] = i % 4 * 4 + i / 4;
  return constants;
}();

// The hashes of four keys, each in all four places of its key.
inline __m512i hashes_of_four(__m512i keys) {
  const __m512i salts =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i *>(CacheKey::salts)));
  const __m512i salted = _mm512_add_epi32(keys, salts);
  const __m512i products = _mm512_mul_epu32(salted, _mm512_srli_epi64(salted, 32));
  const __m512i sums = _mm512_add_epi64(products, _mm512_shuffle_epi32(products, _MM_PERM_BADC));
  return _mm512_xor_si512(sums, _mm512_ror_epi64(sums, 32));
}

// To be read one by one: GCC would rather take the register apart, two instructions each on one port.
inline void store_to_read(uint32_t (&to)[16], __m512i from) {
  _mm256_store_si256(reinterpret_cast<__m256i *>(to), _mm512_castsi512_si256(from));
  _mm256_store_si256(reinterpret_cast<__m256i *>(to + 8), _mm512_extracti64x4_epi64(from, 1));
  asm volatile("" : "+m"(to));
}

inline uint64_t make_keys_avx512(const PretokenSpans &run, CacheKey *keys, uint32_t *hashes) {
  constexpr uint64_t first_bytes = 0x0001'0001'0001'0001, last_bytes = 0x8000'8000'8000'8000;
  const auto load = [](const void *constant) { return _mm512_load_si512(constant); };
  const uint8_t *const origin = run.origin;
  const ptrdiff_t readable = run.readable - origin;
  if (readable < 16)
    return make_keys(run, keys, hashes);
  const __m512i last_start =
      _mm512_set1_epi32(static_cast<int>(std::min<ptrdiff_t>(readable - 16, UINT32_MAX)));
  uint64_t split = 0;
  __m512i last_ends = _mm512_set1_epi32(static_cast<int>(run.start));
  for (size_t i = 0; i < run.count; i += 16) {
    const size_t left = run.count - i;
    const __mmask16 wanted = static_cast<__mmask16>(left >= 16 ? 0xFFFF : (1u << left) - 1);
    const __m512i ends = _mm512_maskz_loadu_epi32(wanted, run.ends + i);
    const __m512i starts = _mm512_alignr_epi32(ends, last_ends, 15);
    last_ends = ends;
    const __m512i sizes = _mm512_sub_epi32(ends, starts);
    const __mmask16 small =
        _mm512_mask_cmple_epu32_mask(wanted, sizes, _mm512_set1_epi32(CacheKey::max_bytes));
    const __mmask16 loadable = _mm512_mask_cmple_epu32_mask(small, starts, last_start);
    alignas(64) uint32_t places[16];
    store_to_read(places, _mm512_maskz_mov_epi32(loadable, starts));
    __m512i hash[4];
    uint64_t characters = 0;
    for (int four = 0; four < 4; ++four) {
      const auto bytes = [&](int k) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i *>(origin + places[4 * four + k]));
      };
      __m512i text = _mm512_castsi128_si512(bytes(0));
      text = _mm512_inserti32x4(text, bytes(1), 1);
      text = _mm512_inserti32x4(text, bytes(2), 2);
      text = _mm512_inserti32x4(text, bytes(3), 3);
      const __m512i size = _mm512_permutexvar_epi8(load(key_constants.size_of[four]), sizes);
      const __mmask64 own = _mm512_cmplt_epu8_mask(load(key_constants.places), size);
      const __m512i key = _mm512_mask_mov_epi8(_mm512_maskz_mov_epi8(own, text), last_bytes, size);
      _mm512_storeu_si512(keys + i + 4 * four, key);
      hash[four] = hashes_of_four(key);
      // As is_split says: E2..E9, EE and EF.
      const __m512i lead = _mm512_sub_epi8(text, _mm512_set1_epi8(static_cast<char>(0xE2)));
      const __mmask64 wide =
          _mm512_mask_cmplt_epu8_mask(_mm512_mask_cmpgt_epu8_mask(first_bytes, size, _mm512_set1_epi8(3)),
                                      lead, _mm512_set1_epi8(0xF0 - 0xE2));
      const __mmask64 wordless = _mm512_mask_cmpge_epu8_mask(
          wide, _mm512_sub_epi8(lead, _mm512_set1_epi8(0xEA - 0xE2)), _mm512_set1_epi8(4));
      characters |= _pext_u64(wordless, first_bytes) << 4 * four;
    }
    __m512i all = _mm512_mask_mov_epi32(hash[0], 0x2222, hash[1]);
    all = _mm512_mask_mov_epi32(all, 0x4444, hash[2]);
    all = _mm512_mask_mov_epi32(all, 0x8888, hash[3]);
    all = _mm512_maskz_permutexvar_epi32(loadable, load(key_constants.order), all);
    _mm512_storeu_si512(hashes + i, all);
    split |= (static_cast<uint32_t>(wanted & ~small) | (characters & loadable)) << i;
    if (loadable != small) [[unlikely]] { // the last bytes of the buffer
      const size_t next = i + static_cast<size_t>(__builtin_ctz(small & ~static_cast<uint32_t>(loadable)));
      const uint32_t start = next > 0 ? run.ends[next - 1] : run.start;
      split &= (uint64_t{1} << next) - 1;
      return split | make_keys({origin, start, run.ends + next, run.count - next, run.readable}, keys + next,
                               hashes + next)
                         << next;
    }
  }
  return split;
}

} // namespace
} // namespace bpe
