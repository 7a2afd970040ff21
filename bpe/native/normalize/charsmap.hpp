// SentencePiece's charsmap as SentencePiece applies it: replaces the longest key at each offset.
// Hugging Face applies the same tables differently (precompiled.hpp).
#pragma once

#include "normalize/charsmap_table.hpp"
#include "normalize/step.hpp"

namespace bpe {

class Charsmap final : public Step {
public:
  // Throws std::invalid_argument for a truncated charsmap or a missing replacement.
  explicit Charsmap(std::string_view charsmap);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  // A key may contain any character.
  bool is_border(uint32_t) const override { return false; }
  size_t max_growth() const override { return max_growth_; }

private:
  // Returns the first offset from p on at which a key may start.
  const uint8_t *skip_same(const uint8_t *p, const uint8_t *stop) const;

  CharsmapTable table_;
  bool same_ascii_[256] = {}; // by byte: neither a key nor the start of one that continues with ASCII
  size_t max_growth_ = 1;
};

} // namespace bpe
