// The sixteen characters of walk_characters.hpp in registers. Include only in sources compiled for
// simd_avx512.hpp.
#pragma once

#include "vocabulary/character_table.hpp"

#include <immintrin.h>

namespace bpe {
namespace {

struct CharacterConstants {
  alignas(64) uint8_t lanes[64]; // 48 bytes to sixteen lanes, last byte of a character lowest
  uint64_t fields;               // bit offset of each byte of the first two IDs in an entry
  // Order of the dwords of eight characters, from a register with the first two IDs of each and one (16 and
  // up) with the third: the first sixteen, and the last eight after the first eight of the others.
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

// Store for scalar reads: GCC would extract from the register with two instructions each on one port.
inline void store_to_read(uint32_t (&to)[16], __m512i from) {
  _mm256_store_si256(reinterpret_cast<__m256i *>(to), _mm512_castsi512_si256(from));
  _mm256_store_si256(reinterpret_cast<__m256i *>(to + 8), _mm512_extracti64x4_epi64(from, 1));
  asm volatile("" : "+m"(to));
}

// Return sixteen characters from byte `start` of a register: their bytes, the last one lowest.
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

// Looks up one bit of a table of 1,024 per lane.
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

class Avx512CharacterBlock {
public:
  struct Tables {
    explicit Tables(const Characters &characters)
        : partly_joined_ends(characters.partly_joined_ends),
          partly_joined_lasts(characters.partly_joined_lasts),
          partly_joined_starts(characters.partly_joined_starts), characters(characters.characters) {}
    const BitTable partly_joined_ends, partly_joined_lasts, partly_joined_starts;
    const Characters::Character *const characters;
  };

  unsigned count;
  uint32_t wholly_joined, partly_joined;
  bool ends;

  [[gnu::always_inline]] Avx512CharacterBlock(const Tables &tables, const uint8_t *p, const uint8_t *stop) {
    const auto bits = [](__m512i v, int mask) { return _mm512_and_si512(v, _mm512_set1_epi32(mask)); };
    const __m512i text = load_at_most(p, static_cast<size_t>(stop - p));
    const __m512i here = characters_of(text, 0), next = characters_of(text, 3);
    const uint32_t found = are_three_bytes(here), behind = are_three_bytes(next);
    count = static_cast<unsigned>(__builtin_ctz(~found));
    const uint32_t lanes = (uint32_t{1} << count) - 1;
    ends = count < 16 || (behind >> 15) == 0;
    const __m512i code_points = _mm512_maskz_mov_epi32(static_cast<__mmask16>(lanes), code_points_of(here));
    load(tables.characters, code_points);
    const __m512i x = bits(code_points, 63), y = bits(_mm512_srli_epi32(next, 16), 15);
    const __m512i end = _mm512_or_si512(_mm512_slli_epi32(x, 4), y);
    const __m512i last =
        _mm512_or_si512(_mm512_slli_epi32(x, 4), bits(_mm512_srli_epi32(code_points, 8), 15));
    const __m512i start = _mm512_or_si512(_mm512_slli_epi32(y, 6), bits(_mm512_srli_epi32(next, 8), 63));
    const __m512i followed = _mm512_srlv_epi32(followers_, bits(next, 31));
    // What may come before the seventeenth is unknown here.
    const __m512i leaders = _mm512_alignr_epi32(_mm512_set1_epi32(-1), leaders_, 1);
    const __m512i led = _mm512_srlv_epi32(leaders, bits(here, 31));
    const uint32_t both = lanes & behind;
    wholly_joined = both & _mm512_test_epi32_mask(_mm512_and_si512(followed, led), _mm512_set1_epi32(1));
    partly_joined = both & tables.partly_joined_ends[end] & tables.partly_joined_lasts[last] &
                    tables.partly_joined_starts[start];
  }

  void join(unsigned first, uint32_t id) {
    constexpr uint64_t none = Characters::no_id;
    const __m512i ids = _mm512_set1_epi64(
        static_cast<long long>(id | none << Characters::id_bits | none << 2 * Characters::id_bits));
    const uint32_t lane = uint32_t{1} << first;
    first_ = _mm512_mask_mov_epi64(first_, static_cast<__mmask8>(lane), ids);
    last_ = _mm512_mask_mov_epi64(last_, static_cast<__mmask8>(lane >> 8), ids);
    dropped_ |= lane << 1;
  }

  // Write the IDs of characters [from, keep), adjacent.
  uint32_t *write(unsigned from, unsigned keep, uint32_t *out) const {
    const uint32_t lanes = ((uint32_t{1} << keep) - (uint32_t{1} << from)) & ~dropped_;
    const __m512i nothing = _mm512_set1_epi64(-1);
    const __m512i first_eight = _mm512_mask_mov_epi64(nothing, static_cast<__mmask8>(lanes), first_);
    const __m512i last_eight = _mm512_mask_mov_epi64(nothing, static_cast<__mmask8>(lanes >> 8), last_);
    const CharacterConstants &constants = character_constants;
    const __m512i none = _mm512_set1_epi32(static_cast<int>(Characters::no_id));
    const __m512i fields = _mm512_set1_epi64(static_cast<long long>(constants.fields));
    const auto order = [](const uint32_t *places) { return _mm512_load_si512(places); };
    const auto two_ids = [&](__m512i v) {
      return _mm512_and_si512(_mm512_multishift_epi64_epi8(fields, v), none);
    };
    const auto third_id = [&](__m512i v) {
      return _mm512_and_si512(_mm512_srli_epi64(v, 2 * Characters::id_bits), none);
    };
    const auto emit = [&](__m512i ids) {
      const __mmask16 wanted = _mm512_cmpneq_epi32_mask(ids, none);
      _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(wanted, ids));
      out += __builtin_popcount(wanted);
    };
    const __m512i first_two = two_ids(first_eight), last_two = two_ids(last_eight);
    const __m512i first_third = third_id(first_eight), last_third = third_id(last_eight);
    emit(_mm512_permutex2var_epi32(first_two, order(constants.first_sixteen), first_third));
    const __m512i middle = _mm512_permutex2var_epi32(first_two, order(constants.last_eight), first_third);
    const __m512i others = _mm512_permutex2var_epi32(last_two, order(constants.first_eight), last_third);
    emit(_mm512_mask_mov_epi64(middle, 0xF0, others));
    emit(_mm512_permutex2var_epi32(last_two, order(constants.last_sixteen), last_third));
    return out;
  }

private:
  // Uses scalar addresses: gathers took half of the time of finding IDs on CPUs that implement them in
  // microcode (Zen 4).
  void load(const Characters::Character *characters, __m512i code_points) {
    static_assert(sizeof(Characters::Character) == 16);
    alignas(64) uint32_t places[16];
    store_to_read(places, code_points);
    const auto half = [&](const uint32_t *of, __m512i &ids) {
      const auto one = [&](int i) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i *>(characters + of[i]));
      };
      const auto four = [](__m128i a, __m128i b) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
      };
      const auto eight = [](__m256i a, __m256i b) {
        return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
      };
      const __m512i even = eight(four(one(0), one(2)), four(one(4), one(6)));
      const __m512i odd = eight(four(one(1), one(3)), four(one(5), one(7)));
      ids = _mm512_unpacklo_epi64(even, odd);
      return _mm512_unpackhi_epi64(even, odd);
    };
    const __m512i a = half(places, first_), b = half(places + 8, last_);
    const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    followers_ = _mm512_permutex2var_epi32(a, evens, b);
    leaders_ = _mm512_permutex2var_epi32(a, _mm512_add_epi32(evens, _mm512_set1_epi32(1)), b);
  }

  __m512i first_, last_;        // IDs of eight characters each
  __m512i followers_, leaders_; // of sixteen characters
  uint32_t dropped_ = 0;        // second characters of joined pairs
};

} // namespace
} // namespace bpe
