// A library to preload that makes the n-th allocation of certain shared libraries fail.
//
// It counts calls of operator new, malloc and related functions, and mmap of memory, from the code of
// libraries with ALLOCATIONS_OF or ALLOCATIONS_OF_TOO in their paths. All processes of a job share the
// counter, which is the mapped file ALLOCATIONS_COUNTER:
//
//   int64 count       allocations so far
//   int64 fail_at     the allocation that fails, from 1; 0 for none
//   int64 fail_count  the number of allocations that fail in a row
//   int64 failed      the number of allocations that failed
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

struct Shared {
  std::atomic<int64_t> count, fail_at, fail_count, failed;
};

static Shared *shared;
struct Library {
  const char *name;
  std::atomic<uintptr_t> first_byte, last_byte; // of its code
};

static Library libraries[2];
static thread_local bool looking;

static void *(*next_malloc)(size_t), *(*next_calloc)(size_t, size_t), *(*next_realloc)(void *, size_t);
static void *(*next_aligned_alloc)(size_t, size_t), *(*next_mmap)(void *, size_t, int, int, int, off_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);
// Memory that dlsym allocates before it returns.
static char early[1 << 14];
static size_t early_used;
static bool resolving;

template <class Function> static void find_next(Function &function, const char *name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

static void resolve() {
  resolving = true;
  find_next(next_free, "free");
  find_next(next_calloc, "calloc");
  find_next(next_realloc, "realloc");
  find_next(next_aligned_alloc, "aligned_alloc");
  find_next(next_posix_memalign, "posix_memalign");
  find_next(next_mmap, "mmap");
  find_next(next_malloc, "malloc");
  resolving = false;
}

static void *from_early(size_t size) {
  void *memory = early + early_used;
  early_used += (size + 15) / 16 * 16;
  return early_used <= sizeof early ? memory : nullptr;
}

__attribute__((constructor)) static void begin() {
  if (!next_malloc)
    resolve();
  const char *counter = getenv("ALLOCATIONS_COUNTER");
  const char *name = getenv("ALLOCATIONS_OF"), *other = getenv("ALLOCATIONS_OF_TOO");
  const int fd = counter ? open(counter, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0 || !name || !other)
    return;
  void *memory = next_mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory != MAP_FAILED) {
    libraries[0].name = name;
    libraries[1].name = other;
    shared = static_cast<Shared *>(memory);
  }
}

static int look(dl_phdr_info *info, size_t, void *) {
  for (Library &library : libraries)
    if (info->dlpi_name && strstr(info->dlpi_name, library.name))
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *const header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X)) {
          library.first_byte = info->dlpi_addr + header->p_vaddr;
          library.last_byte = library.first_byte + header->p_memsz;
        }
      }
  return 0;
}

// Whether this allocation is to fail.
static bool fails(const void *caller) {
  if (!shared || looking)
    return false;
  if (!libraries[0].first_byte || !libraries[1].first_byte) { // they may not be loaded yet
    static std::atomic<int> asked;
    if (asked.fetch_add(1) % 64 != 0)
      return false;
    looking = true;
    dl_iterate_phdr(look, nullptr);
    looking = false;
  }
  const uintptr_t address = reinterpret_cast<uintptr_t>(caller);
  const auto is_caller = [&](const Library &library) {
    return address >= library.first_byte && address < library.last_byte;
  };
  if (!is_caller(libraries[0]) && !is_caller(libraries[1]))
    return false;
  const int64_t number = shared->count.fetch_add(1) + 1, at = shared->fail_at;
  if (at == 0 || number < at || number >= at + shared->fail_count)
    return false;
  ++shared->failed;
  errno = ENOMEM;
  return true;
}

#define CALLER __builtin_return_address(0)

extern "C" {
void *malloc(size_t size) noexcept {
  if (resolving)
    return from_early(size);
  if (!next_malloc)
    resolve();
  return fails(CALLER) ? nullptr : next_malloc(size);
}

void *calloc(size_t count, size_t size) noexcept {
  if (resolving)
    return from_early(count * size);
  if (!next_malloc)
    resolve();
  return fails(CALLER) ? nullptr : next_calloc(count, size);
}

void free(void *memory) noexcept {
  if (static_cast<char *>(memory) >= early && static_cast<char *>(memory) < early + sizeof early)
    return;
  if (!next_malloc)
    resolve();
  next_free(memory);
}

void *realloc(void *memory, size_t size) noexcept {
  if (!next_malloc)
    resolve();
  return fails(CALLER) ? nullptr : next_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) noexcept {
  if (!next_malloc)
    resolve();
  return fails(CALLER) ? nullptr : next_aligned_alloc(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) noexcept {
  if (!next_malloc)
    resolve();
  return fails(CALLER) ? ENOMEM : next_posix_memalign(memory, alignment, size);
}

void *mmap(void *place, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (!next_malloc)
    resolve();
  return fails(CALLER) ? MAP_FAILED : next_mmap(place, size, protection, flags, fd, offset);
}
}

// operator new is replaced whole: libstdc++, loaded with the library, is not in the scope that dlsym
// searches.
static void *allocate(size_t size, const void *caller) {
  if (!next_malloc)
    resolve();
  return fails(caller) ? nullptr : next_malloc(size > 0 ? size : 1);
}

static void *or_throw(void *memory) {
  if (!memory)
    throw std::bad_alloc();
  return memory;
}

void *operator new(size_t size) {
  return or_throw(allocate(size, CALLER));
}
void *operator new[](size_t size) {
  return or_throw(allocate(size, CALLER));
}
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return allocate(size, CALLER);
}
void *operator new[](size_t size, const std::nothrow_t &) noexcept {
  return allocate(size, CALLER);
}
void *operator new(size_t size, std::align_val_t alignment) {
  const size_t to = static_cast<size_t>(alignment);
  return or_throw(fails(CALLER) ? nullptr : next_aligned_alloc(to, (size + to - 1) / to * to));
}
void operator delete(void *memory) noexcept {
  free(memory);
}
void operator delete[](void *memory) noexcept {
  free(memory);
}
void operator delete(void *memory, size_t) noexcept {
  free(memory);
}
void operator delete[](void *memory, size_t) noexcept {
  free(memory);
}
void operator delete(void *memory, std::align_val_t) noexcept {
  free(memory);
}
void operator delete(void *memory, size_t, std::align_val_t) noexcept {
  free(memory);
}
