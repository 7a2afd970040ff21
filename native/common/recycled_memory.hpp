// A pool that keeps the memory of dropped results for new results.
//
// Fresh pages dominate the cost of a new result: on a virtual machine, a page fault takes a large part of the
// time needed to encode a page of IDs. The memory of a dropped array is therefore kept, and the next result
// is written into it. At most max_recycled_bytes are kept, and the oldest are freed first. Pages are not
// marked as free (MADV_FREE): on virtual machines, the first write to a marked page costs nearly as much as a
// fresh page.
//
// Thread-safe. A call that would have to wait for the lock allocates new memory or frees it at once instead.
#pragma once

#include "common/page_memory.hpp"

#include <cstddef>

namespace bpe {

inline constexpr size_t min_recycled_bytes = size_t{1} << 20;
inline constexpr size_t max_recycled_bytes = size_t{256} << 20;

struct RecycledMemory {
  PageMemory memory;
  size_t known_bytes; // leading bytes with mapped pages, which need no populate()
};

// Return at least `bytes` of memory with arbitrary contents: recycled memory of at most `bytes`, grown if
// needed, or new memory. Throws std::bad_alloc.
RecycledMemory take_recycled(size_t bytes);

// Keep the memory, which must have been written completely, if it is large enough; otherwise return it to the
// system.
void recycle(PageMemory memory) noexcept;

} // namespace bpe
