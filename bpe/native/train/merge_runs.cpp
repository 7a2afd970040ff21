#include "train/merge_runs.hpp"

#include "common/thread_team.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace bpe {
namespace {

using Key = unsigned __int128;

// Number of records in a range of a shared merge.
constexpr size_t range_records = size_t{1} << 19;

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

// Find the least record of many slices with a loser tree: one comparison per level to replace the least.
// Comparisons are unpredictable, so none of them is a branch.
class Tournament {
public:
  explicit Tournament(std::vector<Slice> &slices) : slices_(slices) {
    while (leaves_ < slices.size())
      leaves_ *= 2;
    for (std::vector<uint64_t> *losers : {&first_, &second_, &slice_})
      losers->resize(leaves_);
    winner_ = play(1);
  }

  bool is_done() const { return ended(winner_.slice); }
  const PretokenRecord &least() const { return slices_[winner_.slice].next(); }
  void advance() {
    slices_[winner_.slice].advance();
    Player best = player(winner_.slice);
    for (size_t node = (leaves_ + best.slice) / 2; node > 0; node /= 2) {
      const Player loser = at(node);
      uint64_t swapped = 0 - static_cast<uint64_t>(loser.key() < best.key());
      if (best.second == loser.second && (best.second & 0xFF) == 0xFF) [[unlikely]]
        swapped = 0 - static_cast<uint64_t>(less(loser, best));
      exchange(first_[node], best.first, swapped);
      exchange(second_[node], best.second, swapped);
      exchange(slice_[node], best.slice, swapped);
    }
    winner_ = best;
  }

private:
  struct Player {
    uint64_t first, second,
        slice; // the key of the slice's next record, or the highest key if there is none
    Key key() const { return static_cast<Key>(first) << 64 | second; }
  };

  static void exchange(uint64_t &a, uint64_t &b, uint64_t mask) {
    const uint64_t difference = (a ^ b) & mask;
    a ^= difference;
    b ^= difference;
  }
  Player at(size_t node) const { return {first_[node], second_[node], slice_[node]}; }
  bool ended(size_t i) const { return i >= slices_.size() || slices_[i].is_empty(); }
  Player player(size_t i) const {
    if (ended(i))
      return {~uint64_t{0}, ~uint64_t{0}, i};
    return {slices_[i].next().first, slices_[i].next().second, i};
  }
  // Equal short pretokens may be in either order.
  bool less(const Player &a, const Player &b) const {
    if (a.key() != b.key())
      return a.key() < b.key();
    if (ended(a.slice) || ended(b.slice))
      return !ended(a.slice);
    return slices_[a.slice].next() < slices_[b.slice].next();
  }
  Player play(size_t node) {
    if (node >= leaves_)
      return player(node - leaves_);
    const Player left = play(2 * node), right = play(2 * node + 1);
    const bool right_wins = less(right, left);
    const Player &loser = right_wins ? left : right;
    first_[node] = loser.first;
    second_[node] = loser.second;
    slice_[node] = loser.slice;
    return right_wins ? right : left;
  }

  std::vector<Slice> &slices_;
  size_t leaves_ = 1;
  Player winner_;
  // The losers by node; 0 is unused. Separate arrays, since the compiler would move a struct through vector
  // registers, which is slower.
  std::vector<uint64_t> first_, second_, slice_;
};

bool is_same(const PretokenRecord &a, const PretokenRecord &b) {
  return a.key() == b.key() &&
         (!a.is_long() || (a.size() == b.size() && std::memcmp(a.text() + text_header_bytes,
                                                               b.text() + text_header_bytes, a.size()) == 0));
}

SortedRun merged_slices(std::vector<Slice> &slices, RunMemory &memory) {
  SortedRun merged(memory);
  for (Tournament tournament(slices); !tournament.is_done(); tournament.advance()) {
    const PretokenRecord &record = tournament.least();
    if (merged.size() > 0 && is_same(merged[merged.size() - 1], record))
      merged.add_to_last(record.count());
    else
      merged.append(record);
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
  const std::vector<Key> keys =
      splitters(runs, records, std::max<size_t>(threads > 1 ? 4 * threads : 1, records / range_records));
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
