// Characters of three bytes (CJK, kana, Hangul, Thai ...): their ids, and where no token can cross between
// two.
//
// Chinese and Japanese run on without spaces, so nearly every pretoken is new and the cache is of no use; but
// hardly any entry of most vocabularies reaches from one character into the next. Between two characters of
// three bytes a token can cross only if an entry has their bytes there: `w x | y z`, the last two bytes of
// the one and the first two of the other, or less where the entry starts at x or ends at y. Two bytes of
// context (x | y) show 95 % of the borders in Chinese to be safe, four 99.3 % (GPT-2). A character between
// two safe borders has always the same ids, one load away.
//
// Works on any vocabulary: one with many words of such characters has fewer safe borders (o200k: 92 % in
// classical Chinese). Immutable, so any number of threads may read.
#pragma once

#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace bpe {

// The table as plain data, for sources with instruction sets of their own. Valid while the table lives.
struct Characters {
  // By code point, three ids of 21 bits each, the first lowest; no_id behind the last.
  static constexpr unsigned id_bits = 21;
  static constexpr uint32_t no_id = (1u << id_bits) - 1;
  const uint64_t *ids;
  const uint64_t *joined; // a bit for each border_of(): whether an entry may reach over it
  // The same of what x and y tell, border_of() >> 12, and of x and the upper four bits of w, last_of(). In
  // Chinese text each shows 5 % or 9 % of the borders to be joined, both together 1.5 % (GPT-2).
  const uint8_t *joined_ends, *joined_lasts;

  // Whether a character of three bytes starts at p, of which `size` bytes are left. True for overlong forms
  // and surrogates too, which harms nothing: they have ids like the others.
  [[gnu::always_inline]] static bool starts_at(const uint8_t *p, size_t size) {
    return size >= 3 && (p[0] & 0xF0) == 0xE0 && ((p[1] ^ 0x80) & 0xC0) == 0 && ((p[2] ^ 0x80) & 0xC0) == 0;
  }
  [[gnu::always_inline]] static uint32_t code_point(const uint8_t *p) {
    return (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
  }
  // w, x and z have six bits of their own, y four.
  [[gnu::always_inline]] static uint32_t border_of(uint32_t w, uint32_t x, uint32_t y, uint32_t z) {
    return (x & 63) << 16 | (y & 15) << 12 | (z & 63) << 6 | (w & 63);
  }
  [[gnu::always_inline]] static uint32_t last_of(uint32_t w, uint32_t x) {
    return (x & 63) << 4 | (w >> 2 & 15);
  }
  // Whether an entry may reach over the border before p; such characters lie on both sides.
  [[gnu::always_inline]] bool may_join(const uint8_t *p) const {
    const uint32_t border = border_of(p[-2], p[-1], p[0], p[1]);
    return (joined_ends[border >> 15] >> (border >> 12 & 7) & 1) != 0 &&
           (joined[border >> 6] >> (border & 63) & 1) != 0;
  }
};

class CharacterTable {
public:
  explicit CharacterTable(const Vocabulary &vocabulary);

  Characters view() const { return {ids_.data(), joined_.data(), joined_ends_, joined_lasts_}; }
  // False if an id is too large for the table: then the borders are of use, the ids are not.
  bool has_ids() const { return has_ids_; }
  // Whether some character is an entry that its own bytes' merges don't make: as a pretoken of its own it may
  // have other ids than these.
  bool has_unreachable() const { return has_unreachable_; }

private:
  void mark_borders(std::string_view entry);
  void fill_ids(const Vocabulary &vocabulary, const std::vector<bool> &is_entry);

  std::vector<uint64_t> ids_;
  std::vector<uint64_t> joined_;
  uint8_t joined_ends_[128] = {}, joined_lasts_[128] = {};
  bool has_ids_ = true, has_unreachable_ = false;
};

// The same, made when it is first asked for: texts without such characters pay nothing. Any thread.
class LazyCharacterTable {
public:
  explicit LazyCharacterTable(const Vocabulary &vocabulary) : vocabulary_(vocabulary) {}
  const CharacterTable &get() {
    std::call_once(once_, [this] { table_ = std::make_unique<CharacterTable>(vocabulary_); });
    return *table_;
  }

private:
  const Vocabulary &vocabulary_;
  std::once_flag once_;
  std::unique_ptr<CharacterTable> table_;
};

} // namespace bpe
