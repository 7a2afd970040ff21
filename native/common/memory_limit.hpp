// A memory limit for the whole process. It is checked before each allocation, because periodic sampling would
// notice an excess only afterwards.
#pragma once

#include "common/page_memory.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

// Return the resident memory of the process in bytes, or 0 if the system does not report it. Takes a few
// microseconds.
uint64_t resident_bytes() noexcept;

// Return freed memory that malloc still holds to the system, if malloc supports it.
void trim_memory() noexcept;

// Make malloc return freed large blocks to the system immediately, if it supports this. By default,
// malloc raises the threshold for large blocks to the largest block freed so far and keeps smaller blocks.
void return_large_memory() noexcept;

class MemoryLimit {
public:
  explicit MemoryLimit(uint64_t bytes = 0) : bytes_(bytes) {} // 0: no limit

  // Throw std::bad_alloc if `more_bytes` would take the process over the limit. Earlier allocations are
  // counted only once they have been written to or passed to owe().
  void expect(uint64_t more_bytes) const;
  bool has_room(uint64_t more_bytes) const noexcept;

  // Count memory that will be written later: expect() includes it until it is settled.
  void owe(uint64_t bytes) const {
    expect(bytes);
    owed_bytes_ += bytes;
  }
  void settle(uint64_t bytes) const { owed_bytes_ -= bytes < owed_bytes_ ? bytes : owed_bytes_; }

  // Allocate `bytes` of memory and map all of it before the next caller, on any thread, is checked.
  PageMemory take(size_t bytes) const;

private:
  // Margin for page rounding and for per-thread page counters that lag.
  static constexpr uint64_t spare_bytes = uint64_t{3} << 20;

  uint64_t bytes_;
  mutable uint64_t owed_bytes_ = 0; // changed only while no other thread calls expect()
};

} // namespace bpe
