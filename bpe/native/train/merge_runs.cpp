#include "train/sorted_run.hpp"

#include "common/thread_team.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace bpe {
namespace {

using Key = unsigned __int128;

// The remaining records [start, stop) of a run. Blocks that have been read completely are released.
class Slice {
public:
  Slice(SortedRun &run, size_t start, size_t stop) : run_(&run), start_(start), at_(start), stop_(stop) {
    load();
  }

  bool is_empty() const { return next_ == limit_; }
  const PretokenRecord &next() const { return *next_; }
  void advance() {
    if (next_->is_long()) [[unlikely]]
      give_texts_before(next_->text());
    if (++next_ == limit_) {
      at_ = load_stop_;
      const size_t block = (at_ - 1) / SortedRun::block_records;
      // The slice shares the last block with other slices, which may still need the rest.
      if (at_ % SortedRun::block_records == 0 && block * SortedRun::block_records >= start_)
        run_->give_records(block);
      load();
    }
  }

private:
  void load() {
    next_ = limit_ = nullptr;
    if (at_ == stop_)
      return;
    load_stop_ = std::min(stop_, (at_ / SortedRun::block_records + 1) * SortedRun::block_records);
    next_ = run_->from(at_);
    limit_ = next_ + (load_stop_ - at_);
  }
  void give_texts_before(const uint8_t *text) {
    const size_t block = run_->text_block_of(text, text_block_);
    if (block == text_block_ && has_texts_)
      return;
    // Other slices may need the first block; the following blocks contain only records that were read.
    if (has_texts_)
      for (size_t i = text_block_; i < block; i++)
        if (i > first_text_block_)
          run_->give_texts(i);
    if (!has_texts_)
      first_text_block_ = block;
    has_texts_ = true;
    text_block_ = block;
  }

  SortedRun *run_;
  size_t start_, at_, stop_, load_stop_ = 0; // at_: where the loaded records start
  const PretokenRecord *next_ = nullptr, *limit_ = nullptr;
  size_t text_block_ = 0, first_text_block_ = 0;
  bool has_texts_ = false;
};

bool is_same(const PretokenRecord &a, const PretokenRecord &b) {
  return a.key() == b.key() &&
         (!a.is_long() || (a.size() == b.size() && std::memcmp(a.text() + text_header_bytes,
                                                               b.text() + text_header_bytes, a.size()) == 0));
}

bool is_later(const Slice *a, const Slice *b) {
  return b->next() < a->next();
}

// Restore the heap after its first slice has moved to the next record. One pass costs half of pop_heap and
// push_heap.
void sift_down(std::vector<Slice *> &heap) {
  Slice *const moved = heap[0];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < heap.size(); at = child) {
    if (child + 1 < heap.size() && is_later(heap[child], heap[child + 1]))
      child++;
    if (!is_later(moved, heap[child]))
      break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

// Return the sum of slices. No slice may be empty.
SortedRun merged_slices(std::vector<Slice> &slices, RunMemory &memory) {
  std::vector<Slice *> heap; // the slice with the least next record first
  for (Slice &slice : slices)
    heap.push_back(&slice);
  std::make_heap(heap.begin(), heap.end(), is_later);
  SortedRun merged(memory);
  while (!heap.empty()) {
    const PretokenRecord &record = heap[0]->next();
    if (merged.size() > 0 && is_same(merged[merged.size() - 1], record))
      merged.add_to_last(record.count());
    else
      merged.append(record);
    heap[0]->advance();
    if (heap[0]->is_empty()) {
      heap[0] = heap.back();
      heap.pop_back();
    }
    if (!heap.empty())
      sift_down(heap);
  }
  return merged;
}

// Return the index of the first record with a key that is not less.
size_t first_at_least(const SortedRun &run, Key key) {
  size_t start = 0, stop = run.size();
  while (start < stop) {
    const size_t middle = start + (stop - start) / 2;
    if (run[middle].key() < key)
      start = middle + 1;
    else
      stop = middle;
  }
  return start;
}

// Return keys that cut the runs into ranges of similar size.
std::vector<Key> splitters(const std::vector<SortedRun> &runs, size_t records, size_t ranges) {
  std::vector<Key> sample;
  const size_t step = records / (ranges * 64) + 1;
  size_t at = step / 2; // continues from one run to the next, so that small runs count in proportion
  for (const SortedRun &run : runs) {
    for (; at < run.size(); at += step)
      sample.push_back(run[at].key());
    at -= run.size();
  }
  std::sort(sample.begin(), sample.end());
  std::vector<Key> keys;
  for (size_t range = 1; range < ranges && !sample.empty(); range++)
    keys.push_back(sample[range * sample.size() / ranges]);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

} // namespace

std::vector<SortedRun> merged_ranges(std::vector<SortedRun> &&inputs, RunMemory &memory, unsigned threads) {
  std::vector<SortedRun> runs = std::move(inputs);
  size_t records = 0;
  for (const SortedRun &run : runs)
    records += run.size();
  threads = static_cast<unsigned>(std::min<size_t>(threads, records / thread_records + 1));
  const std::vector<Key> keys = splitters(runs, records, threads > 1 ? 4 * threads : 1);
  // Look these up before any block is released.
  std::vector<std::vector<Slice>> slices(keys.size() + 1);
  for (SortedRun &run : runs) {
    size_t start = 0;
    for (size_t range = 0; range < slices.size(); range++) {
      const size_t stop = range == keys.size() ? run.size() : first_at_least(run, keys[range]);
      if (start < stop)
        slices[range].emplace_back(run, start, stop);
      start = stop;
    }
  }
  std::vector<SortedRun> merged(slices.size());
  std::atomic<size_t> taken{0};
  ThreadTeam(threads).run([&](unsigned) {
    for (size_t range = taken++; range < merged.size(); range = taken++)
      merged[range] = merged_slices(slices[range], memory);
  });
  return merged;
}

} // namespace bpe
