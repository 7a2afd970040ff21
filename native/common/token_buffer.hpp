// A buffer of token IDs. It writes into growing memory that a numpy array can take over, or into memory
// provided by the caller.
//
// A writer calls room(n), writes through the returned pointer, and calls set_end with the end of the IDs
// written. Memory from the caller is reused, so its pages are touched once. If it is too small, the buffer
// continues in recycled memory (recycled_memory.hpp).
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
  // Use memory of the caller, which must outlive the buffer.
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

  // Return where the next ID goes, with room for `count` IDs. Throws std::bad_alloc.
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

  // Reserve room for at least `count` IDs in total. This reserves address space only; untouched pages cost
  // nothing.
  void reserve(size_t count) {
    if (count > SIZE_MAX / sizeof(uint32_t))
      throw std::bad_alloc();
    if (count > capacity_)
      resize(count);
  }
  // Like reserve, but return false if the system refuses; the buffer then grows as it fills.
  bool try_reserve(size_t count) {
    try {
      reserve(count);
      return true;
    } catch (const std::bad_alloc &) { // the address space is limited
      return false;
    }
  }
  // Release the memory after the last ID.
  void shrink() {
    if (!lent_)
      resize(std::max<size_t>(size_, 1));
  }

  // Prepare reserved memory for writing IDs [start, stop) without room(). Thread-safe.
  void prepare(size_t start, size_t stop) const {
    memory_.populate(std::max(start, ready_) * sizeof *data_, stop * sizeof *data_);
  }

private:
  // Number of IDs to map ahead, 64 pages per call: a third of the time of one fault per page.
  static constexpr size_t ready_ahead = size_t{64} << 10;

  // Not inlined into loops, since calls are rare.
  [[gnu::noinline]] void make_ready(size_t count) {
    if (capacity_ - size_ < count) // grow by half, to copy few IDs on systems where growing copies
      resize(std::max(size_ + count, capacity_ + capacity_ / 2 + 1024));
    const size_t ready = std::min(capacity_, size_ + count + ready_ahead);
    prepare(ready_, ready);
    ready_ = ready;
  }
  void resize(size_t capacity) {
    const uint32_t *const lent = lent_ ? data_ : nullptr;
    if (memory_.bytes() > 0) {
      memory_.resize(capacity * sizeof(uint32_t));
    } else { // pages already mapped need no populate()
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

  PageMemory memory_; // empty if the caller provides the memory
  uint32_t *data_ = nullptr;
  size_t capacity_ = 0, ready_ = 0, size_ = 0; // ready_: number of IDs with mapped pages
  bool lent_ = false;
};

} // namespace bpe
