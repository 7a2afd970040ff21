// Where the pieces of a window of text start, as plain data for sources with instruction sets of their own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe {

struct WindowView {
  const uint8_t *origin;
  // Bit i: a piece starts at origin + i, or the text ends there; as far as is certain. Two words more than a
  // window has. Null: nobody looked (encode/walk_over_characters.cpp).
  const uint64_t *starts;
  // The last start, or the end of the text; 0: the first piece goes on behind the window.
  size_t certain;
};

namespace {

// 64 bits from number `offset` on.
[[maybe_unused, gnu::always_inline]] inline uint64_t bits_from(const uint64_t *bits, size_t offset) {
  const size_t word = offset / 64, shift = offset % 64;
  return bits[word] >> shift | (bits[word + 1] << 1) << (63 - shift);
}

} // namespace
} // namespace bpe
