// The rank at which two neighbouring symbols may merge: (left, right) -> rank, in one dependent load.
//
// A perfect hash, built once: the hash of the pair selects a bucket, the 16-bit displacement of the bucket
// selects the slot, and no other slot can hold the pair. A miss therefore costs as much as a hit, without a
// search. An entry is one 64-bit word (left 21 bits, right 21, rank 22). At least half of the slots are
// usually used. Immutable and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

class PairTable {
public:
  static constexpr uint32_t no_symbol = (1u << 21) - 1; // never merges; larger than every symbol
  static constexpr uint32_t no_rank = (1u << 22) - 1;   // larger than every rank

  struct Pair {
    uint32_t left, right; // < no_symbol
    uint32_t rank;        // < no_rank
  };

  PairTable() : PairTable(std::vector<Pair>()) {}
  // For a duplicate (left, right), the higher rank counts.
  explicit PairTable(const std::vector<Pair> &pairs);

  // Return all pairs by ascending rank.
  std::vector<Pair> pairs() const;
  size_t size() const { return size_; }

  // The table as plain data, for sources compiled for other instruction sets. Everything is inlined, so that
  // no code is shared between them. Valid as long as the table. Uses 32-bit arithmetic only, so that vectors
  // of pairs can be looked up (merge_by_lanes.hpp).
  struct View {
    uint32_t left_multiplier, right_multiplier;
    unsigned bucket_shift, slot_shift;
    const uint64_t *slots;
    const uint16_t *displacements;

    // The upper bits are the bucket. Together with `left`, the hash identifies the pair, since
    // right_multiplier is odd.
    [[gnu::always_inline]] uint32_t hash(uint32_t left, uint32_t right) const {
      return left * left_multiplier + right * right_multiplier;
    }
    [[gnu::always_inline]] uint32_t slot(uint32_t hash, uint32_t left, uint32_t displacement) const {
      return (hash ^ left << 11) * (2 * displacement + 1) >> slot_shift;
    }
    // Return the rank of the pair, or no_rank. left, right: symbols or no_symbol.
    [[gnu::always_inline]] uint32_t rank(uint32_t left, uint32_t right) const {
      const uint64_t key = uint64_t{left} << 21 | right;
      const uint32_t h = hash(left, right);
      const uint64_t entry = slots[slot(h, left, displacements[h >> bucket_shift])];
      return entry >> 22 == key ? static_cast<uint32_t>(entry) & no_rank : no_rank;
    }
  };

  View view() const {
    return {static_cast<uint32_t>(multipliers_),
            static_cast<uint32_t>(multipliers_ >> 32),
            bucket_shift_,
            slot_shift_,
            slots_.data(),
            displacements_.data()};
  }
  uint32_t rank(uint32_t left, uint32_t right) const { return view().rank(left, right); }

  size_t bytes() const { return slots_.size() * 8 + displacements_.size() * 2; }

private:
  bool place(const std::vector<Pair> &pairs, unsigned slot_bits);

  size_t size_ = 0;
  uint64_t multipliers_ = 0; // of left, plus 2^32 times the multiplier of right
  unsigned bucket_shift_ = 31;
  unsigned slot_shift_ = 31;
  std::vector<uint64_t> slots_;
  std::vector<uint16_t> displacements_;
};

} // namespace bpe
