// The key of a pretoken in the counter's tables (two words and a hash), and the cell that stores it with its
// count.
//
//   up to 15 bytes   low = bytes 0-7, high = bytes 8-14 and in its top byte the length: a CacheKey
//   16 and more      low = the hash, high = the address of (length, room for a count, bytes), top byte 0xFF
#pragma once

#include "cache/short_key.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace bpe {

// The bytes of one pretoken; a long one still points into its text.
struct PretokenKey {
  uint64_t low, high; // high 0: a long pretoken
  uint64_t hash;
  const uint8_t *bytes; // only for long pretokens
  uint64_t size;
  bool is_long() const { return high == 0; }
};

inline uint64_t hash_words(uint64_t low, uint64_t high) {
  const auto product =
      static_cast<unsigned __int128>(low ^ 0x8BB84B93962EACC9u) * (high ^ 0x2D358DCCAA6C78A5u);
  // The last multiplication carries everything into the high bits, which select the cell.
  return (static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64)) * 0x9E3779B97F4A7C15u;
}

inline uint64_t load_word(const uint8_t *bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

// text_stop: bytes up to there may be read, although only [bytes, bytes + size) count. size >= 1.
[[gnu::always_inline]] static inline PretokenKey pretoken_key(const uint8_t *bytes, uint64_t size,
                                                              const uint8_t *text_stop) {
  if (size <= CacheKey::max_bytes) [[likely]] {
    const CacheKey key = key_of(bytes, size, text_stop);
    return {key.low, key.high, hash_words(key.low, key.high), nullptr, size};
  }
  uint64_t hash = size;
  uint64_t at = 0;
  for (; at + 16 <= size; at += 16)
    hash = hash_words(load_word(bytes + at) ^ hash, load_word(bytes + at + 8));
  if (at < size) // the last 16 bytes, which may overlap the previous ones
    hash = hash_words(load_word(bytes + size - 16) ^ hash, load_word(bytes + size - 8));
  return {hash, 0, hash, bytes, size};
}

struct PretokenCell {
  uint64_t low, high, count; // high 0: empty
  bool is_long() const { return high >> 56 == 0xFF; }
  uint8_t *stored() const { return reinterpret_cast<uint8_t *>(high & 0x00FFFFFFFFFFFFFFu); }
  uint64_t size() const { return is_long() ? load_word(stored()) : high >> 56; }
  // size() bytes; the bytes of a short pretoken are in the cell.
  const uint8_t *bytes() const { return is_long() ? stored() + 16 : reinterpret_cast<const uint8_t *>(this); }
  bool holds(const PretokenKey &key) const {
    if (!key.is_long()) [[likely]]
      return low == key.low && high == key.high;
    return is_long() && low == key.hash && size() == key.size &&
           std::memcmp(bytes(), key.bytes, key.size) == 0;
  }
};

// Storage for the bytes of long pretokens with stable addresses. clear() keeps the first block for reuse.
class PretokenText {
public:
  explicit PretokenText(size_t block_bytes) : block_bytes_(block_bytes) {}

  // Copy the bytes of a long pretoken and return its PretokenCell::high.
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

  size_t used_bytes() const { return used_; }   // by stored bytes
  size_t memory_bytes() const { return held_; } // by blocks

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
