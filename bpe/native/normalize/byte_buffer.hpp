// A growing buffer of bytes with spare memory at its end, so that whole registers can be stored.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace bpe {

class ByteBuffer {
public:
  static constexpr size_t spare_bytes = 64; // readable and writable after the reserved bytes

  const uint8_t *data() const { return data_.get(); }
  uint8_t *data() { return data_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  // The end of the readable memory.
  const uint8_t *readable() const { return data_.get() + capacity_; }
  void clear() { size_ = 0; }

  // Reserves space for more bytes and returns the end of the content. May move the content.
  uint8_t *room(size_t bytes) {
    if (capacity_ - size_ < bytes || !data_)
      reserve(std::max(size_ + bytes + 1, 2 * capacity_));
    return data_.get() + size_;
  }
  void set_end(const uint8_t *end) { size_ = static_cast<size_t>(end - data_.get()); }
  void append(const uint8_t *bytes, size_t count) {
    if (count == 0)
      return;
    std::memcpy(room(count), bytes, count);
    size_ += count;
  }
  void reserve(size_t capacity) {
    if (capacity <= capacity_)
      return;
    std::unique_ptr<uint8_t[]> larger(new uint8_t[capacity + spare_bytes]);
    if (size_ > 0)
      std::memcpy(larger.get(), data_.get(), size_);
    std::memset(larger.get() + capacity, 0, spare_bytes);
    data_ = std::move(larger);
    capacity_ = capacity;
  }
  // Releases memory above `keep_bytes`; the content is lost.
  void trim(size_t keep_bytes) {
    size_ = 0;
    if (capacity_ > keep_bytes) {
      data_.reset();
      capacity_ = 0;
    }
  }

private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0, capacity_ = 0;
};

} // namespace bpe
