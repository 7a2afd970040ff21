// Merge pretokens one after another, with the result of merge_by_heap.hpp.
//
//     while a pair of adjacent symbols merges:
//         replace the pair of the lowest rank, leftmost first, by its product, and close the gap
//
// The search for the lowest rank takes quadratic time in all, so only short pretokens are merged like this.
// Longer ones use merge_rank_at_a_time.hpp. Included only by the sources of the variants, hence the unnamed
// namespace.
#pragma once

#include "merge/merge_rank_at_a_time.hpp"

namespace bpe {

namespace {

constexpr size_t max_plain_bytes = 32;

template <bool listed>
size_t merge_plainly(const MergeTables &tables, const uint8_t *bytes, size_t size, uint32_t *symbols) {
  uint32_t ranks[max_plain_bytes]; // of the pair that starts at each symbol
  for (size_t i = 0; i < size; ++i) {
    symbols[i] = tables.symbol_of_byte[bytes[i]];
    ranks[i] = i + 1 < size ? tables.rank_of_bytes(bytes[i], bytes[i + 1]) : PairTable::no_rank;
  }
  for (size_t count = size;; --count) {
    size_t at = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      at = ranks[i] < ranks[at] ? i : at;
    if (ranks[at] == PairTable::no_rank)
      return count;
    const uint32_t product = listed ? tables.products[ranks[at]] : ranks[at];
    for (size_t i = at + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
    }
    symbols[at] = product;
    ranks[at] = at + 2 < count ? tables.pairs.rank(product, symbols[at + 1]) : PairTable::no_rank;
    if (at > 0)
      ranks[at - 1] = tables.pairs.rank(symbols[at - 1], product);
  }
}

// See MergePretokens.
template <class Simd>
void merge_one_by_one(const MergeTables &tables, PretokenMerge *merges, size_t count,
                      RankMergeScratch &scratch) {
  for (PretokenMerge *merge = merges; merge < merges + count; ++merge) {
    const auto [bytes, size, _, symbols] = *merge;
    if (size <= max_plain_bytes)
      merge->count =
          static_cast<uint32_t>(tables.products ? merge_plainly<true>(tables, bytes, size, symbols)
                                                : merge_plainly<false>(tables, bytes, size, symbols));
    else
      merge->count = static_cast<uint32_t>(
          tables.products ? RankMerge<Simd, true>(tables, scratch).merge(bytes, size, symbols)
                          : RankMerge<Simd, false>(tables, scratch).merge(bytes, size, symbols));
  }
}

} // namespace

} // namespace bpe
