// The pairs of bytes that tokens start with, and a search for them in a text, 64 offsets at a time.
//
// Based on Hyperscan's search for several short strings (Wang et al., NSDI 2019): each half of the two bytes
// is looked up in a table of 16 entries. Their bits represent groups of pairs. A group may match where all
// four look-ups have its bit. Other pairs can match by accident, so matches are checked in `allowed`.
#pragma once

#include "common/prefetch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace bpe {

// Has no inline functions, because sources for several instruction sets include it.
struct FirstTwoBytes {
  FirstTwoBytes() = default;
  // A one-byte token allows every pair that starts with it. Tokens must not be empty.
  explicit FirstTwoBytes(const std::vector<std::string_view> &tokens);

  alignas(16) uint8_t first_low[16] = {}, first_high[16] = {}, second_low[16] = {}, second_high[16] = {};
  uint64_t allowed[1024] = {}; // one bit per pair, indexed by first byte, then second
};

namespace {

inline bool has_first_two(const FirstTwoBytes &pairs, const uint8_t *place) {
  const unsigned pair = place[0] << 8u | place[1];
  return (pairs.allowed[pair / 64] >> pair % 64 & 1) != 0;
}

// Return the first offset in text[start, size) that satisfies is_wanted and has an allowed pair, or a last
// byte that starts one. is_wanted gets a pointer to at least two bytes. Returns `size` if there is none.
template <class Simd, class IsWanted>
[[gnu::always_inline]] inline size_t find_by_first_two(const FirstTwoBytes &pairs, const uint8_t *text,
                                                       size_t start, size_t size, IsWanted is_wanted) {
  constexpr size_t bytes_at_once = 64, bytes_ahead = 2048; // see find_bytes
  const auto first_of = [&](const uint8_t *block) {
    for (uint64_t met = Simd::first_two(pairs, block); met != 0; met &= met - 1)
      if (const auto place = static_cast<size_t>(__builtin_ctzll(met));
          has_first_two(pairs, block + place) && is_wanted(block + place))
        return place;
    return bytes_at_once;
  };
  for (; size - start > bytes_at_once; start += bytes_at_once) {
    prefetch_to_read(text + start + bytes_ahead);
    if (const size_t place = first_of(text + start); place < bytes_at_once)
      return start + place;
  }
  // The last bytes are copied and padded with zeros. A copy of constant size compiles to no loop.
  constexpr size_t last_bytes = bytes_at_once + 1;
  uint8_t last[2 * last_bytes] = {};
  const size_t left = size - start;
  if (size >= last_bytes)
    std::memcpy(last, text + size - last_bytes, last_bytes);
  else
    std::memcpy(last + last_bytes - left, text + start, left);
  return start + std::min(first_of(last + last_bytes - left), left);
}

template <class Simd>
size_t find_first_two(const FirstTwoBytes &pairs, const uint8_t *text, size_t start, size_t size) {
  return find_by_first_two<Simd>(pairs, text, start, size, [](const uint8_t *) { return true; });
}

} // namespace
} // namespace bpe
