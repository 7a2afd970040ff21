// Characters of three bytes (CJK, kana, Hangul, Thai ...): their ids, and the borders that no token crosses.
//
// Chinese and Japanese run on without spaces, so nearly every pretoken is new and the cache is of no use; but
// hardly any entry of most vocabularies reaches from one character into the next. A border between two is
// *joined* if an entry may reach over it:
// - one that holds both characters whole: these pairs of characters are all listed (50 in GPT-2, 18,000 in
//   Qwen 3). A character tells by 32 bits each which ones may come before and behind it, by the lower five
//   bits of their code points, so that most pairs need not be looked up;
// - one that holds a part of one of them: `w x | y z`, the last two bytes of the one and the first two of the
//   other, or less where the entry starts at x or ends at y. There are few such entries. What x and y, w and
//   x, y and z tell, 1,024 bits each, shows nearly all borders in Chinese to be safe from them.
// A character between two safe borders has always the same ids, one load away. Two characters between safe
// borders are all there is to merge: as long as no entry holds a part of one with the other, they become one
// entry or stay as they are, which the list of pairs tells.
//
// Works on any vocabulary. Immutable, so any number of threads may read.
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

// The table as plain data, for sources with instruction sets of their own. Valid while the table lives.
struct Characters {
  // Three ids of 21 bits each, the first lowest; no_id behind the last.
  static constexpr unsigned id_bits = 21;
  static constexpr uint32_t no_id = (1u << id_bits) - 1;
  struct Character {
    uint64_t ids;
    uint32_t followers,
        leaders; // bit n: perhaps joins one behind it, before it, whose code point ends with n
  };
  const Character *characters; // by code point
  // What an entry with a part of a character may reach over: by end_of(), 0 for most, which of the parts of
  // 64 words a border's bits are in; a word for each z, a bit for each w.
  const uint16_t *partly_joined_parts;
  const uint64_t *partly_joined;
  // The same of what x and y tell, end_of(), of w and x, last_of(), and of y and z, start_of().
  const uint8_t *partly_joined_ends, *partly_joined_lasts, *partly_joined_starts;
  // Two characters that an entry holds one behind the other, by code points, and in place of a rank 1 and the
  // id of the entry they become where nothing else merges with them; apart: they stay apart; unreachable:
  // there is an entry, but merges do not make it; no_pair: there is no such pair.
  PairTable::View pairs;
  static constexpr uint32_t apart = 0, unreachable = no_id + 1, no_pair = PairTable::no_rank;
  const uint8_t *joined_bytes; // [left << 8 | right]: whether any entry has the two one behind the other
  uint32_t line_feed_id;

  // Whether a character of three bytes starts at p, of which `size` bytes are left. True for overlong forms
  // and surrogates too, which harms nothing: they have ids like the others.
  [[gnu::always_inline]] static bool starts_at(const uint8_t *p, size_t size) {
    return size >= 3 && (p[0] & 0xF0) == 0xE0 && ((p[1] ^ 0x80) & 0xC0) == 0 && ((p[2] ^ 0x80) & 0xC0) == 0;
  }
  [[gnu::always_inline]] static uint32_t code_point(const uint8_t *p) {
    return (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
  }
  // w, x and z have six bits of their own, y four.
  [[gnu::always_inline]] static uint32_t end_of(uint32_t x, uint32_t y) { return (x & 63) << 4 | (y & 15); }
  [[gnu::always_inline]] static uint32_t last_of(uint32_t w, uint32_t x) {
    return (x & 63) << 4 | (w >> 2 & 15);
  }
  [[gnu::always_inline]] static uint32_t start_of(uint32_t y, uint32_t z) { return (y & 15) << 6 | (z & 63); }

  // Of the border before p; such characters lie on both sides.
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
  // False if an id is too large for the table: then the borders are of use, the ids are not.
  bool has_ids() const { return has_ids_; }
  // Whether some character is an entry that its own bytes' merges don't make: as a pretoken of its own it may
  // have other ids than these.
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
