// Pretokens with their counts, sorted as byte strings: the runs that a counter keeps and merges.
//
// A record has 24 bytes. Its first 16 compare like the pretokens:
//
//   up to 15 bytes   first = bytes 0-7, second = bytes 8-14 and the length, big-endian; value = the count
//   16 and more      first = bytes 0-7, second = bytes 8-14 and 0xFF; value = the address of a text
//
// A text contains the size, the count and the bytes of a long pretoken.
//
// Two short pretokens are equal if their 16 bytes are. For two long ones, the following bytes must be
// compared.
#pragma once

#include "train/pretoken_key.hpp"
#include "train/run_memory.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace bpe {

struct PretokenRecord {
  uint64_t first, second, value;

  unsigned __int128 key() const { return static_cast<unsigned __int128>(first) << 64 | second; }
  bool is_long() const { return (second & 0xFF) == 0xFF; }
  uint8_t *text() const { return reinterpret_cast<uint8_t *>(value); } // only for long pretokens
  uint64_t size() const { return is_long() ? load_word(text()) : second & 0xFF; }
  uint64_t count() const { return is_long() ? load_word(text() + 8) : value; }
};

// Before the bytes of a long pretoken: its size and its count.
inline constexpr size_t text_header_bytes = 16;
// Number of records for which another thread is worth starting.
inline constexpr size_t thread_records = size_t{1} << 16;

// Return whether a is less than b, both long with equal keys.
bool tail_is_less(const PretokenRecord &a, const PretokenRecord &b);

inline bool operator<(const PretokenRecord &a, const PretokenRecord &b) {
  const unsigned __int128 left = a.key(), right = b.key();
  return left != right ? left < right : a.is_long() && tail_is_less(a, b);
}

// Records in ascending order without duplicates, and the texts of long pretokens in the same order.
class SortedRun {
public:
  static constexpr size_t block_records = RunMemory::block_bytes / sizeof(PretokenRecord);

  SortedRun() = default;
  explicit SortedRun(RunMemory &memory) : memory_(&memory) {}
  ~SortedRun();
  SortedRun(SortedRun &&other) noexcept { swap(other); }
  SortedRun &operator=(SortedRun &&other) noexcept {
    swap(other);
    return *this;
  }

  size_t size() const { return size_; }
  uint64_t pretoken_bytes() const { return pretoken_bytes_; } // of all pretokens together
  const PretokenRecord &operator[](size_t i) const { return blocks_[i / block_records][i % block_records]; }
  // Records from i to the end of their block.
  const PretokenRecord *from(size_t i) const { return &(*this)[i]; }
  // Memory of records and texts, and the part of it for texts that are too long for a block.
  size_t memory_bytes() const { return size_ * sizeof(PretokenRecord) + text_bytes_; }
  size_t large_text_bytes() const { return large_text_bytes_; }

  // Add a pretoken greater than all others. Copies the text of a long one.
  void append(const PretokenRecord &record) { append(record, record.count()); }
  void append(const PretokenRecord &record, uint64_t count);
  // Add to the count of the last pretoken.
  void add_to_last(uint64_t count);

  // Release this block of records, which must not be read any more.
  void give_records(size_t block) {
    memory_->give(reinterpret_cast<uint8_t *>(std::exchange(blocks_[block], nullptr)));
  }
  // Return the block of texts, at or after `block`, that contains the text; give_texts() releases one.
  size_t text_block_of(const uint8_t *text, size_t block) const;
  void give_texts(size_t block);

private:
  struct TextBlock {
    uint8_t *data;
    size_t bytes;
    bool is_large; // allocated separately
  };

  void add_block();
  // Copy the text of a long pretoken and return its address.
  uint64_t add_text(const PretokenRecord &record, uint64_t count);
  uint8_t *text_room(size_t bytes);
  void swap(SortedRun &other) noexcept;

  RunMemory *memory_ = nullptr;
  size_t size_ = 0, text_left_ = 0, text_bytes_ = 0, large_text_bytes_ = 0;
  uint64_t pretoken_bytes_ = 0;
  uint8_t *text_next_ = nullptr;
  std::vector<PretokenRecord *> blocks_;
  std::vector<TextBlock> texts_;
};

inline void SortedRun::append(const PretokenRecord &record, uint64_t count) {
  const size_t place = size_ % block_records;
  if (place == 0)
    add_block();
  PretokenRecord &added = blocks_.back()[place];
  added = record;
  added.value = count;
  if (record.is_long()) [[unlikely]]
    added.value = add_text(record, count);
  pretoken_bytes_ += record.size();
  size_++;
}

inline void SortedRun::add_to_last(uint64_t count) {
  PretokenRecord &last = blocks_.back()[(size_ - 1) % block_records];
  if (!last.is_long()) {
    last.value += count;
    return;
  }
  count += last.count();
  std::memcpy(last.text() + 8, &count, 8);
}

// Converts the cells of tables to sorted runs, with a reused buffer.
class RunSorter {
public:
  // Return the run of the non-empty cells, `used` distinct ones in any order.
  SortedRun sorted(const std::vector<PretokenCell> &cells, size_t used, RunMemory &memory);

private:
  std::unique_ptr<PretokenRecord[]> records_, spare_;
  size_t room_ = 0;
};

// Return the sum of the runs, which are consumed, as runs that are each less than the next, using `threads`
// threads. Cost: two comparisons per record and doubling of the number of runs. Memory: the sum, and a few
// blocks per run and thread.
std::vector<SortedRun> merged_ranges(std::vector<SortedRun> &&runs, RunMemory &memory, unsigned threads);

// Pretoken i is bytes [i == 0 ? 0 : ends[i - 1], ends[i]). Pretokens are ascending as byte strings and
// distinct.
struct PretokenItems {
  size_t size = 0, byte_count = 0;
  PageMemory bytes, ends, counts; // uint8[byte_count], uint64[size], uint64[size]
};

// Convert runs that are each less than the next, and release their blocks during the conversion.
PretokenItems items_of(std::vector<SortedRun> &runs, unsigned threads);

} // namespace bpe
