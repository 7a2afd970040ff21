// Compute the keys of up to sixteen pretokens of a block of 64 bytes in a register. Include only in sources
// compiled for simd_avx512.hpp.
//
// Byte permutations move four pretokens at a time to their positions in a register of keys. This avoids a
// load per pretoken and reads no bytes after the block.
#pragma once

#include "cache/walk_keys.hpp"

#include <immintrin.h>

namespace bpe {
namespace {

struct BlockKeyConstants {
  alignas(64) uint8_t pretoken_of[4][64]; // per group of four pretokens: the pretoken of each key byte
  alignas(64) uint8_t place[64];          // index of each byte in its key
  alignas(64) uint8_t own_place[64];      // the same; the last byte holds the length, never text
  alignas(64) uint8_t numbers[64];
  alignas(64) uint32_t order[16]; // of hashes
};
constexpr BlockKeyConstants block_key_constants = [] {
  BlockKeyConstants constants{};
  for (int byte = 0; byte < 64; ++byte) {
    for (int four = 0; four < 4; ++four)
      constants.pretoken_of[four][byte] = static_cast<uint8_t>(4 * four + byte / 16);
    constants.place[byte] = static_cast<uint8_t>(byte % 16);
    constants.own_place[byte] = byte % 16 == 15 ? 255 : static_cast<uint8_t>(byte % 16);
    constants.numbers[byte] = static_cast<uint8_t>(byte);
  }
  // For groups 0 and 1, then 2 and 3: the two sums of the key of a lane, adjacent, as the interleaving leaves
  // them.
  for (uint32_t i = 0; i < 16; ++i)
    constants.order[i] = i / 8 * 16 + i % 4 * 4 + i / 4 % 2 * 2;
  return constants;
}();

struct Avx512BlockKeys {
  static __m512i constant(const void *of) { return _mm512_load_si512(of); }

  // Return the products of the quarters of four keys, two per key.
  static __m512i products(__m512i keys) {
    const __m512i salts =
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i *>(CacheKey::salts)));
    const __m512i salted = _mm512_add_epi32(keys, salts);
    return _mm512_mul_epu32(salted, _mm512_srli_epi64(salted, 32));
  }
  // Fold the products of two groups of four keys into eight hashes, in the lower half of each 64-bit lane.
  static __m512i folded(__m512i products, __m512i next_products) {
    const __m512i sums = _mm512_add_epi64(_mm512_unpacklo_epi64(products, next_products),
                                          _mm512_unpackhi_epi64(products, next_products));
    return _mm512_xor_si512(sums, _mm512_srli_epi64(sums, 32));
  }

  // See PlainBlockKeys.
  [[gnu::always_inline]] static uint64_t make(const uint8_t *p, const uint8_t *block, uint64_t boundaries,
                                              const uint8_t *, WalkedKeys &out) {
    const uint64_t taken = _pdep_u64(0xFFFF, boundaries); // the first sixteen
    const BlockKeyConstants &constants = block_key_constants;
    constexpr uint64_t last_bytes = 0x8000'8000'8000'8000;
    const __m512i text = _mm512_loadu_si512(block);
    const __m128i ends =
        _mm512_castsi512_si128(_mm512_maskz_compress_epi8(taken, constant(constants.numbers)));
    const __m128i starts = _mm_slli_si128(ends, 1);
    const __m128i sizes = _mm_sub_epi8(ends, starts);
    const __m512i all_starts = _mm512_castsi128_si512(starts), all_sizes = _mm512_castsi128_si512(sizes);
    const unsigned count = static_cast<unsigned>(_mm_popcnt_u64(taken));
    const __mmask16 there = static_cast<__mmask16>(_bzhi_u32(0xFFFF, count));
    CacheKey *const keys = out.keys + out.count;
    __m512i product[4];
    for (int four = 0; four < 4; ++four) {
      const __m512i pretoken_of = constant(constants.pretoken_of[four]);
      const __m512i from =
          _mm512_add_epi8(_mm512_permutexvar_epi8(pretoken_of, all_starts), constant(constants.place));
      const __m512i size = _mm512_permutexvar_epi8(pretoken_of, all_sizes);
      const __mmask64 own = _mm512_cmplt_epu8_mask(constant(constants.own_place), size);
      const __m512i key =
          _mm512_mask_mov_epi8(_mm512_maskz_permutexvar_epi8(own, from, text), last_bytes, size);
      _mm512_storeu_si512(keys + 4 * four, key);
      product[four] = products(key);
    }
    const __m512i hashes = _mm512_maskz_permutex2var_epi32(
        there, folded(product[0], product[1]), constant(constants.order), folded(product[2], product[3]));
    _mm512_storeu_si512(out.hashes + out.count, hashes);
    uint32_t longs = _mm_mask_cmpgt_epu8_mask(there, sizes, _mm_set1_epi8(CacheKey::max_bytes));
    if (longs != 0) [[unlikely]] {
      alignas(16) uint8_t start_of[16], size_of[16];
      _mm_store_si128(reinterpret_cast<__m128i *>(start_of), starts);
      _mm_store_si128(reinterpret_cast<__m128i *>(size_of), sizes);
      for (; longs != 0; longs &= longs - 1) {
        const unsigned k = _tzcnt_u32(longs);
        add_long(out, out.count + k, p + start_of[k], size_of[k]);
      }
    }
    out.count += count;
    return boundaries ^ taken;
  }
};

} // namespace
} // namespace bpe
