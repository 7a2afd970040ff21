// The key of a pretoken in the cache, and its hash.
//
// The hash uses two 32-bit products, one per half of the key, because vector units offer exactly these:
// AVX-512 hashes four keys at a time. All variants must compute the same hash, since cache images contain
// tables ordered by it.
#pragma once

#include "common/byte_order.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bpe {

// Pretokens of 1 to 15 bytes: the bytes in little-endian order, padded with zeros, and the length in bits
// 56-59 of `high`. Pretokens of 16 to 8192 bytes: 106 bits of a hash, a length field of 0, and the size in
// bits 0-13 of `high` (long_key.hpp). Bit 60 distinguishes two meanings of the same bytes (see
// BatchEncoder). Bits 61-63 belong to the slot. No pretoken has `high` 0.
struct CacheKey {
  uint64_t low, high;

  static constexpr size_t max_bytes = 15;
  static constexpr unsigned long_size_bits = 14;
  static constexpr size_t max_long_bytes = 8192; // long runs of blanks and dashes also repeat
  static constexpr uint64_t part_bit = uint64_t{1} << 60;
  // Added to the four 32-bit quarters before multiplication.
  static constexpr uint32_t salts[4] = {0x9E3779B1, 0xC2B2AE3D, 0x27D4EB2F, 0x85EBCA77};

  bool operator==(const CacheKey &other) const { return ((low ^ other.low) | (high ^ other.high)) == 0; }
  size_t size() const { return high >> 56 & max_bytes; } // 0 for a long pretoken
  bool is_long() const { return size() == 0; }
  size_t long_size() const { return high & ((uint64_t{1} << long_size_bits) - 1); }
  void copy_bytes(uint8_t (&bytes)[16]) const { // padded with zeros
    const uint64_t last = high & ~uint64_t{0} >> 8;
    std::memcpy(bytes, &low, 8);
    std::memcpy(bytes + 8, &last, 8);
  }
  // Add both halves of the sum, so that every byte of the key affects the low bits, which select the slot.
  uint32_t hash() const {
    const auto product = [](uint64_t half, uint32_t salt, uint32_t next_salt) {
      return uint64_t{static_cast<uint32_t>(half) + salt} * (static_cast<uint32_t>(half >> 32) + next_salt);
    };
    const uint64_t sum = product(low, salts[0], salts[1]) + product(high, salts[2], salts[3]);
    return static_cast<uint32_t>(sum ^ sum >> 32);
  }
};

} // namespace bpe
