// Token ids written one after the other into memory that grows, and that a numpy array can take over.
//
// A writer asks for room(n), writes through the pointer it gets, and says with set_end how far it wrote.
#pragma once

#include "page_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace bpe {

class TokenBuffer {
public:
  TokenBuffer() = default;
  TokenBuffer(TokenBuffer &&other) noexcept
      : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  TokenBuffer &operator=(TokenBuffer &&other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }

  const uint32_t *data() const { return begin(); }
  uint32_t *data() { return begin(); }
  size_t size() const { return size_; }
  void clear() { size_ = 0; }

  // Where the next id goes; room for `count` from there on. Throws std::bad_alloc.
  uint32_t *room(size_t count) {
    if (capacity() - size_ < count)
      grow(count);
    return begin() + size_;
  }
  void set_end(const uint32_t *end) { size_ = static_cast<size_t>(end - begin()); }
  void push(uint32_t id) {
    *room(1) = id;
    ++size_;
  }

  // Room for `count` ids in all, at least. Address space only: untouched pages cost nothing.
  void reserve(size_t count) {
    if (count > capacity())
      memory_.resize(count * sizeof(uint32_t));
  }
  // The same if the system allows it; without it the buffer grows as it fills.
  void try_reserve(size_t count) {
    try {
      reserve(count);
    } catch (const std::bad_alloc &) { // limits on address space
    }
  }
  // Gives back what lies behind the last id.
  void shrink() { memory_.resize(std::max<size_t>(size_, 1) * sizeof(uint32_t)); }

private:
  uint32_t *begin() const { return static_cast<uint32_t *>(memory_.data()); }
  size_t capacity() const { return memory_.bytes() / sizeof(uint32_t); }
  // By half, so that few ids are copied where growing copies; rarely called, so kept out of the loops.
  [[gnu::noinline]] void grow(size_t count) {
    memory_.resize(std::max(size_ + count, capacity() + capacity() / 2 + 1024) * sizeof(uint32_t));
  }

  PageMemory memory_;
  size_t size_ = 0;
};

} // namespace bpe
