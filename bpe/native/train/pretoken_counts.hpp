// Distinct pretokens of texts with exact 64-bit counts.
//
//     cut the text at special tokens, and long sections at safe offsets
//     each thread, for each part: for each pretoken: add 1 to the thread's table
//         the table is full: sort it and append it to the runs
//         the runs are as large as all that was merged before: merge them with it
//     at the end: merge all runs; the counts are sorted
//
// 1. A thread's table stays in its CPU cache, and runs are read and written sequentially. A single large
//    table would cause a cache miss per pretoken.
// 2. The counts do not depend on the number of threads or on their scheduling.
#pragma once

#include "normalize/normalizer.hpp"
#include "pretokenize/later_phases.hpp"
#include "pretokenize/text_window.hpp"
#include "text/special_tokens.hpp"
#include "train/sorted_run.hpp"
#include "train/thread_local_counts.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace bpe {

// Thread-safe: concurrent calls wait for each other. count() itself uses several threads.
class PretokenCounter {
public:
  // Without an automaton, only add() may be used.
  explicit PretokenCounter(std::shared_ptr<const Automaton> automaton);
  // Normalize the text between special tokens from now on; nullptr for none.
  void set_normalizer(std::shared_ptr<const Normalizer> normalizer) { normalizer_ = std::move(normalizer); }

  // Count the pretokens of a text. in_document: whether the text continues a document; set to whether it ends
  // in one. Returns how many documents, which are non-empty sections between special tokens, start in it.
  // Throws std::invalid_argument without an automaton or for text that is not valid UTF-8 (with the lowest
  // such byte), std::length_error for a pretoken of 4 GiB or more, and std::bad_alloc. The counts are
  // incomplete after an exception.
  uint64_t count(const uint8_t *text, size_t size, const SpecialTokens &special_tokens, unsigned threads,
                 bool &in_document);

  // The same for rows [offsets[i], offsets[i + 1]) of a text, where each is a document.
  uint64_t count_rows(const uint8_t *text, const uint64_t *offsets, size_t rows, unsigned threads);

  // Add `count` to one pretoken. Ignores an empty pretoken or a count of 0.
  void add(const uint8_t *bytes, size_t size, uint64_t count);

  // Return the counts, reset them and release the memory. Cost: merges the runs, with the number of threads
  // given to count().
  PretokenItems drain();
  // Return the memory that grows with the counts: everything except empty cells of the threads' tables and
  // sort buffers. drain() needs up to 16 bytes per pretoken plus its bytes in addition.
  size_t counted_bytes();

  // Return the largest offset where a text that continues may be cut without changing the counts, or 0 if
  // there is none. Without an automaton, this is after a special token. Only inspects the end of the text if
  // special tokens cannot overlap.
  size_t last_cut(const uint8_t *text, size_t size, const SpecialTokens &special_tokens) const;

private:
  // Runs are merged when they have at least this total size.
  static constexpr size_t merged_bytes = 24 << 20;

  struct Own { // state of a thread
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
  std::vector<Own> own_; // one per thread; not yet in the runs

  RunMemory memory_;              // of the runs
  std::vector<SortedRun> merged_; // each less than the next
  size_t merged_size_ = 0;        // in bytes
  std::mutex flushed_mutex_;
  std::vector<SortedRun> flushed_; // since then
  size_t flushed_size_ = 0;        // in bytes
};

} // namespace bpe
