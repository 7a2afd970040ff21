// A pretoken as the tables of the counter see it: two words and a hash, and the cell that holds it with its
// count.
//
//   up to 15 bytes   low = bytes 0-7, high = bytes 8-14 and in its top byte the length
//   16 and more      low = the hash, high = the address of (length, room for a count, bytes), top byte 0xFF
#pragma once

#include "common/byte_order.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace bpe {

// The bytes of one pretoken; a long one still points into its text.
struct PretokenKey {
  uint64_t low, high; // high 0: a long one
  uint64_t hash;
  const uint8_t *bytes; // long ones only
  uint64_t size;
  bool is_long() const { return high == 0; }
};

inline uint64_t hash_words(uint64_t low, uint64_t high) {
  const auto product =
      static_cast<unsigned __int128>(low ^ 0x8BB84B93962EACC9u) * (high ^ 0x2D358DCCAA6C78A5u);
  // The last multiplication carries everything into the high bits, which choose the cell.
  return (static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64)) * 0x9E3779B97F4A7C15u;
}

inline uint64_t load_word(const uint8_t *bytes, size_t size = 8) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

// What is left of the two words that start at a pretoken of so many bytes, and its length.
struct WordMasks {
  uint64_t low, high, length;
};
inline constexpr auto word_masks = [] {
  std::array<WordMasks, 16> masks{};
  for (uint64_t size = 0; size < 16; size++) {
    const auto mask = [](uint64_t bytes) {
      return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
    };
    masks[size] = {mask(size), mask(size < 8 ? 0 : size - 8), size << 56};
  }
  return masks;
}();

// text_stop: bytes up to there may be read, though only [bytes, bytes + size) count. size >= 1.
inline PretokenKey pretoken_key(const uint8_t *bytes, uint64_t size, const uint8_t *text_stop) {
  if (size < 16) [[likely]] {
    uint64_t low, high;
    const WordMasks &masks = word_masks[size]; // no branch by size, which no predictor would guess
    if (text_stop - bytes >= 16) [[likely]] {
      low = load_word(bytes) & masks.low;
      high = load_word(bytes + 8) & masks.high;
    } else {
      low = load_word(bytes, size < 8 ? size : 8);
      high = size > 8 ? load_word(bytes + 8, size - 8) : 0;
    }
    high |= masks.length;
    return {low, high, hash_words(low, high), nullptr, size};
  }
  uint64_t hash = size;
  uint64_t at = 0;
  for (; at + 16 <= size; at += 16)
    hash = hash_words(load_word(bytes + at) ^ hash, load_word(bytes + at + 8));
  if (at < size) // the last 16 bytes, some of them a second time
    hash = hash_words(load_word(bytes + size - 16) ^ hash, load_word(bytes + size - 8));
  return {hash, 0, hash, bytes, size};
}

struct PretokenCell {
  uint64_t low, high, count; // high 0: empty
  bool is_long() const { return high >> 56 == 0xFF; }
  uint8_t *stored() const { return reinterpret_cast<uint8_t *>(high & 0x00FFFFFFFFFFFFFFu); }
  uint64_t size() const { return is_long() ? load_word(stored()) : high >> 56; }
  // size() bytes; of a short pretoken they lie in the cell itself.
  const uint8_t *bytes() const { return is_long() ? stored() + 16 : reinterpret_cast<const uint8_t *>(this); }
  bool holds(const PretokenKey &key) const {
    if (!key.is_long()) [[likely]]
      return low == key.low && high == key.high;
    return is_long() && low == key.hash && size() == key.size &&
           std::memcmp(bytes(), key.bytes, key.size) == 0;
  }
};

// Where the bytes of long pretokens are kept; addresses stay. The first block is kept for what comes after
// clear().
class PretokenText {
public:
  explicit PretokenText(size_t block_bytes) : block_bytes_(block_bytes) {}

  // What PretokenCell::high is for this long pretoken, whose bytes are copied.
  uint64_t store(const PretokenKey &key) {
    const size_t needed = 16 + key.size;
    if (needed > free_)
      add_block(needed);
    uint8_t *place = next_;
    std::memcpy(place, &key.size, 8);
    std::memcpy(place + 16, key.bytes, key.size);
    next_ += needed;
    free_ -= needed;
    used_ += needed;
    return uint64_t{0xFF} << 56 | reinterpret_cast<uintptr_t>(place);
  }

  size_t used_bytes() const { return used_; }   // by what is stored
  size_t memory_bytes() const { return held_; } // by the blocks

  void clear() {
    used_ = 0;
    if (blocks_.empty())
      return;
    const bool keep = first_bytes_ == block_bytes_;
    blocks_.resize(keep ? 1 : 0);
    next_ = keep ? blocks_.front().get() : nullptr;
    free_ = held_ = keep ? block_bytes_ : 0;
  }

private:
  void add_block(size_t needed) {
    const size_t bytes = needed > block_bytes_ ? needed : block_bytes_;
    blocks_.emplace_back(new uint8_t[bytes]);
    if (blocks_.size() == 1)
      first_bytes_ = bytes;
    next_ = blocks_.back().get();
    free_ = bytes;
    held_ += bytes;
  }

  size_t block_bytes_;
  std::vector<std::unique_ptr<uint8_t[]>> blocks_;
  uint8_t *next_ = nullptr;
  size_t first_bytes_ = 0, free_ = 0, used_ = 0, held_ = 0;
};

} // namespace bpe
