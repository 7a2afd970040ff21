// for each value:
//   repeat:
//     left, right = the upper and lower bits of the value
//     4 times, each with two of the keys: left ^= mix(right + key); right ^= mix(left + key)
//     value = left and right together
//   until value < size: twice on average at most if size > 32
#include "permute.hpp"

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

} // namespace

void permute(uint64_t *values, size_t count, uint64_t size, uint64_t key) {
  const int bits = std::bit_width(size - 1) > fewest_bits ? std::bit_width(size - 1) : fewest_bits;
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
