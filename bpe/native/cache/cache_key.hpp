// The key of a short pretoken in the cache, and its hash.
//
// The hash is two products of 32 bits, one for each half of the key, because vector units have just those:
// four keys at a time with AVX-512. All variants must agree on it, as cache images hold tables laid out by
// it.
#pragma once

#include "common/byte_order.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bpe {

// A pretoken of 1 to 15 bytes: the bytes little-endian, zeros behind, and in bits 56-59 of `high` the length.
// A longer one, 16 to 8192 bytes: 106 bits of a hash and, with no length in its place, the size in bits 0-13
// of `high` (long_key.hpp). Bit 60 tells apart two meanings of the same bytes (see EncoderSession); bits
// 61-63 are the slot's own. `high` 0 is no pretoken's.
struct CacheKey {
  uint64_t low, high;

  static constexpr size_t max_bytes = 15;
  static constexpr unsigned long_size_bits = 14;
  static constexpr size_t max_long_bytes = 8192; // runs of blanks and dashes come again, too
  static constexpr uint64_t part_bit = uint64_t{1} << 60;
  // What is added to the four 32-bit quarters before they are multiplied.
  static constexpr uint32_t salts[4] = {0x9E3779B1, 0xC2B2AE3D, 0x27D4EB2F, 0x85EBCA77};

  bool operator==(const CacheKey &other) const { return ((low ^ other.low) | (high ^ other.high)) == 0; }
  size_t size() const { return high >> 56 & max_bytes; } // 0: a long one's
  bool is_long() const { return size() == 0; }
  size_t long_size() const { return high & ((uint64_t{1} << long_size_bits) - 1); }
  void copy_bytes(uint8_t (&bytes)[16]) const { // zeros behind
    const uint64_t last = high & ~uint64_t{0} >> 8;
    std::memcpy(bytes, &low, 8);
    std::memcpy(bytes + 8, &last, 8);
  }
  // Both halves of the sum, so that every byte of the key counts in the low bits, which are the slot.
  uint32_t hash() const {
    const auto product = [](uint64_t half, uint32_t salt, uint32_t next_salt) {
      return uint64_t{static_cast<uint32_t>(half) + salt} * (static_cast<uint32_t>(half >> 32) + next_salt);
    };
    const uint64_t sum = product(low, salts[0], salts[1]) + product(high, salts[2], salts[3]);
    return static_cast<uint32_t>(sum ^ sum >> 32);
  }
};

} // namespace bpe
