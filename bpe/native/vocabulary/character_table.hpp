// Three-byte characters (CJK, kana, Hangul, Thai ...): their IDs, and the borders that no token crosses.
//
// Chinese and Japanese have no spaces, so nearly every pretoken is new and the cache does not help. But in
// most vocabularies, hardly any entry extends from one character into the next. A border between two
// characters is *joined* if an entry may extend across it:
// - An entry that contains both characters whole. All these pairs are listed (50 in GPT-2, 18,000 in Qwen 3).
//   Each character has two masks of 32 bits for the characters that may come before and after it, indexed by
//   the lower five bits of their code points, so that most pairs need no look-up.
// - An entry that contains a part of one of them: `w x | y z`, the last two bytes of one character and the
//   first two of the next, or fewer if the entry starts at x or ends at y. Few entries do this. Tables of
//   1,024 bits for x and y, w and x, and y and z rule them out at nearly all borders in Chinese text.
// A character between two safe borders always has the same IDs, read with one load. Two characters between
// safe borders can only merge with each other. Unless an entry contains a part of one with the other, they
// become one entry or stay separate, as given by the list of pairs.
//
// Works for any vocabulary. Immutable and thread-safe.
#pragma once

#include "common/page_memory.hpp"
#include "vocabulary/pair_table.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

// The table as plain data, for sources compiled for other instruction sets. Valid as long as the table.
struct Characters {
  // Three IDs of 21 bits each, the first one lowest; no_id after the last.
  static constexpr unsigned id_bits = 21;
  static constexpr uint32_t no_id = (1u << id_bits) - 1;
  struct Character {
    uint64_t ids;
    uint32_t followers,
        leaders; // bit n: may be joined to one before or after it with a code point ending in n
  };
  const Character *characters; // by code point
  // Bits of borders that an entry with a part of a character may cross. end_of() selects one of the parts of
  // 64 words, which is 0 for most; a part has one word per z and one bit per w.
  const uint16_t *partly_joined_parts;
  const uint64_t *partly_joined;
  // The same filters indexed by x and y with end_of(), w and x with last_of(), y and z with start_of().
  const uint8_t *partly_joined_ends, *partly_joined_lasts, *partly_joined_starts;
  // Pairs of characters that are adjacent in an entry, by code points. The rank is 1 + the ID of the entry
  // they become when nothing else merges with them. apart: they stay separate. unreachable: merges do not
  // make their entry. no_pair: no entry contains the pair.
  PairTable::View pairs;
  static constexpr uint32_t apart = 0, unreachable = no_id + 1, no_pair = PairTable::no_rank;
  const uint8_t *joined_bytes; // [left << 8 | right]: whether the two bytes are adjacent in any entry
  uint32_t line_feed_id;

  // Return whether a three-byte character starts at p, with `size` bytes left. Also true for overlong forms
  // and surrogates, which is harmless, since they have IDs like the others.
  [[gnu::always_inline]] static bool starts_at(const uint8_t *p, size_t size) {
    return size >= 3 && (p[0] & 0xF0) == 0xE0 && ((p[1] ^ 0x80) & 0xC0) == 0 && ((p[2] ^ 0x80) & 0xC0) == 0;
  }
  [[gnu::always_inline]] static uint32_t code_point(const uint8_t *p) {
    return (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
  }
  // w, x and z have six variable bits, y four.
  [[gnu::always_inline]] static uint32_t end_of(uint32_t x, uint32_t y) { return (x & 63) << 4 | (y & 15); }
  [[gnu::always_inline]] static uint32_t last_of(uint32_t w, uint32_t x) {
    return (x & 63) << 4 | (w >> 2 & 15);
  }
  [[gnu::always_inline]] static uint32_t start_of(uint32_t y, uint32_t z) { return (y & 15) << 6 | (z & 63); }

  // For the border before p, with three-byte characters on both sides.
  [[gnu::always_inline]] uint32_t pair_before(const uint8_t *p) const {
    return pairs.rank(code_point(p - 3), code_point(p));
  }
  [[gnu::always_inline]] bool is_partly_joined(const uint8_t *p) const {
    const uint32_t part = partly_joined_parts[end_of(p[-1], p[0])];
    return (partly_joined[64 * part + (p[1] & 63)] >> (p[-2] & 63) & 1) != 0;
  }
  [[gnu::always_inline]] bool may_join(const uint8_t *p) const {
    return pair_before(p) != no_pair || is_partly_joined(p);
  }
};

class CharacterTable {
public:
  explicit CharacterTable(const Vocabulary &vocabulary);

  Characters view() const {
    return {characters(),        partly_joined_parts_, partly_joined_.data(),
            partly_joined_ends_, partly_joined_lasts_, partly_joined_starts_,
            pairs_.view(),       joined_bytes_,        line_feed_id_};
  }
  // False if an ID is too large for the table. The borders are valid in that case, but not the IDs.
  bool has_ids() const { return has_ids_; }
  // Return whether a character is an entry that the merges of its bytes do not make. As a pretoken, it may
  // have IDs other than these.
  bool has_unreachable() const { return has_unreachable_; }

private:
  struct Found;
  void list_entries(const Vocabulary &vocabulary, Found &found);
  void list_character(const Vocabulary &vocabulary, uint32_t symbol, size_t at, Found &found);
  void list_border(std::string_view entry, size_t at, Found &found);
  void mark_part(const uint8_t *bytes, size_t left, size_t right);
  void fill_ids(const Vocabulary &vocabulary, std::vector<uint32_t> &one);
  void fill_pairs(const Vocabulary &vocabulary, Found &found);
  Characters::Character *characters() const;

  PageMemory characters_; // by code point
  std::vector<uint64_t> partly_joined_;
  uint16_t partly_joined_parts_[1024] = {};
  uint8_t partly_joined_ends_[128] = {}, partly_joined_lasts_[128] = {}, partly_joined_starts_[128] = {};
  PairTable pairs_;
  const uint8_t *joined_bytes_;
  uint32_t line_feed_id_;
  bool has_ids_ = true, has_unreachable_ = false;
};

} // namespace bpe
