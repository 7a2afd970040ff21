#include "common/recycled_memory.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace bpe {

namespace {

struct Kept {
  std::mutex mutex;
  std::vector<PageMemory> memories; // oldest first
  size_t bytes = 0;
};

// Never destroyed, since arrays may still be dropped while the process exits.
Kept &kept() {
  static Kept *const the_one = new Kept;
  return *the_one;
}

} // namespace

RecycledMemory take_recycled(size_t bytes) {
  PageMemory memory(0, PageMemory::Pages::small);
  Kept &pool = kept();
  if (std::unique_lock lock(pool.mutex, std::try_to_lock); lock) {
    // Choose the largest that fits: the requested size is an upper bound, several times the size used.
    auto best = pool.memories.end();
    for (auto it = pool.memories.begin(); it != pool.memories.end(); ++it)
      if (it->bytes() <= bytes && (best == pool.memories.end() || it->bytes() > best->bytes()))
        best = it;
    if (best != pool.memories.end()) {
      memory = std::move(*best);
      pool.memories.erase(best);
      pool.bytes -= memory.bytes();
    }
  }
  const size_t known_bytes = memory.bytes();
  memory.resize(bytes);
  return {std::move(memory), known_bytes};
}

void recycle(PageMemory memory) noexcept {
  if (memory.bytes() < min_recycled_bytes || memory.bytes() > max_recycled_bytes)
    return;
  std::vector<PageMemory> oldest; // freed after the lock is released
  Kept &pool = kept();
  const std::unique_lock lock(pool.mutex, std::try_to_lock);
  if (!lock)
    return;
  try {
    pool.memories.reserve(pool.memories.size() + 1);
    while (pool.bytes + memory.bytes() > max_recycled_bytes) {
      pool.bytes -= pool.memories.front().bytes();
      oldest.push_back(std::move(pool.memories.front()));
      pool.memories.erase(pool.memories.begin());
    }
    pool.bytes += memory.bytes();
    pool.memories.push_back(std::move(memory));
  } catch (const std::bad_alloc &) { // the memory is freed instead
  }
}

} // namespace bpe
