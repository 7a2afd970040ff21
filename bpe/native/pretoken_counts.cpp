#include "pretoken_counts.hpp"

#include "utf8.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace bpe {
namespace {

// Pretokens whose cells are asked for before the first of them is looked at.
constexpr size_t batch_pretokens = 64;

// What a thread takes at a time: about a millisecond, so that the last one to finish is not far behind.
constexpr size_t piece_bytes = 1 << 18;
// A further thread is worth starting for so much text.
constexpr size_t thread_bytes = 1 << 20;
// Of the end of a text, where a place to cut is looked for first.
constexpr size_t tail_bytes = 1 << 16;

struct Part { // [start, stop) of the text, without special tokens
  size_t start, stop;
};

// The largest place in [start, stop] that is not inside a character; text[stop] can be read.
size_t character_start(const uint8_t *text, size_t start, size_t stop) {
  while (stop > start && (text[stop] & 0xC0) == 0x80)
    stop--;
  return stop;
}

// Whether no two matches can overlap, so that a search may start anywhere: no token holds a byte, after its
// first, that a token starts with.
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

// Hands the text out in pieces and counts the documents on the way; any thread may ask.
class PieceCutter {
public:
  PieceCutter(const uint8_t *text, size_t size, const SpecialTokens &special_tokens, Pattern pattern,
              bool in_document)
      : text_(text), size_(size), special_tokens_(special_tokens), pattern_(pattern),
        in_document_(in_document), match_(special_tokens.find(text, size, 0)) {}

  // The next parts, in all about piece_bytes; false when there is none. Each is pretokenized by itself.
  bool next(std::vector<Part> &parts) {
    std::lock_guard lock(mutex_);
    parts.clear();
    for (size_t bytes = 0; bytes < piece_bytes && at_ < size_;) {
      const size_t start = at_, stop = piece_stop();
      at_ = stop;
      if (stop > start) {
        parts.push_back({start, stop});
        documents_ += !in_document_;
        in_document_ = true;
      }
      if (stop == match_.start && stop < size_) {
        at_ = match_.stop;
        match_ = special_tokens_.find(text_, size_, at_);
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

  // Once all is handed out.
  uint64_t documents() const { return documents_; }
  bool in_document() const { return in_document_; }

private:
  // The next special token, or before it a place where the text may be cut.
  size_t piece_stop() const {
    const size_t bytes = match_.start - at_;
    for (size_t tried = piece_bytes; 2 * tried < bytes; tried *= 2) {
      const size_t stop = character_start(text_, at_, at_ + tried);
      const size_t cut = last_safe_cut(pattern_, text_ + at_, stop - at_);
      if (cut > 0)
        return at_ + cut;
    }
    return match_.start;
  }

  std::mutex mutex_;
  const uint8_t *text_;
  size_t size_;
  const SpecialTokens &special_tokens_;
  Pattern pattern_;
  size_t at_ = 0;
  uint64_t documents_ = 0;
  bool in_document_;
  SpecialTokens::Match match_; // the next one at or after at_
};

// Calls work(0) to work(threads - 1) side by side; throws what one of them threw.
template <class Work> void run_threads(unsigned threads, Work work) {
  std::vector<std::exception_ptr> errors(threads);
  auto guarded = [&](unsigned index) {
    try {
      work(index);
    } catch (...) {
      errors[index] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned index = 1; index < threads; index++)
      others.emplace_back(guarded, index);
  } catch (...) { // no thread to be had: those that run must end before the error goes on
    errors[0] = std::current_exception();
  }
  if (!errors[0])
    guarded(0);
  for (std::thread &other : others)
    other.join();
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
}

} // namespace

PretokenCounter::PretokenCounter(std::optional<Pattern> pattern) : pattern_(pattern) {}

uint64_t PretokenCounter::count(const uint8_t *text, size_t size, const SpecialTokens &special_tokens,
                                unsigned threads, bool &in_document) {
  if (!pattern_)
    throw std::invalid_argument("this counter has no pattern; only add() may be used");
  std::lock_guard busy(busy_);
  threads_ = std::max({1u, threads, threads_});
  const unsigned used =
      static_cast<unsigned>(std::min<size_t>(std::max(1u, threads), size / thread_bytes + 1));
  while (own_.size() < used)
    own_.emplace_back();
  PieceCutter cutter(text, size, special_tokens, *pattern_, in_document);
  std::vector<size_t> invalid(used, size);
  run_threads(used, [&](unsigned index) {
    OwnPretokens &own = own_[index];
    Pretokenizer pretokenizer(*pattern_);
    std::vector<Part> parts;
    try {
      while (cutter.next(parts)) {
        for (const Part &part : parts) {
          // Parts are handed out in order and each is looked at, so the lowest of the threads' places is the
          // first.
          const size_t bad = part.start + validate_utf8(text + part.start, part.stop - part.start);
          if (bad < part.stop) {
            invalid[index] = bad;
            return cutter.stop();
          }
          pretokenizer.reset(text + part.start, part.stop - part.start);
          for (Spans spans = pretokenizer.next(); spans.count > 0; spans = pretokenizer.next())
            add_spans(spans, text + size, own);
        }
      }
    } catch (...) {
      cutter.stop(); // the others need not go on
      throw;
    }
  });
  const size_t bad = *std::min_element(invalid.begin(), invalid.end());
  if (bad < size)
    throw std::invalid_argument("the text is not valid UTF-8 at byte " + std::to_string(bad));
  in_document = cutter.in_document();
  return cutter.documents();
}

void PretokenCounter::add_spans(const Spans &spans, const uint8_t *text_stop, OwnPretokens &own) {
  std::array<PretokenKey, batch_pretokens> keys;
  uint32_t start = 0;
  for (size_t i = 0; i < spans.count; i += batch_pretokens) {
    const size_t count = std::min(batch_pretokens, spans.count - i);
    for (size_t j = 0; j < count; j++) {
      const uint32_t stop = spans.ends[i + j];
      keys[j] = pretoken_key(spans.origin + start, stop - start, text_stop);
      own.prefetch(keys[j].hash);
      start = stop;
    }
    if (own.is_full(batch_pretokens))
      pour(own);
    for (size_t j = 0; j < count; j++)
      own.add(keys[j]);
  }
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
    for (auto match = special_tokens.find(text, size, from); match.start < decided;
         match = special_tokens.find(text, size, match.stop))
      cut = match.stop;
    const bool found = cut > 0 || from == 0;
    if (found && (!pattern_ || cut >= decided))
      return cut;
    if (!pattern_)
      continue;
    const size_t start = found ? cut : character_start(text, 0, from);
    const size_t stop = decided < size ? character_start(text, start, decided) : size;
    const size_t safe = last_safe_cut(*pattern_, text + start, stop - start);
    // A special token that starts before the tail may reach into it.
    if (found || safe > longest + 4)
      return start + safe;
  }
}

void PretokenCounter::add(const uint8_t *bytes, size_t size, uint64_t count) {
  if (size == 0 || count == 0)
    return;
  std::lock_guard busy(busy_);
  const PretokenKey key = pretoken_key(bytes, size, bytes + size);
  Stripe &to = stripe(key.hash);
  to.table.add(key, count, memory_, to.text);
}

void PretokenCounter::pour(OwnPretokens &own) {
  if (own.empty())
    return;
  struct Waiting {
    PretokenKey key;
    uint64_t count;
  };
  std::array<Waiting, batch_pretokens> waiting;
  size_t size = 0;
  Stripe *to = nullptr; // of all that wait
  auto add_waiting = [&] {
    if (size == 0)
      return;
    std::lock_guard lock(to->mutex);
    for (size_t i = 0; i < size; i++)
      to->table.prefetch(waiting[i].key.hash);
    for (size_t i = 0; i < size; i++)
      to->table.add(waiting[i].key, waiting[i].count, memory_, to->text);
    size = 0;
  };
  for (const PretokenCell &cell : own.cells()) {
    if (cell.high == 0)
      continue;
    const PretokenKey key = cell.key();
    Stripe &wanted = stripe(key.hash);
    if (&wanted != to || size == waiting.size()) // hashes ascend: the stripes follow each other
      add_waiting();
    to = &wanted;
    waiting[size++] = {key, cell.count};
  }
  add_waiting();
  own.clear();
}

size_t PretokenCounter::size() {
  std::lock_guard busy(busy_);
  return pour_all();
}

template <class Visit> void PretokenCounter::for_each_cell(Visit visit) const {
  for (const Stripe &stripe : stripes_)
    stripe.table.for_each(visit);
}

size_t PretokenCounter::pour_all() {
  for (OwnPretokens &own : own_)
    pour(own);
  size_t size = 0;
  for (const Stripe &stripe : stripes_)
    size += stripe.table.size();
  return size;
}

PretokenItems PretokenCounter::items() {
  std::lock_guard busy(busy_);
  return sorted_items();
}

PretokenItems PretokenCounter::drain() {
  std::lock_guard busy(busy_);
  PretokenItems result = sorted_items();
  own_.clear();
  for (Stripe &stripe : stripes_) {
    stripe.table = PretokenTable(stripe_bits);
    stripe.text = PretokenText(1 << 16);
  }
  memory_.clear();
  return result;
}

size_t PretokenCounter::memory_bytes() {
  std::lock_guard busy(busy_);
  size_t bytes = memory_.memory_bytes();
  for (const OwnPretokens &own : own_)
    bytes += own.memory_bytes();
  for (const Stripe &stripe : stripes_)
    bytes += stripe.text.memory_bytes();
  return bytes;
}

PretokenItems PretokenCounter::sorted_items() {
  // First by two bytes into 2^16 groups, then each group by comparing: the first 8 bytes lie beside the
  // pointer.
  struct Item {
    uint64_t prefix; // big-endian, so that it compares as bytes do
    const PretokenCell *cell;
    bool operator<(const Item &other) const {
      if (prefix != other.prefix)
        return prefix < other.prefix;
      const uint64_t size = cell->size(), other_size = other.cell->size();
      const int order = std::memcmp(cell->bytes(), other.cell->bytes(), std::min(size, other_size));
      return order != 0 ? order < 0 : size < other_size;
    }
  };
  constexpr size_t groups = 1 << 16;
  std::vector<Item> items(pour_all());
  std::vector<size_t> next(groups + 1, 0);
  uint64_t bytes = 0;
  auto for_each = [&](auto visit) {
    for_each_cell([&](const PretokenCell &cell) {
      visit(Item{__builtin_bswap64(load_word(cell.bytes(), std::min<uint64_t>(8, cell.size()))), &cell});
    });
  };
  for_each([&](const Item &item) {
    next[(item.prefix >> 48) + 1]++;
    bytes += item.cell->size();
  });
  for (size_t group = 0; group < groups; group++)
    next[group + 1] += next[group];
  for_each(
      [&](const Item &item) { items[next[item.prefix >> 48]++] = item; }); // next[g] is now where g stops

  std::atomic<size_t> taken{0};
  run_threads(static_cast<unsigned>(std::min<size_t>(threads_, items.size() / groups + 1)), [&](unsigned) {
    for (size_t group = taken++; group < groups; group = taken++) {
      const auto begin = items.begin();
      const size_t start = group == 0 ? 0 : next[group - 1];
      std::sort(begin + static_cast<ptrdiff_t>(start), begin + static_cast<ptrdiff_t>(next[group]));
    }
  });

  PretokenItems result;
  result.bytes.reserve(bytes);
  result.ends.reserve(items.size());
  result.counts.reserve(items.size());
  for (const Item &item : items) {
    const uint8_t *start = item.cell->bytes();
    result.bytes.insert(result.bytes.end(), start, start + item.cell->size());
    result.ends.push_back(result.bytes.size());
    result.counts.push_back(item.cell->count);
  }
  return result;
}

} // namespace bpe
