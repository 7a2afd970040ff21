// A normalizer that replaces each character by itself: lower case, removed marks, spaces of other kinds.
#pragma once

#include "normalize/page_table.hpp"
#include "normalize/step.hpp"

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace bpe {

class CharacterMap final : public Step {
public:
  void replace(uint32_t code_point, const std::string &utf8);
  // The character gets a space on both sides.
  void space_around(uint32_t code_point) { places_.set(code_point, spaced); }
  void finish(); // before the first use
  // Both maps in one: this one, then the other.
  CharacterMap followed_by(const CharacterMap &other) const;

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t) const override { return true; }
  size_t max_growth() const override { return max_growth_; }

private:
  bool is_plain(const uint8_t *p) const;
  const uint8_t *next_changed(const uint8_t *p, const uint8_t *stop) const;
  std::string image(uint32_t code_point) const;

  static constexpr uint32_t spaced = 1;
  PageTable<uint32_t> places_;            // in pool_, 0: the character stays, or `spaced`
  std::vector<uint8_t> pool_{0, 0, 0, 0}; // of each text its length, uint32, and its bytes
  std::map<std::string, uint32_t> place_of_text_;
  std::array<uint8_t, 256> length_of_same_{}; // by first byte, of characters that all stay
  // What ASCII becomes, where that is at most seven bytes: these, and how many in the last one.
  std::array<std::array<uint8_t, 8>, 128> ascii_{};
  bool ascii_stays_ = false, short_ascii_ = false;
  bool lowers_ascii_ = false; // and nothing else happens to ASCII, as far as it is plain
  uint8_t plain_from_ = 0, plain_to_ = 0x7F;
  size_t max_growth_ = 1;
};

// What StripAccents, Lowercase, Nmt and the parts of BertNormalizer do.
CharacterMap lower_case_map();
CharacterMap removing_map(std::span<const uint32_t> removed);
CharacterMap clean_map(std::span<const uint32_t> removed, std::span<const uint32_t> spaces);
CharacterMap spaced_ideographs_map();

} // namespace bpe
