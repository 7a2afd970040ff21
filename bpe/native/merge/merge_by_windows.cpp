#include "merge/merge_by_windows.hpp"

#include <algorithm>

namespace bpe {

namespace {

// Twice the longest entries of usual vocabularies, runs of spaces; words meet again after a few bytes.
constexpr size_t first_overlap_bytes = 256;

} // namespace

size_t WindowMerge::merge_window(const uint8_t *bytes, size_t size, uint32_t *symbols) {
  if (size <= max_rank_merge_bytes)
    return merge_long_pretoken_(vocabulary_.merge_tables(), bytes, size, rank_scratch_, symbols);
  const std::vector<uint32_t> &merged = heap_.merge(vocabulary_, bytes, size);
  std::copy(merged.begin(), merged.end(), symbols);
  return merged.size();
}

size_t WindowMerge::merge(const uint8_t *bytes, size_t size, uint32_t *symbols) {
  size_t window_bytes = max_rank_merge_bytes, overlap_bytes = first_overlap_bytes;
  size_t stop = std::min(size, window_bytes);
  size_t count = merge_window(bytes, stop, symbols); // symbols[0, count) are bytes[0, stop) merged: A
  while (stop < size) {
    size_t kept = count, start = stop;
    while (kept > 0 && stop - start < overlap_bytes)
      start -= length(symbols[--kept]);
    if (start == 0) { // the window is all there is so far
      stop = std::min(size, 4 * stop);
      count = merge_window(bytes, stop, symbols);
      continue;
    }
    while (window_bytes < 2 * (stop - start))
      window_bytes *= 4;
    const size_t window_stop = start + std::min(size - start, window_bytes);
    window_.resize(window_stop - start);
    const size_t window_count = merge_window(bytes + start, window_stop - start, window_.data()); // B

    // The first border behind `start` that both have; the end of A is one of A's.
    size_t in_window = 1, place = start + length(window_[0]);
    size_t meeting = start + length(symbols[kept++]);
    while (place != meeting && place <= stop) {
      if (place < meeting)
        place += length(window_[in_window++]);
      else
        meeting += length(symbols[kept++]);
    }
    if (place != meeting) {
      overlap_bytes *= 4;
      continue;
    }
    std::copy(window_.begin() + static_cast<ptrdiff_t>(in_window),
              window_.begin() + static_cast<ptrdiff_t>(window_count), symbols + kept);
    count = kept + window_count - in_window;
    stop = window_stop;
  }
  return count;
}

} // namespace bpe
