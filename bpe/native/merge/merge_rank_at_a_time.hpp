// Merge one pretoken of up to 4 KiB: all pairs of the lowest rank at once, including whole runs of a symbol.
//
//     ranks[i] = rank of the pair that starts at offset i
//     while any rank is left:
//         lowest = min(ranks)
//         for each i with ranks[i] == lowest, from left to right:
//             merge the pair and update the ranks of its neighbours
//             stop if one of them is lower
//
// Offsets count bytes, and the offset of its first byte identifies a node. A node is a symbol, or a run of
// equal symbols followed by a node with one more of them. `ranks` therefore has one rank per node, for the
// pair of its symbol and the next node's. A round finds the lowest rank from the minimum of each group of 64
// offsets and merges all pairs of that rank from left to right. This equals the order "lowest rank, leftmost
// first" unless a merge makes a pair of a lower rank possible, as in vocabularies with ranks that do not grow
// with their merges. In that case the round ends at once. A merge cannot create another pair of the same
// rank, since new pairs contain the new symbol.
//
// Runs ("-----", spaces) take a few steps whatever their length, while a heap needs one step per merge.
//
// Included only by the sources of the variants, hence the unnamed namespace.
#pragma once

#include "merge/merge_pretokens.hpp"

#include <cstring>

namespace bpe {

namespace {

constexpr size_t rank_group = 64; // offsets; Simd::least_of_64 and equal_in_64 process one group

template <class Simd, bool listed> class RankMerge {
public:
  [[gnu::always_inline]] RankMerge(const MergeTables &tables, RankMergeScratch &scratch)
      : tables_(tables), ranks_(scratch.ranks), symbols_(scratch.symbols), least_(scratch.least),
        next_(scratch.next), previous_(scratch.previous), counts_(scratch.counts) {}

  [[gnu::always_inline]] size_t merge(const uint8_t *bytes, size_t size, uint32_t *out) {
    list_nodes(bytes, size);
    const size_t stop = size + 1, groups = stop / rank_group + 1;
    for (size_t group = 0; group < groups; ++group)
      least_[group] = Simd::least_of_64(ranks_ + group * rank_group);
    for (;;) {
      lowest_ = least_[0];
      for (size_t group = 1; group < groups; ++group)
        lowest_ = least_[group] < lowest_ ? least_[group] : lowest_;
      if (lowest_ == none)
        break;
      product_ = listed ? tables_.products[lowest_] : lowest_;
      changed_ = 0;
      merge_lowest(groups);
      for (; changed_ != 0; changed_ &= changed_ - 1) {
        const size_t group = static_cast<size_t>(__builtin_ctzll(changed_));
        least_[group] = Simd::least_of_64(ranks_ + group * rank_group);
      }
    }
    size_t count = 0;
    for (size_t place = next_[0]; place != stop; place = next_[place]) {
      out[count++] = symbol_at(place);
      for (size_t more = is_run(place) ? counts_[place] - 1u : 0; more > 0; --more)
        out[count++] = symbol_at(place);
    }
    return count;
  }

private:
  static constexpr uint32_t none = PairTable::no_rank;
  // flag of a symbol with a count of at least two
  static constexpr uint32_t run_bit = uint32_t{1} << 31;

  // Byte i is at offset i + 1. Offsets 0 and size + 1 never merge, so the ends need no special case.
  [[gnu::always_inline]] void list_nodes(const uint8_t *bytes, size_t size) {
    const size_t stop = size + 1;
    for (size_t place = 0; place < (stop / rank_group + 1) * rank_group; ++place)
      ranks_[place] = none;
    symbols_[0] = symbols_[stop] = PairTable::no_symbol;
    size_t last = 0;
    for (size_t i = 0; i < size;) {
      const uint8_t byte = bytes[i];
      if (size - i > 8 && std::memcmp(bytes + i, bytes + i + 1, 8) == 0) {
        size_t run = 9;
        while (i + run < size && bytes[i + run] == byte)
          ++run;
        put(i + 1, tables_.symbol_of_byte[byte], run - 1);
        link(last, i + 1);
        ranks_[last = i + 1] = tables_.rank_of_bytes(byte, byte);
        i += run - 1;
      }
      symbols_[i + 1] = tables_.symbol_of_byte[byte];
      link(last, i + 1);
      last = ++i;
      if (i < size)
        ranks_[last] = tables_.rank_of_bytes(byte, bytes[i]);
    }
    link(last, stop);
  }

  [[gnu::always_inline]] void merge_lowest(size_t groups) {
    for (size_t group = 0; group < groups; ++group) {
      if (least_[group] != lowest_)
        continue;
      const size_t base = group * rank_group;
      changed_ |= uint64_t{1} << group;
      for (uint64_t places = Simd::equal_in_64(ranks_ + base, lowest_); places != 0; places &= places - 1) {
        const size_t place = base + static_cast<size_t>(__builtin_ctzll(places));
        if (ranks_[place] != lowest_) // the previous merge consumed its left symbol
          continue;
        if (!(is_run(place) ? merge_run(place) : merge_two(place)))
          return;
      }
    }
  }

  // Merge the single symbol at `place` with the first symbol of the next node. Returns whether the round
  // continues.
  [[gnu::always_inline]] bool merge_two(size_t place) {
    const size_t right = next_[place];
    const bool whole = !is_run(right);
    size_t before = previous_[place], after = next_[right];
    if (is_run(before)) { // shorten the run: its last symbol gets its own node
      const size_t width = width_at(before), count = counts_[before];
      const size_t last = before + (count - 1) * width;
      put(last, symbol_at(before), 1);
      put(before, symbol_at(before), count - 1);
      link(before, last);
      link(before = last, place);
    }
    if (!whole) {
      after = right + width_at(right);
      put(after, symbol_at(right), counts_[right] - 1u);
      link(after, next_[right]);
      set_rank(after, ranks_[right]);
    }
    const uint32_t right_rank = tables_.pairs.rank(product_, symbol_at(after));
    const uint32_t left_rank = tables_.pairs.rank(symbol_at(before), product_);
    symbols_[place] = product_;
    link(place, after);
    set_rank(right, none);
    set_rank(place, right_rank);
    set_rank(before, left_rank);
    return whole && right_rank > lowest_ && left_rank > lowest_;
  }

  // Merge the run at `place`, of at least three symbols, in pairs. Returns the same.
  [[gnu::always_inline]] bool merge_run(size_t place) {
    const size_t width = width_at(place), run = counts_[place] + 1u, pairs = run / 2;
    const size_t before = previous_[place], last = next_[place], after = next_[last];
    const uint32_t symbol = symbol_at(place);
    const uint32_t left_rank = tables_.pairs.rank(symbol_at(before), product_);
    const uint32_t odd_rank = tables_.pairs.rank(product_, symbol);
    const uint32_t run_rank = tables_.pairs.rank(product_, product_);
    set_rank(before, left_rank);
    if (left_rank < lowest_ || odd_rank < lowest_ || run_rank < lowest_) { // merge only the first two
      const size_t rest = place + 2 * width;
      symbols_[place] = product_;
      link(place, rest);
      set_rank(place, odd_rank);
      if (rest != last) {
        put(rest, symbol, run - 3);
        link(rest, last);
        set_rank(rest, lowest_);
      }
      return false;
    }
    const bool odd = run % 2 != 0;
    const uint32_t tail_rank = odd ? odd_rank : tables_.pairs.rank(product_, symbol_at(after));
    const size_t tail = place + (pairs - 1) * 2 * width;
    if (tail != place) {
      put(place, product_, pairs - 1);
      link(place, tail);
      set_rank(place, run_rank);
    }
    symbols_[tail] = product_;
    link(tail, odd ? last : after);
    if (!odd)
      set_rank(last, none);
    set_rank(tail, tail_rank);
    return tail_rank > lowest_;
  }

  bool is_run(size_t place) const { return (symbols_[place] & run_bit) != 0; }
  uint32_t symbol_at(size_t place) const { return symbols_[place] & ~run_bit; }
  size_t width_at(size_t run) const { return (next_[run] - size_t{run}) / counts_[run]; } // of one symbol
  [[gnu::always_inline]] void put(size_t place, uint32_t symbol, size_t count) {
    symbols_[place] = count > 1 ? symbol | run_bit : symbol;
    counts_[place] = static_cast<uint16_t>(count);
  }
  [[gnu::always_inline]] void link(size_t left, size_t right) {
    next_[left] = static_cast<uint16_t>(right);
    previous_[right] = static_cast<uint16_t>(left);
  }
  [[gnu::always_inline]] void set_rank(size_t place, uint32_t rank) {
    ranks_[place] = rank;
    changed_ |= uint64_t{1} << (place / rank_group);
  }

  const MergeTables tables_;
  uint32_t *const ranks_, *const symbols_, *const least_;
  uint16_t *const next_, *const previous_, *const counts_;
  uint32_t lowest_ = none, product_ = 0;
  uint64_t changed_ = 0; // mask of changed groups
};

} // namespace

} // namespace bpe
