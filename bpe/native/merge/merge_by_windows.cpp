#include "merge/merge_by_windows.hpp"

#include <algorithm>
#include <stdexcept>

namespace bpe {

size_t WindowMerge::merge_window(const uint8_t *bytes, size_t size, uint32_t *symbols) {
  if (size <= max_rank_merge_bytes) {
    PretokenMerge merge{bytes, static_cast<uint32_t>(size), 0, symbols};
    merge_pretokens_(vocabulary_.merge_tables(), &merge, 1, scratch_);
    return merge.count;
  }
  const std::vector<uint32_t> &merged = heap_.merge(vocabulary_, bytes, size);
  std::copy(merged.begin(), merged.end(), symbols);
  return merged.size();
}

size_t WindowMerge::merge(const uint8_t *bytes, size_t size, uint32_t *symbols) {
  while (stop_ < size)
    extend(bytes, size, symbols);
  return count_;
}

void WindowMerge::extend(const uint8_t *bytes, size_t size, uint32_t *symbols) {
  for (;; overlap_bytes_ *= 4) {
    size_t kept = count_, start = stop_;
    while (kept > 0 && stop_ - start < overlap_bytes_)
      start -= length(symbols[--kept]);
    if (start == 0 && is_whole_) { // the window is the whole text so far
      stop_ = std::min(size, std::max(4 * stop_, window_bytes_));
      count_ = merge_window(bytes, stop_, symbols);
      return;
    }
    while (window_bytes_ < 2 * (stop_ - start))
      window_bytes_ *= 4;
    const size_t window_stop = start + std::min(size - start, window_bytes_);
    window_.resize(window_stop - start);
    const size_t window_count = merge_window(bytes + start, window_stop - start, window_.data()); // B

    // Find the first boundary after `start` that both have. The end of A is a boundary of A.
    const bool is_first = kept == 0;
    size_t in_window = 1, offset = start + length(window_[0]);
    size_t meeting = start + length(symbols[kept++]);
    while (offset != meeting && offset <= stop_) {
      if (offset < meeting)
        offset += length(window_[in_window++]);
      else
        meeting += length(symbols[kept++]);
    }
    if (offset == meeting) {
      std::copy(window_.begin() + static_cast<ptrdiff_t>(in_window),
                window_.begin() + static_cast<ptrdiff_t>(window_count), symbols + kept);
      count_ = kept + window_count - in_window;
      stop_ = window_stop;
      return;
    }
    if (is_first)
      throw std::length_error("merges span more than " + std::to_string(stop_) +
                              " bytes of one pretoken; split it with spaces or line breaks");
  }
}

void WindowMerge::forget(size_t symbols, size_t bytes) {
  count_ -= symbols;
  stop_ -= bytes;
  is_whole_ &= symbols == 0;
}

void StreamedMerge::add(std::string_view bytes, TokenBuffer &ids) {
  bytes_ += bytes;
  extend(window_bytes_);
  settle(merge_.stop() - std::min(merge_.stop(), kept_bytes_), ids);
}

void StreamedMerge::finish(TokenBuffer &ids) {
  extend(1);
  settle(bytes_.size(), ids);
}

// Merge until less than waiting_bytes are left.
void StreamedMerge::extend(size_t waiting_bytes) {
  symbols_.resize(std::max(symbols_.size(), bytes_.size()));
  while (bytes_.size() - merge_.stop() >= waiting_bytes)
    merge_.extend(reinterpret_cast<const uint8_t *>(bytes_.data()), bytes_.size(), symbols_.data());
}

// Append the symbols that end at or before `stop`.
void StreamedMerge::settle(size_t stop, TokenBuffer &ids) {
  size_t count = 0, size = 0;
  for (; count < merge_.count(); ++count) {
    const size_t length = vocabulary_.text_size(symbols_[count]);
    if (size + length > stop)
      break;
    size += length;
  }
  uint32_t *const out = ids.room(count);
  std::copy_n(symbols_.data(), count, out);
  ids.set_end(out + vocabulary_.to_ids(out, count));
  std::copy(symbols_.data() + count, symbols_.data() + merge_.count(), symbols_.data());
  bytes_.erase(0, size);
  merge_.forget(count, size);
}

} // namespace bpe
