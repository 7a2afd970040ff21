#include "common/content_hash.hpp"

#include "common/byte_order.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>

namespace bpe {

namespace {

constexpr uint64_t prime_1 = 0x9E3779B185EBCA87ull;
constexpr uint64_t prime_2 = 0xC2B2AE3D27D4EB4Full;
constexpr uint64_t prime_3 = 0x165667B19E3779F9ull;
constexpr uint64_t prime_4 = 0x85EBCA77C2B2AE63ull;
constexpr uint64_t prime_5 = 0x27D4EB2F165667C5ull;

template <class T> T read(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

uint64_t round(uint64_t accumulator, uint64_t lane) {
  return std::rotl(accumulator + lane * prime_2, 31) * prime_1;
}

uint64_t merge_accumulator(uint64_t hash, uint64_t accumulator) {
  return (hash ^ round(0, accumulator)) * prime_1 + prime_4;
}

uint64_t merge_lanes(const uint64_t (&lanes)[4]) {
  uint64_t hash =
      std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
  for (const uint64_t lane : lanes)
    hash = merge_accumulator(hash, lane);
  return hash;
}

// Hash the input that remains after the 32-byte stripes, then apply the final mix.
uint64_t finish(uint64_t hash, const uint8_t *p, size_t left) {
  for (; left >= 8; left -= 8, p += 8)
    hash = std::rotl(hash ^ round(0, read<uint64_t>(p)), 27) * prime_1 + prime_4;
  if (left >= 4) {
    hash = std::rotl(hash ^ read<uint32_t>(p) * prime_1, 23) * prime_2 + prime_3;
    left -= 4, p += 4;
  }
  for (; left > 0; --left, ++p)
    hash = std::rotl(hash ^ *p * prime_5, 11) * prime_1;
  hash = (hash ^ hash >> 33) * prime_2;
  hash = (hash ^ hash >> 29) * prime_3;
  return hash ^ hash >> 32;
}

} // namespace

uint64_t xxh64(const uint8_t *bytes, size_t size, uint64_t seed) {
  if (size < 32)
    return finish(seed + prime_5 + size, bytes, size);
  const uint8_t *p = bytes;
  size_t left = size;
  // Local variables instead of an Xxh64 keep the lanes in registers.
  uint64_t a = seed + prime_1 + prime_2, b = seed + prime_2, c = seed, d = seed - prime_1;
  for (; left >= 32; left -= 32, p += 32) {
    a = round(a, read<uint64_t>(p));
    b = round(b, read<uint64_t>(p + 8));
    c = round(c, read<uint64_t>(p + 16));
    d = round(d, read<uint64_t>(p + 24));
  }
  return finish(merge_lanes({a, b, c, d}) + size, p, left);
}

Xxh64::Xxh64(uint64_t seed)
    : seed_(seed), lanes_{seed + prime_1 + prime_2, seed + prime_2, seed, seed - prime_1} {}

void Xxh64::take_stripe(const uint8_t *stripe) {
  for (size_t lane = 0; lane < 4; ++lane)
    lanes_[lane] = round(lanes_[lane], read<uint64_t>(stripe + 8 * lane));
}

void Xxh64::update(const uint8_t *bytes, size_t size) {
  const size_t held = size_ % 32;
  size_ += size;
  if (held > 0) {
    const size_t taken = std::min(size, 32 - held);
    std::memcpy(held_ + held, bytes, taken);
    if (held + taken < 32)
      return;
    take_stripe(held_);
    bytes += taken, size -= taken;
  }
  for (; size >= 32; size -= 32, bytes += 32)
    take_stripe(bytes);
  if (size > 0)
    std::memcpy(held_, bytes, size);
}

uint64_t Xxh64::digest() const {
  const uint64_t hash = size_ < 32 ? seed_ + prime_5 : merge_lanes(lanes_);
  return finish(hash + size_, held_, size_ % 32);
}

} // namespace bpe
