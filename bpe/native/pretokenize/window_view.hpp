// The piece starts in a window of text, as plain data for sources compiled for other instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe {

struct WindowView {
  const uint8_t *origin;
  // Bit i: a piece starts at origin + i or the text ends there, as far as certain. Two more words than a
  // window has. Null: the window was not scanned (encode/character_encoder.hpp).
  const uint64_t *starts;
  // The last start, or the end of the text; 0: the first piece continues after the window.
  size_t certain;
};

namespace {

// Return 64 bits starting at bit `offset`.
[[maybe_unused, gnu::always_inline]] inline uint64_t bits_from(const uint64_t *bits, size_t offset) {
  const size_t word = offset / 64, shift = offset % 64;
  return bits[word] >> shift | (bits[word + 1] << 1) << (63 - shift);
}

} // namespace
} // namespace bpe
