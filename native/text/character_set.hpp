// A set of characters and a search for the next one in a text, 64 offsets at a time by the first two bytes.
//
// Two bytes identify characters of one and two bytes. Three-byte characters also have one bit each, since a
// script with a few members of the set has many characters with the same first two bytes. For four-byte
// characters, the search reports every character with the same first two bytes as a member.
#pragma once

#include "text/first_two_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

// Has no inline functions, because sources for several instruction sets include it.
struct CharacterSet {
  CharacterSet() = default;
  explicit CharacterSet(const std::vector<uint32_t> &code_points);

  FirstTwoBytes begins;
  uint64_t of_three[1024] = {}; // one bit per code point below 2^16
};

namespace {

inline bool is_of_three(const uint8_t *character) {
  return (*character & 0xF0) == 0xE0;
}

inline bool has_of_three(const CharacterSet &set, const uint8_t *p) {
  return (set.of_three[(p[0] & 15) << 6 | (p[1] & 63)] >> (p[2] & 63) & 1) != 0;
}

// Return the first offset in text[start, size), valid UTF-8, at which a character of the set may start, or
// `size`. The character is in the set, or it has four bytes.
template <class Simd>
size_t find_in_set(const CharacterSet &set, const uint8_t *text, size_t start, size_t size) {
  return find_by_first_two<Simd>(set.begins, text, start, size,
                                 [&](const uint8_t *p) { return !is_of_three(p) || has_of_three(set, p); });
}

} // namespace
} // namespace bpe
