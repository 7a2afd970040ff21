// One pretoken's bytes -> its symbols: the allowed merge of lowest rank, leftmost first, until none is left.
//
// merge_short holds up to 16 bytes in sixteen lanes and looks for the lowest of them each time. merge_long
// keeps a tree of minima over the places, sixteen children a node, so every merge costs O(log n) whatever the
// bytes and whatever the order of the ranks (a rank file may make a lower rank possible by a merge of a
// higher one). Cost: about 10 ns a byte short, 40 ns long. No thread state; a MergeScratch belongs to one
// thread.
#pragma once

#include "vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

inline constexpr size_t short_pretoken_bytes = 16;

// The symbols of bytes[0, size), 1 <= size <= 16, into symbols[0, result); symbols has room for `size`.
size_t merge_short(const Vocabulary &vocabulary, const uint8_t *bytes, size_t size, uint32_t *symbols);

// Working memory of merge_long: 17 bytes for each byte of the longest pretoken yet, less once trimmed.
class MergeScratch {
public:
  // The symbols of bytes[0, size), size >= 1, valid until the next call. At most 2^32 - 1 bytes.
  // Throws std::bad_alloc.
  const std::vector<uint32_t> &merge_long(const Vocabulary &vocabulary, const uint8_t *bytes, size_t size);
  // Gives memory back if a long pretoken left more than a megabyte.
  void trim();

private:
  void set_groups(uint32_t a, uint32_t b, uint32_t c);
  void set_group(uint32_t group);

  std::vector<uint32_t> symbols_, next_, previous_, result_;
  std::vector<uint32_t> keys_;       // all levels of the tree, the leaves first
  std::vector<size_t> level_starts_; // of each level in keys_; the last level is one group
};

} // namespace bpe
