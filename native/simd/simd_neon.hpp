// Operations that turn 64 bytes into masks, in four 16-byte registers. NEON is in the base instruction set of
// arm64.
#pragma once

#include "pretokenize/scan_window.hpp"
#include "text/first_two_bytes.hpp"
#include "text/utf8_blocks.hpp"

#include <arm_neon.h>
#include <bit>

namespace bpe {
namespace {

struct NeonSimd {
  struct Block {
    uint8x16_t v[4];
  };
  static Block load(const uint8_t *p) {
    return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
  }

  // Return a mask with one bit per byte, set where test(v) is 0xFF. test(v) must be 0 elsewhere.
  template <class Test> static uint64_t mask(const Block &block, Test test) {
    alignas(16) static constexpr uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                        1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t weight = vld1q_u8(weights);
    const auto weighed = [&](int i) { return vandq_u8(test(block.v[i]), weight); };
    const uint8x16_t quarter =
        vpaddq_u8(vpaddq_u8(weighed(0), weighed(1)), vpaddq_u8(weighed(2), weighed(3)));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarter, quarter)), 0);
  }
  static uint8x16_t between(uint8x16_t v, uint8_t low, uint8_t high) {
    return vcleq_u8(vsubq_u8(v, vdupq_n_u8(low)), vdupq_n_u8(static_cast<uint8_t>(high - low)));
  }
  static uint8x16_t equal(uint8x16_t v, uint8_t byte) { return vceqq_u8(v, vdupq_n_u8(byte)); }

  static uint64_t classify(const CharacterClasses &classes, const uint8_t *p, uint8_t *to) {
    return classify_each(classes, p, to);
  }
  static uint64_t with_bit(const uint8_t *bytes, uint8_t bit) {
    return mask(load(bytes), [&](uint8x16_t v) { return vtstq_u8(v, vdupq_n_u8(bit)); });
  }

  static uint64_t wordless_leads(const uint8_t *p) { // text/wordless_leads.hpp
    return mask(load(p), [](uint8x16_t v) {
      return vbicq_u8(vcgeq_u8(v, vdupq_n_u8(0xE2)), vcltq_u8(vsubq_u8(v, vdupq_n_u8(0xEA)), vdupq_n_u8(4)));
    });
  }

  static bool any_high(const uint8_t *p) {
    const Block block = load(p);
    return vmaxvq_u8(vorrq_u8(vorrq_u8(block.v[0], block.v[1]), vorrq_u8(block.v[2], block.v[3]))) >= 0x80;
  }

  static uint64_t first_two(const FirstTwoBytes &pairs, const uint8_t *p) { // text/first_two_bytes.hpp
    const uint8x16_t first_low = vld1q_u8(pairs.first_low), first_high = vld1q_u8(pairs.first_high),
                     second_low = vld1q_u8(pairs.second_low), second_high = vld1q_u8(pairs.second_high);
    const Block firsts = load(p), seconds = load(p + 1);
    const auto groups = [](uint8x16_t low, uint8x16_t high, uint8x16_t v) {
      return vandq_u8(vqtbl1q_u8(low, vandq_u8(v, vdupq_n_u8(15))), vqtbl1q_u8(high, vshrq_n_u8(v, 4)));
    };
    Block met;
    for (int i = 0; i < 4; ++i)
      met.v[i] =
          vtstq_u8(groups(first_low, first_high, firsts.v[i]), groups(second_low, second_high, seconds.v[i]));
    return mask(met, [](uint8x16_t v) { return v; });
  }

  // Return whether any byte of the block is invalid given the 3 bytes before it.
  static bool utf8_faults(const uint8_t *p) {
    const uint8x16_t first_high = vld1q_u8(utf8_tables.first_high),
                     first_low = vld1q_u8(utf8_tables.first_low),
                     second_high = vld1q_u8(utf8_tables.second_high);
    uint8x16_t faults = vdupq_n_u8(0);
    for (int part = 0; part < 64; part += 16) {
      const uint8x16_t first = vld1q_u8(p + part - 1);
      uint8x16_t pair = vqtbl1q_u8(first_high, vshrq_n_u8(first, 4));
      pair = vandq_u8(pair, vqtbl1q_u8(first_low, vandq_u8(first, vdupq_n_u8(15))));
      pair = vandq_u8(pair, vqtbl1q_u8(second_high, vshrq_n_u8(vld1q_u8(p + part), 4)));
      // Top bit: the lead of a 3-byte sequence two bytes before, or of a 4-byte sequence three bytes before.
      const uint8x16_t third = vcgeq_u8(vld1q_u8(p + part - 2), vdupq_n_u8(0xE0));
      const uint8x16_t fourth = vcgeq_u8(vld1q_u8(p + part - 3), vdupq_n_u8(0xF0));
      const uint8x16_t expected = vandq_u8(vorrq_u8(third, fourth), vdupq_n_u8(0x80));
      faults = vorrq_u8(faults, veorq_u8(pair, expected));
    }
    return vmaxvq_u8(faults) != 0;
  }

  // Return the minimum of values[0, 64) and set the bit of each one that equals `value`.
  static uint32_t least_of_64(const uint32_t *values) {
    uint32x4_t least = vld1q_u32(values);
    for (int i = 4; i < 64; i += 4)
      least = vminq_u32(least, vld1q_u32(values + i));
    return vminvq_u32(least);
  }
  static uint64_t equal_in_64(const uint32_t *values, uint32_t value) {
    alignas(16) static constexpr uint32_t weights[4] = {1, 2, 4, 8};
    const uint32x4_t wanted = vdupq_n_u32(value), weight = vld1q_u32(weights);
    uint64_t equal = 0;
    for (int i = 0; i < 64; i += 4) {
      const uint32x4_t here = vandq_u32(vceqq_u32(vld1q_u32(values + i), wanted), weight);
      equal |= static_cast<uint64_t>(vaddvq_u32(here)) << i;
    }
    return equal;
  }
};

} // namespace
} // namespace bpe
