// Distinct pretokens with their counts: open addressing over cells of 24 bytes.
//
//   up to 15 bytes   low = bytes 0-7, high = bytes 8-14 and in its top byte the length
//   16 and more      low = the hash, high = the address of (length, bytes) in the text store, top byte 0xFF
//
// A cell lies at or after the place its hash has in [0, cells), so walking the cells goes through the hashes
// in ascending order: pouring one table into a larger one, or many into one, touches memory front to back.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace bpe {

static_assert(std::endian::native == std::endian::little, "keys are loaded as little-endian words");

// The bytes of one pretoken as a table wants them; a long one still points into its text.
struct PretokenKey {
  uint64_t low, high; // high 0: a long one
  uint64_t hash;
  const uint8_t *bytes; // long ones only
  uint64_t size;
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

// text_stop: bytes up to there may be read, though only [bytes, bytes + size) count. size >= 1.
inline PretokenKey pretoken_key(const uint8_t *bytes, uint64_t size, const uint8_t *text_stop) {
  if (size < 16) [[likely]] {
    uint64_t low, high;
    if (text_stop - bytes >= 16) [[likely]] {
      low = load_word(bytes);
      high = load_word(bytes + 8);
      low &= size >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
      high &= size > 8 ? (uint64_t{1} << 8 * (size - 8)) - 1 : 0;
    } else {
      low = load_word(bytes, size < 8 ? size : 8);
      high = size > 8 ? load_word(bytes + 8, size - 8) : 0;
    }
    high |= size << 56;
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

class PretokenTable {
public:
  struct Cell {
    uint64_t low, high, count; // high 0: empty
    bool is_long() const { return high >> 56 == 0xFF; }
    const uint8_t *stored() const { return reinterpret_cast<const uint8_t *>(high & 0x00FFFFFFFFFFFFFFu); }
    uint64_t size() const { return is_long() ? load_word(stored()) : high >> 56; }
    uint64_t hash() const { return is_long() ? low : hash_words(low, high); }
    // size() bytes; of a short pretoken they lie in the cell itself.
    const uint8_t *bytes() const {
      return is_long() ? stored() + 8 : reinterpret_cast<const uint8_t *>(this);
    }
    PretokenKey key() const {
      return is_long() ? PretokenKey{low, 0, low, bytes(), size()}
                       : PretokenKey{low, high, hash(), nullptr, high >> 56};
    }
  };

  // skipped_bits: the high bits of the hash that all keys of this table share.
  explicit PretokenTable(size_t cells = 64, int skipped_bits = 0)
      : cells_(cells, Cell{}), skipped_bits_(skipped_bits) {}

  size_t size() const { return used_; }
  size_t memory_bytes() const { return cells_.capacity() * sizeof(Cell) + stored_bytes_; }
  const std::vector<Cell> &cells() const { return cells_; }

  void add(const PretokenKey &key, uint64_t count) {
    size_t at = cell_of(key.hash);
    if (key.high != 0) [[likely]] {
      while (cells_[at].high != 0 && (cells_[at].low != key.low || cells_[at].high != key.high))
        at = after(at);
    } else {
      while (cells_[at].high != 0 && !same_long(cells_[at], key))
        at = after(at);
    }
    if (cells_[at].high != 0) {
      cells_[at].count += count;
      return;
    }
    cells_[at] = {key.low, key.high != 0 ? key.high : store(key), count};
    if (10 * ++used_ > 8 * cells_.size())
      grow();
  }

  void clear() {
    std::fill(cells_.begin(), cells_.end(), Cell{});
    used_ = 0;
    blocks_.clear();
    block_free_ = 0;
    stored_bytes_ = 0;
  }

private:
  static constexpr size_t block_bytes = 1 << 16;

  size_t cell_of(uint64_t hash) const {
    return static_cast<size_t>(static_cast<unsigned __int128>(hash << skipped_bits_) * cells_.size() >> 64);
  }
  size_t after(size_t at) const { return at + 1 == cells_.size() ? 0 : at + 1; }

  static bool same_long(const Cell &cell, const PretokenKey &key) {
    return cell.is_long() && cell.low == key.hash && cell.size() == key.size &&
           std::memcmp(cell.bytes(), key.bytes, key.size) == 0;
  }

  uint64_t store(const PretokenKey &key) {
    const size_t needed = 8 + key.size;
    if (needed > block_free_) {
      const size_t bytes = needed > block_bytes ? needed : block_bytes;
      blocks_.emplace_back(new uint8_t[bytes]);
      block_next_ = blocks_.back().get();
      block_free_ = bytes;
      stored_bytes_ += bytes;
    }
    uint8_t *place = block_next_;
    std::memcpy(place, &key.size, 8);
    std::memcpy(place + 8, key.bytes, key.size);
    block_next_ += needed;
    block_free_ -= needed;
    return uint64_t{0xFF} << 56 | reinterpret_cast<uintptr_t>(place);
  }

  void grow() {
    // Half as large again: 0.53 to 0.8 of the cells are used, some 36 bytes a pretoken.
    std::vector<Cell> old(cells_.size() + cells_.size() / 2, Cell{});
    old.swap(cells_);
    for (const Cell &cell : old) {
      if (cell.high == 0)
        continue;
      size_t at = cell_of(cell.hash());
      while (cells_[at].high != 0)
        at = after(at);
      cells_[at] = cell;
    }
  }

  std::vector<Cell> cells_;
  int skipped_bits_;
  size_t used_ = 0;
  std::vector<std::unique_ptr<uint8_t[]>> blocks_; // the long pretokens; addresses stay
  uint8_t *block_next_ = nullptr;
  size_t block_free_ = 0;
  size_t stored_bytes_ = 0; // of all blocks
};

} // namespace bpe
