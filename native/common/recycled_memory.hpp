// Memory of results that were dropped, kept for the next ones.
//
// Pages new to a process are what a fresh result costs: on a virtual machine a page fault takes a good part
// of the time in which a page of ids is encoded. So a large array's memory is kept when the array goes, and
// the next result is written into it. At most max_recycled_bytes are kept, the oldest go first. They are not
// marked as free to the system (MADV_FREE): where it runs under another one, the first write to each page so
// marked costs nearly what a fresh page does.
//
// Any thread may call. A call that would have to wait does without: memory is then had anew, or given back at
// once.
#pragma once

#include "common/page_memory.hpp"

#include <cstddef>

namespace bpe {

inline constexpr size_t min_recycled_bytes = size_t{1} << 20;
inline constexpr size_t max_recycled_bytes = size_t{256} << 20;

struct RecycledMemory {
  PageMemory memory;
  size_t known_bytes; // from its start on, whose pages are there: not to be asked for again
};

// At least `bytes`, with anything in it: kept memory if there is some of no more than `bytes`, grown, else
// new. Throws std::bad_alloc.
RecycledMemory take_recycled(size_t bytes);

// Keeps the memory, all of which has been written, if it is large enough to be worth it; otherwise the system
// gets it back.
void recycle(PageMemory memory) noexcept;

} // namespace bpe
