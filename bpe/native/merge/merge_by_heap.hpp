// One pretoken's bytes -> its symbols: the allowed merge of lowest rank, leftmost first, until none is left.
//
// This is the plain form of the rule, for any rank order and any size: O(n log n) time, 36 bytes of memory a
// byte. Building a vocabulary uses it, and so do pretokens too long for merge_rank_at_a_time.hpp in the rare
// vocabularies for which merge_by_windows.hpp finds no window smaller than the pretoken.
//
// A heap holds (rank, place) of every pair that can merge, or could once: a pair that another merge has taken
// apart stays in it and is skipped when its turn comes. A rank belongs to one pair of symbols and symbols
// only grow, so an entry is out of date exactly when its place no longer has its rank.
//
// Rules is a Vocabulary, or what a Vocabulary is made from: symbol_of_byte(byte), rank_of_bytes(left, right),
// rank(left, right) with PairTable::no_rank, product(rank).
#pragma once

#include "vocabulary/pair_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace bpe {

// Holds nothing between two calls but memory. One thread.
class HeapMerge {
public:
  // The symbols of bytes[0, size), 1 <= size <= 2^32 - 1, valid until the next call. Throws std::bad_alloc.
  template <class Rules>
  const std::vector<uint32_t> &merge(const Rules &rules, const uint8_t *bytes, size_t size);
  // The same of any symbols, at most 2^32 - 1.
  template <class Rules>
  const std::vector<uint32_t> &merge(const Rules &rules, const std::vector<uint32_t> &symbols);

  // Gives memory back if a long pretoken left more than some megabytes.
  void trim() {
    if (places_.capacity() > size_t{1} << 18)
      *this = HeapMerge();
  }

private:
  static constexpr uint32_t none = UINT32_MAX; // no neighbour: before the first and after the last

  // What starts at a byte: a symbol, its neighbours' places, and the rank of its pair with the next one.
  struct Place {
    uint32_t symbol, previous, next, rank;
  };

  // first_symbol(place), first_rank(place) of its pair with the next.
  template <class Rules, class Symbol, class Rank>
  const std::vector<uint32_t> &merge(const Rules &rules, size_t size, Symbol first_symbol, Rank first_rank);

  std::vector<Place> places_;
  std::vector<uint64_t> heap_; // rank << 32 | place, least on top
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
  heap_.reserve(2 * size); // each merge takes one entry out and puts two in at most
  for (uint32_t i = 0; i < count; ++i) {
    const bool has_next = i + 1 < count;
    const uint32_t rank = has_next ? first_rank(i) : PairTable::no_rank;
    places_[i] = {first_symbol(i), i - 1, has_next ? i + 1 : none, rank}; // none before 0
    if (rank != PairTable::no_rank)
      heap_.push_back(uint64_t{rank} << 32 | i);
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());

  // The pair of `place` and the symbol behind it is new.
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
