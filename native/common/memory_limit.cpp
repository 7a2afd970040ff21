#include "common/memory_limit.hpp"

#include <mutex>
#include <new>

#if defined(__linux__)
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace bpe {

uint64_t resident_bytes() noexcept {
#if defined(__linux__)
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  char text[128];
  const ssize_t size = read(file, text, sizeof text);
  (void)close(file);
  const char *const stop = text + (size > 0 ? size : 0);
  const char *const space =
      static_cast<const char *>(std::memchr(text, ' ', static_cast<size_t>(stop - text)));
  uint64_t pages = 0; // the second number of the file
  if (!space || std::from_chars(space + 1, stop, pages).ec != std::errc())
    return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

void trim_memory() noexcept {
#if defined(__GLIBC__)
  (void)malloc_trim(0);
#endif
}

void return_large_memory() noexcept {
#if defined(__GLIBC__)
  constexpr int large_bytes = 1 << 20;
  (void)mallopt(M_MMAP_THRESHOLD, large_bytes);
  (void)mallopt(M_TRIM_THRESHOLD, large_bytes);
#endif
}

bool MemoryLimit::has_room(uint64_t more_bytes) const noexcept {
  return bytes_ == 0 || resident_bytes() + owed_bytes_ + more_bytes + spare_bytes <= bytes_;
}

void MemoryLimit::expect(uint64_t more_bytes) const {
  if (!has_room(more_bytes))
    throw std::bad_alloc();
}

PageMemory MemoryLimit::take(size_t bytes) const {
  if (bytes_ == 0)
    return PageMemory(bytes);
  static std::mutex taking;
  std::lock_guard lock(taking);
  expect(bytes);
  PageMemory memory(bytes);
  memory.map(0, bytes);
  return memory;
}

} // namespace bpe
