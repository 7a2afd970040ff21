// A normalizer that replaces each character by itself: lower case, removed marks, spaces of other kinds.
#pragma once

#include "normalize/page_table.hpp"
#include "normalize/step.hpp"

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace bpe {

class CharacterMap final : public Step {
public:
  void replace(uint32_t code_point, std::string_view utf8);
  void finish(); // before the first use

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t) const override { return true; }
  size_t max_growth() const override { return max_growth_; }

private:
  const uint8_t *next_changed(const uint8_t *p, const uint8_t *stop) const;

  PageTable<uint32_t> places_;                // in pool_, 0: the character stays
  std::vector<uint8_t> pool_{0, 0, 0, 0};     // of each text its length, uint32, and its bytes
  std::array<uint8_t, 256> length_of_same_{}; // by first byte, of characters that all stay
  std::array<uint8_t, 128> ascii_{};          // what ASCII becomes, where that is ASCII
  bool ascii_stays_ = false;
  bool ascii_to_ascii_ = false; // each character to one
  size_t max_growth_ = 1;
};

// What StripAccents, Lowercase, Nmt and the parts of BertNormalizer do.
CharacterMap lower_case_map();
CharacterMap removing_map(std::span<const uint32_t> removed);
CharacterMap clean_map(std::span<const uint32_t> removed, std::span<const uint32_t> spaces);
CharacterMap spaced_ideographs_map();

} // namespace bpe
