// Sixteen three-byte characters, processed one by one. character_block_avx512.hpp keeps them in registers.
//
// Compiled once per SIMD variant, so nothing here may become a symbol shared by variants.
#pragma once

#include "vocabulary/character_table.hpp"

namespace bpe {
namespace {

class CharacterBlock {
public:
  static constexpr unsigned most = 16;

  // Tables shared by all blocks of a walk.
  struct Tables {
    explicit Tables(const Characters &characters) : characters(characters) {}
    const Characters &characters;
  };

  unsigned count = 0; // number of three-byte characters from p
  // One bit per character that may be joined to the next one, which may be the seventeenth: by an entry that
  // contains both, or by one with a part of one of them.
  uint32_t wholly_joined = 0, partly_joined = 0;
  bool ends; // the last one is not followed by a three-byte character

  CharacterBlock(const Tables &tables, const uint8_t *p, const uint8_t *stop) {
    const Characters &characters = tables.characters;
    const auto is_here = [&] { return Characters::starts_at(p, static_cast<size_t>(stop - p)); };
    bool here = is_here();
    while (here && count < most) {
      const Characters::Character &character = characters.characters[Characters::code_point(p)];
      ids_[count] = character.ids;
      p += 3;
      here = is_here();
      if (here) {
        const uint32_t end = Characters::end_of(p[-1], p[0]);
        wholly_joined |= (character.followers >> (p[2] & 31) & 1) << count;
        partly_joined |= (characters.partly_joined_ends[end >> 3] >> (end & 7) & 1u) << count;
      }
      ++count;
    }
    ends = !here;
  }

  // Replace characters `first` and `first` + 1 with one entry.
  void join(unsigned first, uint32_t id) {
    constexpr uint64_t none = Characters::no_id;
    ids_[first] = id | none << Characters::id_bits | none << 2 * Characters::id_bits;
    ids_[first + 1] = ~uint64_t{0};
  }

  // Write the IDs of characters [from, keep). May write character_spare more.
  uint32_t *write(unsigned from, unsigned keep, uint32_t *out) const {
    constexpr unsigned bits = Characters::id_bits;
    for (unsigned i = from; i < keep; ++i) {
      const uint32_t first = ids_[i] & Characters::no_id, second = ids_[i] >> bits & Characters::no_id,
                     third = ids_[i] >> 2 * bits & Characters::no_id;
      out[0] = first;
      out[1] = second;
      out[2] = third; // the next character overwrites IDs after these
      out += (first != Characters::no_id) + (second != Characters::no_id) + (third != Characters::no_id);
    }
    return out;
  }

private:
  uint64_t ids_[most];
};

} // namespace
} // namespace bpe
