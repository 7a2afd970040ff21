// SentencePiece's charsmap as SentencePiece applies it: at each place the longest key there gives way to its
// text. Hugging Face's rule for the same tables is another one (precompiled.hpp).
#pragma once

#include "normalize/charsmap_table.hpp"
#include "normalize/step.hpp"

namespace bpe {

class Charsmap final : public Step {
public:
  // Throws std::invalid_argument for a charsmap that is cut short or has a replacement that is not there.
  explicit Charsmap(std::string_view charsmap);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  // A key may go on over any character that is known here.
  bool is_border(uint32_t) const override { return false; }
  size_t max_growth() const override { return max_growth_; }

private:
  // The first place from p on at which a key may begin.
  const uint8_t *skip_same(const uint8_t *p, const uint8_t *stop) const;

  CharsmapTable table_;
  bool same_ascii_[256] = {}; // by byte: no key, nor the begin of one that ASCII goes on
  size_t max_growth_ = 1;
};

} // namespace bpe
