// Merge the bytes of one pretoken into symbols: the allowed merge of lowest rank, leftmost first, until none
// is left.
//
// This is the plain form of the rule, for any order of ranks and any size. It takes O(n log n) time and 36
// bytes of memory per byte. It is used to build vocabularies, and for pretokens too long for
// merge_rank_at_a_time.hpp in the rare vocabularies for which merge_by_windows.hpp finds no window smaller
// than the pretoken.
//
// A heap holds (rank, offset) of every pair that can merge or could merge earlier. If another merge consumed
// a pair, its entry stays in the heap and is skipped when it is popped. A rank belongs to one pair of symbols
// and symbols only grow, so an entry is stale exactly when the pair at its offset no longer has its rank.
//
// Rules is a Vocabulary or a Vocabulary under construction: symbol_of_byte(byte), rank_of_bytes(left, right),
// rank(left, right) with PairTable::no_rank, product(rank).
#pragma once

#include "vocabulary/pair_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace bpe {

// Keeps only memory between calls. Not thread-safe.
class HeapMerge {
public:
  // Return the symbols of bytes[0, size), valid until the next call. 1 <= size <= 2^32 - 1. Throws
  // std::bad_alloc.
  template <class Rules>
  const std::vector<uint32_t> &merge(const Rules &rules, const uint8_t *bytes, size_t size);
  // The same for any symbols, at most 2^32 - 1.
  template <class Rules>
  const std::vector<uint32_t> &merge(const Rules &rules, const std::vector<uint32_t> &symbols);

  // Release memory if a long pretoken left more than a few megabytes.
  void trim() {
    if (places_.capacity() > size_t{1} << 18)
      *this = HeapMerge();
  }

private:
  static constexpr uint32_t none = UINT32_MAX; // no neighbour: before the first and after the last

  // The symbol that starts at a byte, the offsets of its neighbours, and the rank of its pair with the next.
  struct Place {
    uint32_t symbol, previous, next, rank;
  };

  // first_symbol(offset); first_rank(offset): rank of its pair with the next symbol.
  template <class Rules, class Symbol, class Rank>
  const std::vector<uint32_t> &merge(const Rules &rules, size_t size, Symbol first_symbol, Rank first_rank);

  std::vector<Place> places_;
  std::vector<uint64_t> heap_; // rank << 32 | offset, smallest on top
  std::vector<uint32_t> symbols_;
};

template <class Rules>
const std::vector<uint32_t> &HeapMerge::merge(const Rules &rules, const uint8_t *bytes, size_t size) {
  return merge(
      rules, size, [&](uint32_t i) { return rules.symbol_of_byte(bytes[i]); },
      [&](uint32_t i) { return rules.rank_of_bytes(bytes[i], bytes[i + 1]); });
}

template <class Rules>
const std::vector<uint32_t> &HeapMerge::merge(const Rules &rules, const std::vector<uint32_t> &symbols) {
  return merge(
      rules, symbols.size(), [&](uint32_t i) { return symbols[i]; },
      [&](uint32_t i) { return rules.rank(symbols[i], symbols[i + 1]); });
}

template <class Rules, class Symbol, class Rank>
const std::vector<uint32_t> &HeapMerge::merge(const Rules &rules, size_t size, Symbol first_symbol,
                                              Rank first_rank) {
  symbols_.clear();
  if (size == 0)
    return symbols_;
  const uint32_t count = static_cast<uint32_t>(size);
  places_.resize(count);
  heap_.clear();
  heap_.reserve(2 * size); // each merge removes one entry and adds at most two
  for (uint32_t i = 0; i < count; ++i) {
    const bool has_next = i + 1 < count;
    const uint32_t rank = has_next ? first_rank(i) : PairTable::no_rank;
    places_[i] = {first_symbol(i), i - 1, has_next ? i + 1 : none, rank}; // none before offset 0
    if (rank != PairTable::no_rank)
      heap_.push_back(uint64_t{rank} << 32 | i);
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());

  // Add the new pair of the symbol at `place` and the next one.
  const auto offer = [&](uint32_t place) {
    Place &left = places_[place];
    left.rank = left.next == none ? PairTable::no_rank : rules.rank(left.symbol, places_[left.next].symbol);
    if (left.rank == PairTable::no_rank)
      return;
    heap_.push_back(uint64_t{left.rank} << 32 | place);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint32_t rank = static_cast<uint32_t>(heap_.back() >> 32),
                   place = static_cast<uint32_t>(heap_.back());
    heap_.pop_back();
    Place &left = places_[place];
    if (left.rank != rank)
      continue;
    Place &right = places_[left.next];
    right.rank = PairTable::no_rank;
    left.symbol = rules.product(rank);
    left.next = right.next;
    if (left.next != none)
      places_[left.next].previous = place;
    offer(place);
    if (left.previous != none)
      offer(left.previous);
  }
  for (uint32_t place = 0; place != none; place = places_[place].next)
    symbols_.push_back(places_[place].symbol);
  return symbols_;
}

} // namespace bpe
