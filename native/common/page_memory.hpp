// Memory for large arrays. It is zeroed, and pages are mapped only when touched. Arrays with random access
// use huge pages where the system has them. Arrays written once from start to end do not need them.
//
// Growing keeps the contents and copies nothing on Linux, where the pages move to another address. On other
// systems, and below 256 KiB, PageMemory uses calloc and realloc.
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

  // Resize and keep the contents up to the smaller size. Added bytes are zero only if they were never mapped
  // before. If this throws std::bad_alloc, nothing changes.
  void resize(size_t bytes);
  // Ask the system to map bytes [start, stop) for writing in one call, which takes a third of the time of one
  // fault per page. Contents are kept. This is only advice. Thread-safe.
  void populate(size_t start, size_t stop) const noexcept;
  // Map bytes [start, stop) even where populate is not supported. No other thread may write to them during
  // the call.
  void map(size_t start, size_t stop) const noexcept;
  // Return the whole pages of PageMemory to the system. `data` may be any object of at least 256 KiB in it.
  // The contents are lost, and the memory may be written again.
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
