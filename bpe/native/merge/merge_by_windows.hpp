// One giant pretoken -> its symbols, a window at a time, in time and memory that do not depend on the whole.
//
// Merging all of it at once jumps about in it, and beyond a few megabytes each jump waits for memory. But
// what is far away has no say, and that can be checked. Let A be the merged text up to `stop`, `p` a border
// between two of its symbols, and B a window from p to beyond `stop`, merged by itself. If both have a border
// at some q with p < q <= stop, the merged whole is A up to q and then B from q:
//
//     A  |---|--|----|--|-|..      ... p is never merged across in A, q never in B (nor A). Stretches between
//            p  |----|--|----|---  borders that are not crossed merge in an order of their own, that of each
//                 B  q             stretch alone, and whether a border is crossed is up to the two beside it.
//
// Whatever merges the whole across p or q first would have done so in A or B, since the two stretches beside
// that border are there in the same states. So this holds for any rule that takes the lowest rank, leftmost
// first, whatever the ranks. Where A and B have no border in common (it takes a vocabulary made for that),
// the window starts earlier and grows fourfold, at last to the whole text.
#pragma once

#include "merge/long_merge.hpp"
#include "merge/merge_by_heap.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

class WindowMerge {
public:
  // Where merge_long_pretoken does not reach, `heap` is used. All must outlive the object.
  WindowMerge(const Vocabulary &vocabulary, MergeLongPretoken merge_long_pretoken,
              RankMergeScratch &rank_scratch, HeapMerge &heap)
      : vocabulary_(vocabulary), merge_long_pretoken_(merge_long_pretoken), rank_scratch_(rank_scratch),
        heap_(heap) {}

  // The symbols of bytes[0, size), size >= 1, into symbols[0, result); symbols has room for `size`.
  // Throws std::bad_alloc.
  size_t merge(const uint8_t *bytes, size_t size, uint32_t *symbols);

private:
  size_t merge_window(const uint8_t *bytes, size_t size, uint32_t *symbols);
  size_t length(uint32_t symbol) const { return vocabulary_.text_size(symbol); }

  const Vocabulary &vocabulary_;
  const MergeLongPretoken merge_long_pretoken_;
  RankMergeScratch &rank_scratch_;
  HeapMerge &heap_;
  std::vector<uint32_t> window_; // symbols
};

} // namespace bpe
