// Runs of characters of three bytes, sixteen at a time. Only for sources compiled for simd_avx512.hpp.
#pragma once

#include "encode/character_runs.hpp"

#include <immintrin.h>

namespace bpe {
namespace {

struct CharacterConstants {
  alignas(64) uint8_t lanes[64]; // 48 bytes to sixteen lanes: a character's last byte lowest
  uint64_t fields;               // where in an entry the bytes of its first two ids start, a byte each
  // Dwords of eight characters in their order, from a register with the first two ids of each and one (16
  // and up) with the third: the first sixteen, and the last eight behind the first eight of the others.
  alignas(64) uint32_t first_sixteen[16], last_sixteen[16], first_eight[16], last_eight[16];
};
constexpr CharacterConstants character_constants = [] {
  CharacterConstants constants{};
  for (uint32_t lane = 0; lane < 16; ++lane)
    for (uint32_t byte = 0; byte < 4; ++byte)
      constants.lanes[4 * lane + byte] = static_cast<uint8_t>(byte < 3 ? 3 * lane + 2 - byte : 0);
  for (uint64_t byte = 0; byte < 8; ++byte)
    constants.fields |= (byte < 4 ? 8 * byte : Characters::id_bits + 8 * (byte - 4)) << 8 * byte;
  const auto place = [](uint32_t dword) { // of 24
    const uint32_t character = dword / 3, id = dword % 3;
    return id < 2 ? 2 * character + id : 16 + 2 * character;
  };
  for (uint32_t i = 0; i < 16; ++i) {
    constants.first_sixteen[i] = place(i);
    constants.last_sixteen[i] = place(i + 8);
    constants.first_eight[i] = place(i % 8);
    constants.last_eight[i] = place(16 + i % 8);
  }
  return constants;
}();

// Sixteen characters from the byte `start` of a register on: their bytes, the last lowest.
inline __m512i characters_of(__m512i text, int start) {
  const __m512i lanes = _mm512_load_si512(character_constants.lanes);
  return _mm512_maskz_permutexvar_epi8(
      0x7777'7777'7777'7777, _mm512_add_epi8(lanes, _mm512_set1_epi8(static_cast<char>(start))), text);
}
inline __mmask16 are_three_bytes(__m512i characters) {
  return _mm512_cmpeq_epi32_mask(_mm512_and_si512(characters, _mm512_set1_epi32(0xF0C0C0)),
                                 _mm512_set1_epi32(0xE08080));
}
inline __m512i code_points_of(__m512i characters) {
  const auto bits = [](__m512i v, int mask) { return _mm512_and_si512(v, _mm512_set1_epi32(mask)); };
  return _mm512_or_si512(bits(characters, 0x3F),
                         _mm512_or_si512(bits(_mm512_srli_epi32(characters, 2), 0xFC0),
                                         bits(_mm512_srli_epi32(characters, 4), 0xF000)));
}
inline __m512i load_at_most(const uint8_t *bytes, size_t size) {
  return _mm512_maskz_loadu_epi8(size >= 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1, bytes);
}

// A bit of a table of 1,024 for each lane.
class BitTable {
public:
  explicit BitTable(const uint8_t *bits)
      : low_(_mm512_loadu_si512(bits)), high_(_mm512_loadu_si512(bits + 64)) {}
  __mmask16 operator[](__m512i places) const {
    const __m512i bytes = _mm512_permutex2var_epi8(low_, _mm512_srli_epi32(places, 3), high_);
    const __m512i bits =
        _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(places, _mm512_set1_epi32(7)));
    return _mm512_test_epi32_mask(bytes, bits);
  }

private:
  __m512i low_, high_;
};

inline size_t find_characters_avx512(const Characters &characters, const uint8_t *bytes,
                                     const uint8_t *stop) {
  const auto bits = [](__m512i v, int mask) { return _mm512_and_si512(v, _mm512_set1_epi32(mask)); };
  const BitTable joined_ends(characters.joined_ends), joined_lasts(characters.joined_lasts);
  for (const uint8_t *p = bytes;; p += 48) {
    const __m512i text = load_at_most(p, static_cast<size_t>(stop - p));
    const __m512i here = characters_of(text, 0), next = characters_of(text, 3);
    const uint32_t found = are_three_bytes(here);
    const uint32_t both = found & are_three_bytes(next);
    const __m512i before = code_points_of(here), behind = code_points_of(next);
    const __m512i x = bits(before, 63);
    const __m512i end = _mm512_or_si512(_mm512_slli_epi32(x, 4), _mm512_srli_epi32(behind, 12));
    const __m512i last = _mm512_or_si512(_mm512_slli_epi32(x, 4), bits(_mm512_srli_epi32(before, 8), 15));
    uint32_t joined = both & joined_ends[end] & joined_lasts[last];
    if (joined != 0) { // perhaps
      const __m512i border =
          _mm512_or_si512(_mm512_slli_epi32(end, 12),
                          _mm512_or_si512(bits(behind, 0xFC0), bits(_mm512_srli_epi32(before, 6), 63)));
      const __m512i words =
          _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), static_cast<__mmask16>(joined),
                                      _mm512_srli_epi32(border, 5), characters.joined, 4);
      joined = _mm512_test_epi32_mask(words, _mm512_sllv_epi32(_mm512_set1_epi32(1), bits(border, 31)));
    }
    const uint32_t goes_on = both & ~joined;
    if (goes_on == 0xFFFF)
      continue;
    const uint32_t final = static_cast<uint32_t>(__builtin_ctz(~goes_on));
    return static_cast<size_t>(p - bytes) + 3 * (final + (found >> final & 1));
  }
}

inline uint32_t *emit_characters_avx512(const Characters &characters, const uint8_t *bytes, size_t size,
                                        uint32_t *out) {
  const CharacterConstants &constants = character_constants;
  const __m512i none = _mm512_set1_epi32(static_cast<int>(Characters::no_id));
  const __m512i fields = _mm512_set1_epi64(static_cast<long long>(constants.fields));
  const auto order = [](const uint32_t *places) { return _mm512_load_si512(places); };
  const auto emit = [&](__m512i ids) {
    const __mmask16 wanted = _mm512_cmpneq_epi32_mask(ids, none);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(wanted, ids));
    out += __builtin_popcount(wanted);
  };
  for (size_t i = 0; i < size; i += 48) {
    const size_t left = size - i;
    const __m512i code_points = code_points_of(characters_of(load_at_most(bytes + i, left), 0));
    const uint32_t lanes = left >= 48 ? 0xFFFF : (1u << left / 3) - 1;
    __m512i two_ids[2], third_id[2];
    for (int half = 0; half < 2; ++half) {
      const __m256i places =
          half == 0 ? _mm512_castsi512_si256(code_points) : _mm512_extracti64x4_epi64(code_points, 1);
      const __m512i entries = _mm512_mask_i32gather_epi64(
          _mm512_set1_epi64(-1), static_cast<__mmask8>(lanes >> 8 * half), places, characters.ids, 8);
      two_ids[half] = _mm512_and_si512(_mm512_multishift_epi64_epi8(fields, entries), none);
      third_id[half] = _mm512_and_si512(_mm512_srli_epi64(entries, 2 * Characters::id_bits), none);
    }
    emit(_mm512_permutex2var_epi32(two_ids[0], order(constants.first_sixteen), third_id[0]));
    const __m512i middle = _mm512_permutex2var_epi32(two_ids[0], order(constants.last_eight), third_id[0]);
    const __m512i others = _mm512_permutex2var_epi32(two_ids[1], order(constants.first_eight), third_id[1]);
    emit(_mm512_mask_mov_epi64(middle, 0xF0, others));
    emit(_mm512_permutex2var_epi32(two_ids[1], order(constants.last_sixteen), third_id[1]));
  }
  return out;
}

} // namespace
} // namespace bpe
