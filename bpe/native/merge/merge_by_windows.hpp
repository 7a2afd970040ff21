// Merge one giant pretoken a window at a time. Time and memory of a step do not depend on its size.
//
//     A = the symbols of bytes[0, stop)
//     while stop < size:
//         p = a boundary between two symbols of A, some bytes before stop
//         B = the symbols of a window from p to beyond stop, merged alone
//         q = the first boundary after p, at or before stop, that A and B share
//         A = A up to q, then B from q; stop = the end of the window
//
//     A  |---|--|----|--|-|..      p is never merged across in A, nor q in A or B. Spans between
//            p  |----|--|----|---  boundaries that are not crossed merge independently, and whether a
//                 B  q             boundary is crossed depends on the two spans next to it.
//
// A merge of the whole across p or q would also have happened in A or B, because the two spans next to that
// boundary are in the same states there. This holds for every rule that takes the lowest rank, leftmost
// first. Where A and B share no boundary (only artificial vocabularies do that), p moves back and the window
// grows fourfold, at last to the whole text.
#pragma once

#include "common/token_buffer.hpp"
#include "merge/merge_by_heap.hpp"
#include "merge/merge_pretokens.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bpe {

class WindowMerge {
public:
  // scratch, heap: working memory; `heap` merges windows of more than max_rank_merge_bytes. All must outlive
  // the object. window_bytes: size of the first windows, at least 1.
  WindowMerge(const Vocabulary &vocabulary, MergePretokens merge_pretokens, RankMergeScratch &scratch,
              HeapMerge &heap, size_t window_bytes = max_rank_merge_bytes)
      : vocabulary_(vocabulary), merge_pretokens_(merge_pretokens), scratch_(scratch), heap_(heap),
        window_bytes_(window_bytes), overlap_bytes_((window_bytes + 15) / 16) {}

  // Merge bytes[0, size), size >= 1, into symbols[0, result), which has room for `size`. Throws
  // std::bad_alloc.
  size_t merge(const uint8_t *bytes, size_t size, uint32_t *symbols);

  // Perform one step: afterwards symbols[0, count()) are the symbols of bytes[0, stop()), with a larger
  // stop() <= size. symbols: result of the previous step, with room for `size`. Throws std::length_error if
  // symbols were forgotten and the rest shares no boundary with a window.
  void extend(const uint8_t *bytes, size_t size, uint32_t *symbols);
  size_t count() const { return count_; }
  size_t stop() const { return stop_; }
  // Forget the first symbols and their bytes, which the caller removes.
  void forget(size_t symbols, size_t bytes);

private:
  size_t merge_window(const uint8_t *bytes, size_t size, uint32_t *symbols);
  size_t length(uint32_t symbol) const { return vocabulary_.text_size(symbol); }

  const Vocabulary &vocabulary_;
  const MergePretokens merge_pretokens_;
  RankMergeScratch &scratch_;
  HeapMerge &heap_;
  std::vector<uint32_t> window_; // symbols
  size_t window_bytes_, overlap_bytes_;
  size_t count_ = 0, stop_ = 0;
  bool is_whole_ = true; // no symbols were forgotten
};

// Merge a pretoken that arrives in parts. Keeps about kept_bytes of it.
class StreamedMerge {
public:
  // vocabulary: must have byte-level entries and outlive the object.
  StreamedMerge(const Vocabulary &vocabulary, MergePretokens merge_pretokens, size_t window_bytes,
                size_t kept_bytes)
      : vocabulary_(vocabulary), scratch_(std::make_unique_for_overwrite<RankMergeScratch>()),
        merge_(vocabulary, merge_pretokens, *scratch_, heap_, window_bytes), window_bytes_(window_bytes),
        kept_bytes_(kept_bytes) {}
  StreamedMerge(const StreamedMerge &) = delete;

  // Append the IDs that can no longer change to `ids`. Throws like WindowMerge::extend.
  void add(std::string_view bytes, TokenBuffer &ids);
  // Append the remaining IDs.
  void finish(TokenBuffer &ids);

private:
  void extend(size_t waiting_bytes);
  void settle(size_t stop, TokenBuffer &ids);

  const Vocabulary &vocabulary_;
  const std::unique_ptr<RankMergeScratch> scratch_;
  HeapMerge heap_;
  WindowMerge merge_;
  const size_t window_bytes_, kept_bytes_;
  std::string bytes_; // starts at the first symbol not yet appended
  std::vector<uint32_t> symbols_;
};

} // namespace bpe
