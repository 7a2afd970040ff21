#include "common/page_memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

// ThreadSanitizer does not follow mremap: it reports a race when another thread maps an address that mremap
// released.
#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
#define BPE_MAPS_PAGES 1
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace bpe {

#if defined(BPE_MAPS_PAGES)

namespace {

// Below this size, malloc is faster than a system call and its page faults.
constexpr size_t mapped_bytes_at_least = 256 << 10;

// arm64 also has pages larger than 4 KiB
const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
constexpr size_t huge_page_bytes = 2 << 20;
constexpr size_t huge_bytes_at_least = 4 << 20;

// Memory in huge pages uses whole huge pages, so that the system can align and move them.
size_t whole_pages(size_t bytes) {
  const size_t unit = bytes >= huge_bytes_at_least ? huge_page_bytes : page_bytes;
  return (bytes + unit - 1) / unit * unit;
}

} // namespace

#endif

void PageMemory::resize(size_t bytes) {
  if (bytes == 0)
    return release();
#if defined(BPE_MAPS_PAGES)
  if (mapped_ && whole_pages(bytes) == whole_pages(bytes_)) {
    bytes_ = bytes;
    return;
  }
  if (mapped_ || bytes >= mapped_bytes_at_least) {
    void *const data = mapped_ ? mremap(data_, whole_pages(bytes_), whole_pages(bytes), MREMAP_MAYMOVE)
                               : mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      throw std::bad_alloc();
    // Huge pages cause fewer page faults and TLB misses. This is only advice, so a refusal is not an error.
    if (bytes > bytes_ && bytes >= huge_bytes_at_least && pages_ == Pages::huge)
      (void)madvise(data, whole_pages(bytes), MADV_HUGEPAGE);
    if (!mapped_ && bytes_ > 0)
      std::memcpy(data, data_, bytes_);
    if (!mapped_)
      std::free(data_);
    data_ = data;
    bytes_ = bytes;
    mapped_ = true;
    return;
  }
#endif
  void *const data = data_ ? std::realloc(data_, bytes) : std::calloc(bytes, 1);
  if (!data)
    throw std::bad_alloc();
  data_ = data;
  bytes_ = bytes;
}

void PageMemory::discard([[maybe_unused]] void *data, [[maybe_unused]] size_t bytes) noexcept {
#if defined(BPE_MAPS_PAGES)
  const uintptr_t start = (reinterpret_cast<uintptr_t>(data) + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t stop = (reinterpret_cast<uintptr_t>(data) + bytes) / page_bytes * page_bytes;
  if (start < stop)
    (void)madvise(reinterpret_cast<void *>(start), stop - start, MADV_DONTNEED);
#endif
}

void PageMemory::populate([[maybe_unused]] size_t start, [[maybe_unused]] size_t stop) const noexcept {
#if defined(BPE_MAPS_PAGES) && defined(MADV_POPULATE_WRITE) // since Linux 5.14
  start = start / page_bytes * page_bytes;
  if (mapped_ && start < stop)
    (void)madvise(static_cast<uint8_t *>(data_) + start, stop - start, MADV_POPULATE_WRITE);
#endif
}

void PageMemory::release() noexcept {
#if defined(BPE_MAPS_PAGES)
  if (mapped_)
    (void)munmap(std::exchange(data_, nullptr), whole_pages(bytes_));
#endif
  std::free(data_);
  data_ = nullptr;
  bytes_ = 0;
  mapped_ = false;
}

void PageMemory::map(size_t start, size_t stop) const noexcept {
  populate(start, stop);
  constexpr size_t smallest_page_bytes = 4096;
  for (size_t at = start; at < stop; at += smallest_page_bytes) {
    volatile uint8_t *const byte = static_cast<uint8_t *>(data_) + at;
    *byte = *byte;
  }
}

} // namespace bpe
