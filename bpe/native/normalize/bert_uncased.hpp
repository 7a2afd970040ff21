// BertNormalizer with all that it has, in one pass: characters cleaned, ideographs spaced, marks taken off
// letters, lower case.
//
// The normal form between these steps only matters character by character, as long as no two marks are left
// that it might put into another order. Text with marks of that kind takes the steps one after the other.
#pragma once

#include "normalize/character_map.hpp"
#include "normalize/step.hpp"

namespace bpe {

class BertUncased final : public Step {
public:
  static const BertUncased &get(); // made on first use

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t code_point) const override;
  size_t max_growth() const override { return all_.max_growth(); }

private:
  BertUncased();

  CharacterMap cleaned_, lowered_; // before and behind the normal form
  CharacterMap all_;
  CharacterMap ordered_; // changes the marks that have an order
};

} // namespace bpe
