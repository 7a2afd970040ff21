// What the whole process may take, asked before memory is taken: a promise, where looking now and then finds
// out only afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe {

// The memory that the process takes now, in bytes; 0 where the system does not say. Some microseconds.
uint64_t resident_bytes() noexcept;

// Returns what malloc keeps of memory that was freed to the system, where malloc can do so.
void trim_memory() noexcept;

class MemoryLimit {
public:
  explicit MemoryLimit(uint64_t bytes = 0) : bytes_(bytes) {} // 0: no limit

  // Throws std::bad_alloc if the process, with so many bytes more, would take more than it may. What was
  // asked for before must have been written to by now, or it is not seen.
  void expect(uint64_t more_bytes) const;

private:
  // Pages are larger than what was asked for, and the threads' counts of them lag behind.
  static constexpr uint64_t spare_bytes = uint64_t{2} << 20;

  uint64_t bytes_;
};

} // namespace bpe
