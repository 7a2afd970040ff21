// Memory for sorted runs, in reused blocks: a merge writes into the blocks it has read.
//
// Allocated in larger pieces, in huge pages where available, and released only by give_back_free() or the
// destructor: reused pages are several times as fast as fresh ones.
#pragma once

#include "common/page_memory.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace bpe {

class RunMemory {
public:
  static constexpr size_t block_bytes = size_t{256} << 10;

  // Return a block with arbitrary contents, valid until give() or the end of this object.
  uint8_t *take() {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      uint8_t *const block = free_.back();
      free_.pop_back();
      return block;
    }
    if (fresh_ == fresh_stop_) {
      free_.reserve((pieces_.size() + 1) * piece_blocks); // so that give() has room
      pieces_.emplace_back(piece_blocks * block_bytes);
      fresh_ = static_cast<uint8_t *>(pieces_.back().data());
      fresh_stop_ = fresh_ + piece_blocks * block_bytes;
    }
    resident_blocks_++;
    return std::exchange(fresh_, fresh_ + block_bytes);
  }
  void give(uint8_t *block) noexcept {
    std::lock_guard lock(mutex_);
    if (give_back_)
      discard(block);
    free_.push_back(block);
  }

  // Release the memory of free blocks, now and in future.
  void give_back_free() {
    std::lock_guard lock(mutex_);
    for (uint8_t *block : free_)
      discard(block);
    give_back_ = true;
  }
  size_t memory_bytes() {
    std::lock_guard lock(mutex_);
    return resident_blocks_ * block_bytes;
  }
  // All blocks must have been returned.
  void clear() {
    std::lock_guard lock(mutex_);
    free_.clear();
    pieces_.clear();
    fresh_ = fresh_stop_ = nullptr;
    resident_blocks_ = 0;
    give_back_ = false;
  }

private:
  static constexpr size_t piece_blocks = 16; // 4 MiB; pages become resident when used

  static void discard(uint8_t *block) noexcept { PageMemory::discard(block, block_bytes); }

  std::mutex mutex_;
  std::vector<PageMemory> pieces_;
  std::vector<uint8_t *> free_;
  uint8_t *fresh_ = nullptr, *fresh_stop_ = nullptr;
  size_t resident_blocks_ = 0;
  bool give_back_ = false;
};

} // namespace bpe
