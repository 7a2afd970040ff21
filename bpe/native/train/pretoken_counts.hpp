// Distinct pretokens of texts with exact 64-bit counts.
//
// A text is cut at its special tokens, which are not counted, and long stretches without one where the
// pattern allows it (last_safe_cut); the pieces go to threads. Each thread counts into a small table of its
// own, which stays in its cache, and flushes it as a sorted run when it is full. When the runs hold as
// much as all that was merged before, they are merged with it: memory is read and written front to back,
// never at random as by a large table, and the counts are in order when they are handed over. They depend
// neither on the number of threads nor on how these are scheduled.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/later_phases.hpp"
#include "pretokenize/text_window.hpp"
#include "text/special_tokens.hpp"
#include "train/pretoken_items.hpp"
#include "train/run_sorter.hpp"
#include "train/thread_local_counts.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace bpe {

// Calls from several threads wait for each other; count() itself uses the threads it is given.
class PretokenCounter {
public:
  // Without an automaton only add() may be used.
  explicit PretokenCounter(std::shared_ptr<const Automaton> automaton);
  // Applied to the text between special tokens from now on; nullptr for none.
  void set_normalizer(std::shared_ptr<const Normalizer> normalizer) { normalizer_ = std::move(normalizer); }

  // Counts the pretokens of a text. in_document: whether it goes on with a document; afterwards whether it
  // ends in one. Returns how many documents, stretches between special tokens that are not empty, start in
  // it. Throws std::invalid_argument without an automaton or where the text is not valid UTF-8 (the lowest
  // such byte), std::length_error for a pretoken of 4 GiB or more, std::bad_alloc; the counts are then
  // incomplete.
  uint64_t count(const uint8_t *text, size_t size, const SpecialTokens &special_tokens, unsigned threads,
                 bool &in_document);

  // The same of rows [offsets[i], offsets[i + 1]) of a text, each a document by itself.
  uint64_t count_rows(const uint8_t *text, const uint64_t *offsets, size_t rows, unsigned threads);

  // Adds `count` to one pretoken; an empty one and a count of 0 are passed over.
  void add(const uint8_t *bytes, size_t size, uint64_t count);

  // Cost: that of items().
  size_t size();
  // Cost: the runs are merged, with as many threads as count() was given.
  PretokenItems items();
  // The same, after which nothing is counted yet and the memory is given back.
  PretokenItems drain();
  // Bytes that the counts take; items() and drain() take up to 16 for each pretoken, and its bytes, beside.
  size_t memory_bytes();
  // What of that grows with what is counted: all but the empty cells of the threads' tables and what these
  // sort with.
  size_t counted_bytes();

  // The largest place at which a text that goes on may be cut without changing the counts; 0 if there is
  // none. Without an automaton that is after a special token only. Looks at the end of the text alone where
  // no special token can overlap another.
  size_t last_cut(const uint8_t *text, size_t size, const SpecialTokens &special_tokens) const;

private:
  // Runs of less than this together are merged once and for all.
  static constexpr size_t merged_bytes = 24 << 20;

  struct Own { // a thread's
    ThreadLocalCounts counts;
    RunSorter sorter;
  };

  template <class Cuts>
  uint64_t count_cut(const uint8_t *text, size_t size, Cuts cuts, unsigned threads, bool &in_document);
  void add_text(TextWindow &window, LaterPieces *later, std::string_view view, const uint8_t *readable,
                bool begins_input, Own &own);
  void flush(Own &own);
  void merge_if_many();
  void merge_runs();
  void merge_all();

  std::mutex busy_;
  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const Normalizer> normalizer_; // if there is one
  unsigned threads_ = 1;
  std::vector<Own> own_; // one a thread; not yet in the runs

  RunMemory memory_;              // of the runs
  std::vector<SortedRun> merged_; // each less than the next
  size_t merged_size_ = 0;        // in bytes
  std::mutex flushed_mutex_;
  std::vector<SortedRun> flushed_; // since then
  size_t flushed_size_ = 0;        // in bytes
};

} // namespace bpe
