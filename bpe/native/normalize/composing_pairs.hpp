// Pairs of characters that compose to one.
#pragma once

#include "normalize/unicode_tables.hpp"

#include <cstdint>
#include <vector>

namespace bpe {

namespace hangul {
inline constexpr uint32_t first = 0xAC00, first_l = 0x1100, first_v = 0x1161, first_t = 0x11A7;
inline constexpr uint32_t l_count = 19, v_count = 21, t_count = 28, count = l_count * v_count * t_count;
} // namespace hangul

// The pairs of the table, in a hash table.
class ComposingPairs {
public:
  static const ComposingPairs &get() {
    static const ComposingPairs made;
    return made;
  }

  // Returns the composition, or 0.
  uint32_t find(uint32_t first, uint32_t second) const {
    const uint64_t key = uint64_t{first} << 32 | second;
    for (size_t i = slot_of(key);; i = (i + 1) % slot_count) {
      if (slots_[i].key == key)
        return slots_[i].made;
      if (slots_[i].key == 0)
        return 0;
    }
  }
  template <class Give> void for_each(Give give) const {
    const auto pairs = unicode::composing_pairs;
    for (size_t i = 0; i < pairs.size(); i += 3)
      give(pairs[i], pairs[i + 1], pairs[i + 2]);
  }

private:
  struct Slot {
    uint64_t key = 0;
    uint32_t made = 0;
  };
  static constexpr size_t slot_count = 1 << 12;

  ComposingPairs() : slots_(slot_count) {
    for_each([&](uint32_t first, uint32_t second, uint32_t made) {
      const uint64_t key = uint64_t{first} << 32 | second;
      size_t i = slot_of(key);
      while (slots_[i].key != 0)
        i = (i + 1) % slot_count;
      slots_[i] = {key, made};
    });
  }
  static size_t slot_of(uint64_t key) { return key * 0x9E3779B97F4A7C15ull >> 52; }

  std::vector<Slot> slots_;
};

// Returns the composition of two characters, including Hangul, or 0.
inline uint32_t compose(uint32_t first, uint32_t second) {
  if (first - hangul::first_l < hangul::l_count && second - hangul::first_v < hangul::v_count)
    return hangul::first +
           ((first - hangul::first_l) * hangul::v_count + second - hangul::first_v) * hangul::t_count;
  if (first - hangul::first < hangul::count && (first - hangul::first) % hangul::t_count == 0 &&
      second - (hangul::first_t + 1) < hangul::t_count - 1)
    return first + second - hangul::first_t;
  return ComposingPairs::get().find(first, second);
}

} // namespace bpe
