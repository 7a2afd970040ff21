// What the whole process may take, asked before memory is taken: a promise, where looking now and then finds
// out only afterwards.
#pragma once

#include "common/page_memory.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// The memory that the process takes now, in bytes; 0 where the system does not say. Some microseconds.
uint64_t resident_bytes() noexcept;

// Returns what malloc keeps of memory that was freed to the system, where malloc can do so.
void trim_memory() noexcept;

// From now on malloc returns all that is large to the system as soon as it is freed, where it can do so.
// Otherwise it raises that bound to the largest block freed so far, and keeps what is below.
void return_large_memory() noexcept;

class MemoryLimit {
public:
  explicit MemoryLimit(uint64_t bytes = 0) : bytes_(bytes) {} // 0: no limit

  // Throws std::bad_alloc if the process, with so many bytes more, would take more than it may. What was
  // asked for before must have been written to by now, or be owed, or it is not seen.
  void expect(uint64_t more_bytes) const;
  bool has_room(uint64_t more_bytes) const noexcept;

  // The same for memory that is written to later: expected by everyone until it is settled.
  void owe(uint64_t bytes) const {
    expect(bytes);
    owed_bytes_ += bytes;
  }
  void settle(uint64_t bytes) const { owed_bytes_ -= bytes < owed_bytes_ ? bytes : owed_bytes_; }

  // Memory of so many bytes, all of it mapped before the next one asks, from whatever thread.
  PageMemory take(size_t bytes) const;

private:
  // Pages are larger than what was asked for, and the threads' counts of them lag behind.
  static constexpr uint64_t spare_bytes = uint64_t{3} << 20;

  uint64_t bytes_;
  mutable uint64_t owed_bytes_ = 0; // changed while no other thread asks
};

} // namespace bpe
