// Memory for large arrays: zeroed and mapped only where touched, in huge pages where the system has them and
// the array is read here and there; one that is written from start to end once needs none.
//
// Growing keeps the contents and, on Linux, copies nothing (the pages move to another address).
// Elsewhere, and below 256 KiB, it is calloc and realloc.
#pragma once

#include <cstddef>
#include <utility>

namespace bpe {

class PageMemory {
public:
  enum class Pages : bool { huge, small };

  PageMemory() = default;
  explicit PageMemory(size_t bytes, Pages pages = Pages::huge) : pages_(pages) { resize(bytes); } // zeroed
  ~PageMemory() { release(); }
  PageMemory(PageMemory &&other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, false)), pages_(other.pages_) {}
  PageMemory &operator=(PageMemory &&other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(pages_, other.pages_);
    return *this;
  }

  // Contents are kept up to the smaller size; what is new is zero only where it was never mapped before.
  // Throws std::bad_alloc and changes nothing.
  void resize(size_t bytes);
  // Has the system map bytes [start, stop) for writing at once, which takes a third of the time of a fault
  // for each page. Their contents stay. Advice only. Several threads may ask at once.
  void populate(size_t start, size_t stop) const noexcept;
  // The same, done for certain; of memory that nobody writes to meanwhile.
  void map(size_t start, size_t stop) const noexcept;
  // Gives the whole pages of such memory back, in any object of at least 256 KiB: what is there is lost, and
  // may be written anew.
  static void discard(void *data, size_t bytes) noexcept;
  void *data() const { return data_; }
  size_t bytes() const { return bytes_; }

private:
  void release() noexcept;

  void *data_ = nullptr;
  size_t bytes_ = 0;
  bool mapped_ = false;
  Pages pages_ = Pages::huge;
};

} // namespace bpe
