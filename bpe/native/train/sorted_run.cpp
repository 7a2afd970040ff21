#include "train/sorted_run.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

namespace bpe {

bool tail_is_less(const PretokenRecord &a, const PretokenRecord &b) {
  const uint64_t size = load_word(a.text()), other_size = load_word(b.text());
  const int order =
      std::memcmp(a.text() + text_header_bytes, b.text() + text_header_bytes, std::min(size, other_size));
  return order != 0 ? order < 0 : size < other_size;
}

SortedRun::~SortedRun() {
  for (size_t block = 0; block < blocks_.size(); block++)
    if (blocks_[block] != nullptr)
      give_records(block);
  for (size_t block = 0; block < texts_.size(); block++)
    give_texts(block);
}

void SortedRun::swap(SortedRun &other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(text_left_, other.text_left_);
  std::swap(text_bytes_, other.text_bytes_);
  std::swap(large_text_bytes_, other.large_text_bytes_);
  std::swap(pretoken_bytes_, other.pretoken_bytes_);
  std::swap(text_next_, other.text_next_);
  blocks_.swap(other.blocks_);
  texts_.swap(other.texts_);
}

void SortedRun::add_block() {
  blocks_.push_back(nullptr);
  blocks_.back() = reinterpret_cast<PretokenRecord *>(memory_->take());
}

uint64_t SortedRun::add_text(const PretokenRecord &record, uint64_t count) {
  const uint64_t size = record.size();
  uint8_t *const text = text_room(text_header_bytes + size);
  std::memcpy(text, &size, 8);
  std::memcpy(text + 8, &count, 8);
  std::memcpy(text + text_header_bytes, record.text() + text_header_bytes, size);
  return reinterpret_cast<uintptr_t>(text);
}

uint8_t *SortedRun::text_room(size_t bytes) {
  text_bytes_ += bytes;
  if (bytes > RunMemory::block_bytes / 4) {
    std::unique_ptr<uint8_t[]> data(new uint8_t[bytes]);
    texts_.push_back({data.get(), bytes, true});
    large_text_bytes_ += bytes;
    text_left_ = 0; // texts stay in order
    return data.release();
  }
  if (bytes > text_left_) {
    texts_.push_back({nullptr, 0, false});
    texts_.back() = {memory_->take(), RunMemory::block_bytes, false};
    text_next_ = texts_.back().data;
    text_left_ = RunMemory::block_bytes;
  }
  text_left_ -= bytes;
  return std::exchange(text_next_, text_next_ + bytes);
}

size_t SortedRun::text_block_of(const uint8_t *text, size_t block) const {
  const auto holds = [&](const TextBlock &texts) {
    return std::less_equal<>()(texts.data, text) && std::less<>()(text, texts.data + texts.bytes);
  };
  while (!holds(texts_[block]))
    block++;
  return block;
}

void SortedRun::give_texts(size_t block) {
  const TextBlock texts = std::exchange(texts_[block], {nullptr, 0, false});
  if (texts.is_large)
    delete[] texts.data;
  else if (texts.data != nullptr)
    memory_->give(texts.data);
}

} // namespace bpe
