// A normalizer that maps each character independently, such as lower case or removed marks.
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
  // Puts a space on both sides of the character.
  void space_around(uint32_t code_point) { places_.set(code_point, spaced); }
  void finish(); // before the first use
  // Returns the map that applies this map, then the other.
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
  PageTable<uint32_t> places_;            // offset in pool_; 0: the character stays; or `spaced`
  std::vector<uint8_t> pool_{0, 0, 0, 0}; // per text: length as uint32, then bytes
  std::map<std::string, uint32_t> place_of_text_;
  std::array<uint8_t, 256>
      length_of_same_{}; // by first byte: length of the characters if all of them stay, else 0
  // The image of an ASCII character if it has at most seven bytes; the last byte is its length.
  std::array<std::array<uint8_t, 8>, 128> ascii_{};
  bool ascii_stays_ = false, short_ascii_ = false;
  bool lowers_ascii_ = false; // plain ASCII only changes to lower case
  uint8_t plain_from_ = 0, plain_to_ = 0x7F;
  size_t max_growth_ = 1;
};

// The maps of StripAccents, Lowercase, Nmt and the parts of BertNormalizer.
CharacterMap lower_case_map();
CharacterMap removing_map(std::span<const uint32_t> removed);
CharacterMap clean_map(std::span<const uint32_t> removed, std::span<const uint32_t> spaces);
CharacterMap spaced_ideographs_map();

} // namespace bpe
