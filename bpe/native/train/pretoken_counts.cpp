#include "train/pretoken_counts.hpp"

#include "common/thread_team.hpp"
#include "normalize/normalized_cut.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace bpe {
namespace {

// Number of pretokens with prefetched cells before the first of them is read.
constexpr size_t batch_pretokens = 64;

// The work unit of a thread: about half a millisecond, so that the threads finish almost together.
constexpr size_t piece_bytes = 1 << 17;
// Amount of text for which another thread is worth starting.
constexpr size_t thread_bytes = 1 << 20;
// At the end of a text, where a cut is tried first.
constexpr size_t tail_bytes = 1 << 16;

struct Part { // [start, stop) of the text, without special tokens
  size_t start, stop;
  bool at_start; // of a document
};

// Return the largest offset in [start, stop] that is not inside a character; text[stop] must be readable.
size_t character_start(const uint8_t *text, size_t start, size_t stop) {
  while (stop > start && continues_character(text[stop]))
    stop--;
  return stop;
}

// Return whether no two matches can overlap, so that a search may start anywhere: no token contains, after
// its first byte, a byte that a token starts with.
bool stand_apart(const SpecialTokens &special_tokens) {
  std::array<bool, 256> starts{};
  for (const SpecialToken &token : special_tokens.tokens())
    starts[static_cast<uint8_t>(token.text[0])] = true;
  for (const SpecialToken &token : special_tokens.tokens())
    for (size_t i = 1; i < token.text.size(); i++)
      if (starts[static_cast<uint8_t>(token.text[i])])
        return false;
  return true;
}

// The ends of adjacent rows, as empty special tokens.
class RowEnds {
public:
  RowEnds(const uint64_t *offsets, size_t rows) : next_(offsets + 1), last_(offsets + rows) {}
  SpecialTokens::Match next() {
    const uint64_t end = *next_;
    if (next_ < last_)
      ++next_;
    return {end, end, no_special};
  }

private:
  const uint64_t *next_, *last_;
};

// Hands out the text in pieces and counts documents. Thread-safe. Cuts: SpecialTokens::Search or RowEnds.
template <class Cuts> class PieceCutter {
public:
  PieceCutter(const uint8_t *text, size_t size, Cuts cuts, const Automaton &automaton,
              const Normalizer *normalizer, bool in_document)
      : text_(text), size_(size), automaton_(automaton), normalizer_(normalizer), in_document_(in_document),
        cuts_(std::move(cuts)), match_(cuts_.next()) {}

  // Get the next parts, about piece_bytes in total; false if there are none. Each is pretokenized separately.
  bool next(std::vector<Part> &parts) {
    std::lock_guard lock(mutex_);
    parts.clear();
    for (size_t bytes = 0; bytes < piece_bytes && at_ < size_;) {
      const size_t start = at_, stop = piece_stop();
      at_ = stop;
      if (stop > start) {
        parts.push_back({start, stop, !in_document_});
        documents_ += !in_document_;
        in_document_ = true;
      }
      if (stop == match_.start && stop < size_) {
        at_ = match_.stop;
        match_ = cuts_.next();
        in_document_ = false;
      }
      bytes += stop - start;
    }
    return !parts.empty();
  }

  void stop() {
    std::lock_guard lock(mutex_);
    at_ = size_;
  }

  // Valid once all parts are handed out.
  uint64_t documents() const { return documents_; }
  bool in_document() const { return in_document_; }

private:
  // Return the next special token, or an earlier offset where the text may be cut.
  size_t piece_stop() const {
    const size_t bytes = match_.start - at_;
    for (size_t tried = piece_bytes; 2 * tried < bytes; tried *= 2) {
      const size_t stop = character_start(text_, at_, at_ + tried);
      const size_t cut = last_normalized_cut(automaton_, normalizer_, text_ + at_, stop - at_);
      if (cut > 0)
        return at_ + cut;
    }
    return match_.start;
  }

  std::mutex mutex_;
  const uint8_t *text_;
  size_t size_;
  const Automaton &automaton_;
  const Normalizer *normalizer_;
  size_t at_ = 0;
  uint64_t documents_ = 0;
  bool in_document_;
  Cuts cuts_;
  SpecialTokens::Match match_; // the next one at or after at_
};

} // namespace

PretokenCounter::PretokenCounter(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)) {}

uint64_t PretokenCounter::count(const uint8_t *text, size_t size, const SpecialTokens &special_tokens,
                                unsigned threads, bool &in_document) {
  return count_cut(text, size, SpecialTokens::Search(special_tokens, text, size), threads, in_document);
}

uint64_t PretokenCounter::count_rows(const uint8_t *text, const uint64_t *offsets, size_t rows,
                                     unsigned threads) {
  bool in_document = false;
  if (rows == 0)
    return 0;
  const uint8_t *const begin = text + offsets[0];
  std::vector<uint64_t> own(offsets, offsets + rows + 1);
  for (uint64_t &offset : own)
    offset -= offsets[0];
  return count_cut(begin, own[rows], RowEnds(own.data(), rows), threads, in_document);
}

template <class Cuts>
uint64_t PretokenCounter::count_cut(const uint8_t *text, size_t size, Cuts cuts, unsigned threads,
                                    bool &in_document) {
  if (!automaton_)
    throw std::invalid_argument("this counter has no pattern; only add() may be used");
  std::lock_guard busy(busy_);
  threads_ = std::max({1u, threads, threads_});
  const unsigned used =
      static_cast<unsigned>(std::min<size_t>(std::max(1u, threads), size / thread_bytes + 1));
  while (own_.size() < used)
    own_.emplace_back();
  PieceCutter<Cuts> cutter(text, size, std::move(cuts), *automaton_, normalizer_.get(), in_document);
  std::vector<size_t> invalid(used, size);
  ThreadTeam(used).run([&](unsigned index) {
    Own &own = own_[index];
    TextWindow window(*automaton_);
    std::optional<LaterPieces> later;
    if (automaton_->later)
      later.emplace(*automaton_->later);
    std::vector<Part> parts;
    Normalizer::Scratch scratch;
    try {
      while (cutter.next(parts)) {
        for (const Part &part : parts) {
          // Parts are handed out in order and each is validated, so the lowest offset of all threads is the
          // first.
          const size_t bad = part.start + validate_utf8(text + part.start, part.stop - part.start);
          if (bad < part.stop) {
            invalid[index] = bad;
            return cutter.stop();
          }
          const uint8_t *start = text + part.start, *readable = text + size;
          size_t part_size = part.stop - part.start;
          if (normalizer_) {
            const std::string_view made =
                normalizer_->apply({reinterpret_cast<const char *>(start), part_size}, scratch,
                                   part.at_start ? TextStart::input : TextStart::inside);
            start = reinterpret_cast<const uint8_t *>(made.data());
            part_size = made.size();
            readable = start + part_size;
          }
          add_text(window, later ? &*later : nullptr, {reinterpret_cast<const char *>(start), part_size},
                   readable, part.at_start, own);
        }
      }
    } catch (...) {
      cutter.stop(); // the other threads need not continue
      throw;
    }
  });
  const size_t bad = *std::min_element(invalid.begin(), invalid.end());
  if (bad < size)
    throw std::invalid_argument("the text is not valid UTF-8 at byte " + std::to_string(bad));
  merge_if_many();
  in_document = cutter.in_document();
  return cutter.documents();
}

void PretokenCounter::add_text(TextWindow &window, LaterPieces *later, std::string_view view,
                               const uint8_t *readable, bool begins_input, Own &own) {
  const uint8_t *const text = reinterpret_cast<const uint8_t *>(view.data());
  const size_t size = view.size();
  std::array<PretokenKey, batch_pretokens> keys;
  size_t count = 0;
  const auto count_them = [&] {
    if (own.counts.is_full(batch_pretokens))
      flush(own);
    for (size_t i = 0; i < count; i++)
      own.counts.add(keys[i]);
    count = 0;
  };
  const auto add_pretoken = [&](const uint8_t *start, size_t bytes, const uint8_t *readable_to) {
    keys[count] = pretoken_key(start, bytes, readable_to);
    own.counts.prefetch(keys[count].hash);
    if (++count == batch_pretokens)
      count_them();
  };
  const size_t first_bytes = begins_input && size > 0 ? read_char(text, text + size).length : 0;
  const auto add = [&](const uint8_t *start, size_t bytes) {
    if (!later || automaton_->later->leaves(start, bytes))
      return add_pretoken(start, bytes, readable);
    later->cut({reinterpret_cast<const char *>(start), bytes}, readable, start == text ? first_bytes : 0);
    const uint8_t *const kept = later->keep(count_them);
    size_t done = 0;
    for (const size_t end : later->ends()) {
      if (end > done)
        add_pretoken(kept + done, end - done, later->kept_readable());
      done = end;
    }
  };
  // Forced inline: a call per piece takes an eighth of the counting time.
  const auto take = [&](size_t start, size_t stop, bool drops) __attribute__((always_inline)) {
    if (stop - start > UINT32_MAX)
      throw std::length_error("a pretoken of 4 GiB or more; cut the text into documents");
    if (!drops)
      add(text + start, stop - start);
  };
  window.for_each_piece(text, size, readable, take);
  count_them();
}

size_t PretokenCounter::last_cut(const uint8_t *text, size_t size,
                                 const SpecialTokens &special_tokens) const {
  size_t longest = 0;
  for (const SpecialToken &token : special_tokens.tokens())
    longest = std::max(longest, token.text.size());
  // Matches that start before `decided` are the same whatever follows, and none starts between the last of
  // them and `decided`.
  const size_t decided = longest == 0 ? size : size - std::min(size, longest - 1);
  const bool apart = stand_apart(special_tokens);
  for (size_t tail = tail_bytes;; tail *= 4) {
    const size_t from = apart && tail < decided ? decided - tail : 0;
    size_t cut = 0;
    SpecialTokens::Search search(special_tokens, text, size, from);
    for (auto match = search.next(); match.start < decided; match = search.next())
      cut = match.stop;
    const bool found = cut > 0 || from == 0;
    if (found && (!automaton_ || cut >= decided))
      return cut;
    if (!automaton_)
      continue;
    const size_t start = found ? cut : character_start(text, 0, from);
    const size_t stop = decided < size ? character_start(text, start, decided) : size;
    const size_t safe = last_normalized_cut(*automaton_, normalizer_.get(), text + start, stop - start);
    // A special token that starts before the tail may extend into it.
    if (found || safe > longest + 4)
      return start + safe;
  }
}

void PretokenCounter::add(const uint8_t *bytes, size_t size, uint64_t count) {
  if (size == 0 || count == 0)
    return;
  std::lock_guard busy(busy_);
  if (own_.empty())
    own_.emplace_back();
  if (own_[0].counts.is_full(1)) {
    flush(own_[0]);
    merge_if_many();
  }
  own_[0].counts.add(pretoken_key(bytes, size, bytes + size), count);
}

void PretokenCounter::flush(Own &own) {
  if (own.counts.size() == 0)
    return;
  SortedRun run = own.sorter.sorted(own.counts.cells(), own.counts.size(), memory_);
  own.counts.clear();
  std::lock_guard lock(flushed_mutex_);
  flushed_size_ += run.memory_bytes();
  flushed_.push_back(std::move(run));
}

void PretokenCounter::merge_if_many() {
  if (flushed_size_ >= std::max(merged_bytes, merged_size_))
    merge_runs();
}

void PretokenCounter::merge_runs() {
  if (flushed_.empty())
    return;
  std::vector<SortedRun> runs = std::exchange(flushed_, {});
  std::move(merged_.begin(), merged_.end(), std::back_inserter(runs));
  flushed_size_ = merged_size_ = 0;
  merged_ = merged_ranges(std::move(runs), memory_, threads_);
  for (const SortedRun &run : merged_)
    merged_size_ += run.memory_bytes();
}

void PretokenCounter::merge_all() {
  std::atomic<size_t> next{0};
  ThreadTeam(static_cast<unsigned>(own_.size())).run([&](unsigned) {
    for (size_t i; (i = next++) < own_.size();)
      flush(own_[i]);
  });
  merge_runs();
}

PretokenItems PretokenCounter::drain() {
  std::lock_guard busy(busy_);
  merge_all();
  own_.clear();
  memory_.give_back_free();
  PretokenItems result = items_of(merged_, threads_);
  merged_.clear();
  merged_size_ = 0;
  memory_.clear();
  return result;
}

size_t PretokenCounter::counted_bytes() {
  std::lock_guard busy(busy_);
  size_t bytes = memory_.memory_bytes();
  for (const Own &own : own_)
    bytes += own.counts.text_bytes_held() + own.counts.size() * sizeof(PretokenRecord);
  for (const std::vector<SortedRun> *runs : {&merged_, &flushed_})
    for (const SortedRun &run : *runs)
      bytes += run.large_text_bytes();
  return bytes;
}

} // namespace bpe
