// decode_ids: largest = max(largest, token), id = token >> 1, is_start = token & 1
// next_fit: if a sequence ends more than max_tokens after the start of the pack, it starts the next pack
// permute: pass each value through a Feistel network until it is below size
#include "loops.hpp"

#include <algorithm>
#include <bit>

namespace flat_tokens {

namespace {

constexpr int rounds = 8;
constexpr int fewest_bits = 6;
constexpr uint64_t golden = 0x9E3779B97F4A7C15;

inline uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

template <bool has_flags>
uint32_t decode(const uint32_t *encoded, size_t count, uint32_t *__restrict ids,
                uint8_t *__restrict is_start) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = std::max(largest, encoded[i]);
    ids[i] = encoded[i] >> 1;
    if constexpr (has_flags)
      is_start[i] = static_cast<uint8_t>(encoded[i] & 1);
  }
  return largest;
}

} // namespace

uint32_t decode_ids(const uint32_t *encoded, size_t count, uint32_t *ids, uint8_t *is_start) {
  return is_start ? decode<true>(encoded, count, ids, is_start) : decode<false>(encoded, count, ids, nullptr);
}

NextFit next_fit(const int64_t *starts, size_t count, int64_t begin, int64_t max_tokens, int64_t *bounds) {
  size_t packs = 0;
  for (size_t i = 0; i < count; ++i) {
    if (starts[i + 1] - begin <= max_tokens)
      continue;
    if (begin != starts[i])
      bounds[packs++] = begin = starts[i];
    if (starts[i + 1] - begin > max_tokens)
      return {packs, i};
  }
  return {packs, count};
}

void permute(uint64_t *values, size_t count, uint64_t size, uint64_t key) {
  const int bits = std::max(static_cast<int>(std::bit_width(size - 1)), fewest_bits);
  const int low_bits = bits / 2;
  const int from_left = 64 - low_bits, from_right = 64 - (bits - low_bits);
  uint64_t keys[rounds];
  for (int i = 0; i < rounds; ++i)
    keys[i] = mix(key + (i + 1) * golden);
  for (size_t at = 0; at < count; ++at) {
    uint64_t value = values[at];
    do {
      uint64_t left = value >> low_bits, right = value & ((uint64_t{1} << low_bits) - 1);
      for (int i = 0; i < rounds; i += 2) {
        left ^= mix(right + keys[i]) >> from_right;
        right ^= mix(left + keys[i + 1]) >> from_left;
      }
      value = left << low_bits | right;
    } while (value >= size);
    values[at] = value;
  }
}

} // namespace flat_tokens
