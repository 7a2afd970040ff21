// Token ids written one after the other: into memory that grows and that a numpy array can take over, or into
// memory lent by the caller.
//
// A writer asks for room(n), writes through the pointer it gets, and says with set_end how far it wrote.
// Lent memory is used again and again, so its pages are touched once; where it is too small, the buffer goes
// on in memory of its own. That is recycled (recycled_memory.hpp).
#pragma once

#include "common/recycled_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace bpe {

class TokenBuffer {
public:
  TokenBuffer() = default;
  // Lent memory, which must outlive the buffer.
  TokenBuffer(uint32_t *data, size_t capacity)
      : data_(data), capacity_(capacity), ready_(capacity), lent_(true) {}
  ~TokenBuffer() { recycle(std::move(memory_)); }
  TokenBuffer(TokenBuffer &&other) noexcept { swap(other); }
  TokenBuffer &operator=(TokenBuffer &&other) noexcept {
    swap(other);
    return *this;
  }

  const uint32_t *data() const { return data_; }
  uint32_t *data() { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool lent() const { return lent_; }
  void clear() { size_ = 0; }

  // Where the next id goes; room for `count` from there on. Throws std::bad_alloc.
  uint32_t *room(size_t count) {
    if (ready_ - size_ < count)
      make_ready(count);
    return data_ + size_;
  }
  void set_end(const uint32_t *end) { size_ = static_cast<size_t>(end - data_); }
  void push(uint32_t id) {
    *room(1) = id;
    ++size_;
  }

  // Room for `count` ids in all, at least. Address space only: untouched pages cost nothing.
  void reserve(size_t count) {
    if (count > SIZE_MAX / sizeof(uint32_t))
      throw std::bad_alloc();
    if (count > capacity_)
      resize(count);
  }
  // The same if the system allows it; without it the buffer grows as it fills. Returns whether there is room.
  bool try_reserve(size_t count) {
    try {
      reserve(count);
      return true;
    } catch (const std::bad_alloc &) { // limits on address space
      return false;
    }
  }
  // Gives back what lies behind the last id.
  void shrink() {
    if (!lent_)
      resize(std::max<size_t>(size_, 1));
  }

  // Of reserved room that is not written by way of room(): ids [start, stop) are about to be. Any thread.
  void prepare(size_t start, size_t stop) const {
    memory_.populate(std::max(start, ready_) * sizeof *data_, stop * sizeof *data_);
  }

private:
  // Pages are mapped so many ids before they are needed, 64 in one call: a third of the time of a fault each.
  static constexpr size_t ready_ahead = size_t{64} << 10;

  // Rarely called, so kept out of the loops.
  [[gnu::noinline]] void make_ready(size_t count) {
    if (capacity_ - size_ < count) // by half, so that few ids are copied where growing copies
      resize(std::max(size_ + count, capacity_ + capacity_ / 2 + 1024));
    const size_t ready = std::min(capacity_, size_ + count + ready_ahead);
    prepare(ready_, ready);
    ready_ = ready;
  }
  void resize(size_t capacity) {
    const uint32_t *const lent = lent_ ? data_ : nullptr;
    if (memory_.bytes() > 0) {
      memory_.resize(capacity * sizeof(uint32_t));
    } else { // pages that are there need not be mapped again
      auto [memory, known_bytes] = take_recycled(capacity * sizeof(uint32_t));
      memory_ = std::move(memory);
      ready_ = known_bytes / sizeof(uint32_t);
    }
    data_ = static_cast<uint32_t *>(memory_.data());
    capacity_ = capacity;
    ready_ = std::min(ready_, capacity);
    if (lent) {
      lent_ = false;
      std::copy(lent, lent + size_, data_);
    }
  }
  void swap(TokenBuffer &other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(ready_, other.ready_);
    std::swap(size_, other.size_);
    std::swap(lent_, other.lent_);
  }

  PageMemory memory_; // empty if lent
  uint32_t *data_ = nullptr;
  size_t capacity_ = 0, ready_ = 0, size_ = 0; // ready_: ids for which pages are there
  bool lent_ = false;
};

} // namespace bpe
