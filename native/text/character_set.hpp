// A set of characters, and where a text has the next of them: 64 places at a time by the first two bytes.
//
// That tells those of one and two bytes. Those of three have a bit each, since a script that has a few of
// them has many that begin like those; of four bytes, any that begins like one is met.
#pragma once

#include "text/first_two_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

// Without functions that are inline: it is read by code for several instruction sets.
struct CharacterSet {
  CharacterSet() = default;
  explicit CharacterSet(const std::vector<uint32_t> &code_points);

  FirstTwoBytes begins;
  uint64_t of_three[1024] = {}; // a bit for each code point below 2^16
};

namespace {

inline bool is_of_three(const uint8_t *character) {
  return (*character & 0xF0) == 0xE0;
}

inline bool has_of_three(const CharacterSet &set, const uint8_t *p) {
  return (set.of_three[(p[0] & 15) << 6 | (p[1] & 63)] >> (p[2] & 63) & 1) != 0;
}

// The first place of text[start, size), valid UTF-8, at which a character of the set may begin, or `size`.
// The character there is in the set, or it has four bytes.
template <class Simd>
size_t find_in_set(const CharacterSet &set, const uint8_t *text, size_t start, size_t size) {
  return find_by_first_two<Simd>(set.begins, text, start, size,
                                 [&](const uint8_t *p) { return !is_of_three(p) || has_of_three(set, p); });
}

} // namespace
} // namespace bpe
