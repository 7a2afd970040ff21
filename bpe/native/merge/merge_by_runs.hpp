// One pretoken that is a few runs ("|-----|---|", a thousand spaces) -> symbols, in time that hardly depends
// on how long the runs are.
//
// What is merged is a list of runs, a symbol and how often it stands there in a row. Neighbours differ, so
// the lowest rank is either that of pairs within runs of one symbol or that of a border between two. A round
// takes it wherever it stands, from left to right: n times `a` become n / 2 times `aa`, and an `a` behind
// them if n is odd; at a border the last of the left run and the first of the right one become one. That is
// the order "lowest rank, leftmost first" as long as no merge makes a pair of a lower rank possible, which is
// asked for each new pair; where one does, the pretoken has to go another way. Markdown tables and indents of
// 64 bytes and more, 313 on average: 2,600 ns each by sweeps, 550 so.
//
// Included only by the sources of the variants, hence the unnamed namespace.
#pragma once

#include "merge/short_merge.hpp"

namespace bpe {

namespace {

class MergeByRuns {
public:
  // The symbols of bytes[0, size), size >= 1, into symbols[0, result), which has room for `size`. 0: not by
  // this way, since it is not runs of eight bytes or so, or a lower rank came up.
  template <bool listed>
  static size_t merge(const MergeTables &tables, const uint8_t *bytes, size_t size, uint32_t *symbols) {
    Run lists[2][room];
    size_t count = find_runs(tables, bytes, size, lists[0]);
    Run *runs = lists[0], *others = lists[1];
    for (;;) {
      if (count == 0 || count > room / 2)
        return 0;
      uint32_t lowest = none;
      for (size_t i = 0; i < count; ++i) {
        const uint32_t rank = runs[i].within < runs[i].border ? runs[i].within : runs[i].border;
        lowest = rank < lowest ? rank : lowest;
      }
      if (lowest == none)
        break;
      Round round{tables.pairs, lowest, listed ? tables.products[lowest] : lowest, others};
      count = round.take(runs, count);
      Run *const merged = others;
      others = runs;
      runs = merged;
    }
    size_t written = 0;
    for (size_t i = 0; i < count; ++i)
      for (uint32_t k = 0; k < runs[i].count; ++k)
        symbols[written++] = runs[i].symbol;
    return written;
  }

private:
  static constexpr uint32_t none = PairTable::no_rank;
  static constexpr size_t room = 192; // runs; a round makes twice as many at most

  struct Run {
    uint32_t symbol, count;
    uint32_t within; // rank of (symbol, symbol); none if there is but one
    uint32_t border; // rank of (symbol, the next run's)
  };

  // Of bytes[0, size); 0 if they are too many to gain by it.
  static size_t find_runs(const MergeTables &tables, const uint8_t *bytes, size_t size, Run *runs) {
    const size_t most = size < 8 * 48 ? size / 8 : 48;
    size_t count = 0;
    for (size_t start = 0, i = 0; start < size; start = i) {
      if (count == most)
        return 0;
      const uint8_t byte = bytes[start];
      const uint64_t eight_times = byte * uint64_t{0x0101010101010101};
      for (i = start + 1; i + 8 <= size; i += 8) {
        uint64_t eight;
        __builtin_memcpy(&eight, bytes + i, 8);
        if (eight != eight_times)
          break;
      }
      while (i < size && bytes[i] == byte)
        ++i;
      runs[count++] = {tables.symbol_of_byte[byte], static_cast<uint32_t>(i - start),
                       i - start > 1 ? tables.rank_of_bytes(byte, byte) : none,
                       i < size ? tables.rank_of_bytes(byte, bytes[i]) : none};
    }
    return count;
  }

  // All merges of one rank, from one list into another.
  struct Round {
    const PairTable::View &pairs;
    const uint32_t rank, product;
    Run *const merged;
    size_t count = 0;
    uint32_t lowest_new = none;

    uint32_t new_rank(uint32_t left, uint32_t right) {
      const uint32_t found = pairs.rank(left, right);
      lowest_new = found < lowest_new ? found : lowest_new;
      return found;
    }

    // border: of the run it was part of; it is made anew where it is another now.
    void append(uint32_t symbol, uint32_t times, uint32_t within, uint32_t border) {
      if (count > 0) {
        Run &last = merged[count - 1];
        if (last.symbol == symbol) { // the product's
          last.count += times;
          last.within = new_rank(symbol, symbol);
          last.border = border;
          return;
        }
        if (last.symbol == product || symbol == product)
          last.border = new_rank(last.symbol, symbol);
      }
      merged[count++] = {symbol, times, times > 1 ? within : none, border};
    }

    // How many runs there are then; 0 if a lower rank came up.
    size_t take(const Run *runs, size_t size) {
      for (size_t i = 0; i < size; ++i) {
        const Run run = runs[i];
        if (run.within == rank) {
          append(product, run.count / 2, run.count > 3 ? new_rank(product, product) : none, none);
          if (run.count > 2)
            new_rank(product, run.symbol); // for a moment, if their number is even
          if (run.count % 2 != 0)
            append(run.symbol, 1, none, run.border);
        } else if (run.border == rank) {
          if (run.count > 1)
            append(run.symbol, run.count - 1, run.within, none);
          append(product, 1, none, none);
          const Run right = runs[++i];
          if (right.count > 1)
            append(right.symbol, right.count - 1, right.within, right.border);
          else if (i + 1 < size)
            new_rank(product, runs[i + 1].symbol); // for a moment, if that merges in turn
        } else {
          append(run.symbol, run.count, run.within, run.border);
        }
      }
      return lowest_new < rank ? 0 : count;
    }
  };
};

} // namespace

} // namespace bpe
