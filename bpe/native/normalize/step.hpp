// One step of a normalizer.
#pragma once

#include "normalize/byte_buffer.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// Return the product, or SIZE_MAX if it overflows.
inline size_t saturating_product(size_t a, size_t b) {
  return b > 0 && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

// Where a text starts: inside a section, at the start of a section, or at the start of the input.
enum class TextStart : uint8_t { inside, section, input };

class Step {
public:
  virtual ~Step() = default;

  // Appends the normalized text. text: valid UTF-8.
  virtual void append(const uint8_t *text, size_t size, ByteBuffer &out) const = 0;
  // Returns an offset up to which the text does not change and can be normalized separately from the rest.
  virtual size_t first_change(const uint8_t *text, size_t size) const = 0;
  // Whether the parts before and after this character can be normalized separately in any context.
  // Precompiled also depends on the character before it (Normalizer::is_border).
  virtual bool is_border(uint32_t code_point) const = 0;
  // The maximum number of output bytes per input byte.
  virtual size_t max_growth() const = 0;
};

} // namespace bpe
