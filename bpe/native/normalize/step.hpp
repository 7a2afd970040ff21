// One normalizer of a sequence: text in, text out.
#pragma once

#include "normalize/byte_buffer.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// SIZE_MAX instead of an overflow.
inline size_t saturating_product(size_t a, size_t b) {
  return b > 0 && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

// Where a text begins that is normalized: within the text between two special tokens, as such a text, or as
// the first one of a whole input.
enum class TextStart : uint8_t { inside, section, input };

class Step {
public:
  virtual ~Step() = default;

  // Appends what the text, valid UTF-8, becomes.
  virtual void append(const uint8_t *text, size_t size, ByteBuffer &out) const = 0;
  // All before this place stays as it is, and may be normalized apart from what follows; `size`: all stays.
  virtual size_t first_change(const uint8_t *text, size_t size) const = 0;
  // Whether the text may be normalized apart before and behind the place where this character begins,
  // whatever stands around it. Only Precompiled looks at the character before, too (Normalizer::is_border).
  virtual bool is_border(uint32_t code_point) const = 0;
  // How many bytes a byte becomes at most.
  virtual size_t max_growth() const = 0;
};

} // namespace bpe
