#include "vocabulary/pair_table.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

namespace bpe {

namespace {

// The content of an empty slot. It reads as (no_symbol, no_symbol) -> no_rank, which is also true.
constexpr uint64_t empty_slot = ~uint64_t{0};

// Four pairs per bucket: displacements take half a byte per pair, and even the fullest bucket can be placed.
constexpr size_t pairs_per_bucket = 4;

} // namespace

PairTable::PairTable(const std::vector<Pair> &pairs) {
  // At most 7/8 full: in fuller tables, the last buckets try thousands of displacements.
  unsigned slot_bits = 1;
  while ((uint64_t{7} << slot_bits) / 8 < pairs.size())
    ++slot_bits;
  // Try other multipliers if two pairs of a bucket agree in the 32 bits that displacements multiply, and then
  // a larger table.
  constexpr uint64_t odd = uint64_t{1} << 32 | 1;
  multipliers_ = 0x9E3779B97F4A7C15ull | odd;
  for (unsigned attempt = 1; !place(pairs, slot_bits); ++attempt) {
    multipliers_ = multipliers_ * 0xD1342543DE82EF95ull | odd;
    if (attempt % 4 == 0)
      ++slot_bits;
  }
}

// Place the fullest buckets first, each with the first displacement for which all its slots are free.
bool PairTable::place(const std::vector<Pair> &pairs, unsigned slot_bits) {
  const unsigned bucket_bits = std::bit_width(pairs.size() / pairs_per_bucket) + 1;
  const size_t bucket_count = size_t{1} << bucket_bits;
  bucket_shift_ = 32 - bucket_bits;
  slot_shift_ = 32 - slot_bits;
  slots_.assign(size_t{1} << slot_bits, empty_slot);
  displacements_.assign(bucket_count, 0);

  const View table = view();
  const auto key_of = [](const Pair &pair) { return uint64_t{pair.left} << 21 | pair.right; };
  const auto bucket_of = [&](const Pair &pair) {
    return table.hash(pair.left, pair.right) >> table.bucket_shift;
  };
  std::vector<uint32_t> starts(bucket_count + 1, 0);
  for (const Pair &pair : pairs)
    ++starts[bucket_of(pair) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<uint64_t> entries(pairs.size()); // sorted by bucket
  std::vector<uint32_t> fill(starts.begin(), starts.end() - 1);
  for (const Pair &pair : pairs)
    entries[fill[bucket_of(pair)]++] = key_of(pair) << 22 | pair.rank;

  // For a duplicate pair, keep the higher rank. Both are in one bucket.
  std::vector<uint32_t> stops(starts.begin() + 1, starts.end());
  for (size_t bucket = 0; bucket < bucket_count; ++bucket) {
    uint64_t *const begin = entries.data() + starts[bucket];
    uint64_t *end = entries.data() + stops[bucket];
    if (end - begin < 2)
      continue;
    std::sort(begin, end);
    uint64_t *last = begin;
    for (uint64_t *entry = begin + 1; entry < end; ++entry) {
      if (*entry >> 22 != *last >> 22)
        ++last;
      *last = *entry;
    }
    stops[bucket] = static_cast<uint32_t>(last + 1 - entries.data());
  }
  size_ = 0;
  for (size_t bucket = 0; bucket < bucket_count; ++bucket)
    size_ += stops[bucket] - starts[bucket];

  const auto size_of = [&](uint32_t bucket) { return stops[bucket] - starts[bucket]; };
  uint32_t fullest = 0;
  for (uint32_t bucket = 0; bucket < bucket_count; ++bucket)
    fullest = std::max(fullest, size_of(bucket));
  std::vector<uint32_t> fuller(fullest + 2, 0); // by size below the fullest: number of larger buckets
  for (uint32_t bucket = 0; bucket < bucket_count; ++bucket)
    ++fuller[fullest - size_of(bucket) + 1];
  std::partial_sum(fuller.begin(), fuller.end(), fuller.begin());
  std::vector<uint32_t> fullest_first(bucket_count);
  for (uint32_t bucket = 0; bucket < bucket_count; ++bucket)
    fullest_first[fuller[fullest - size_of(bucket)]++] = bucket;

  const auto slot_of = [&](uint64_t entry, uint32_t displacement) -> uint64_t & {
    const uint32_t left = static_cast<uint32_t>(entry >> 43), right = entry >> 22 & no_symbol;
    return slots_[table.slot(table.hash(left, right), left, displacement)];
  };
  for (const uint32_t bucket : fullest_first) {
    const uint32_t start = starts[bucket], stop = stops[bucket];
    if (start == stop)
      break;
    uint32_t displacement = 0;
    for (;; ++displacement) {
      if (displacement > UINT16_MAX)
        return false;
      uint32_t i = start;
      for (; i < stop; ++i) {
        uint64_t &target = slot_of(entries[i], displacement);
        if (target != empty_slot)
          break;
        target = entries[i];
      }
      if (i == stop)
        break;
      while (i-- > start) // slot used: remove the pairs placed so far
        slot_of(entries[i], displacement) = empty_slot;
    }
    displacements_[bucket] = static_cast<uint16_t>(displacement);
  }
  return true;
}

std::vector<PairTable::Pair> PairTable::pairs() const {
  std::vector<uint64_t> by_rank; // rank above left and right
  by_rank.reserve(size_);
  for (const uint64_t slot : slots_)
    if (slot != empty_slot)
      by_rank.push_back(slot << 42 | slot >> 22);
  std::sort(by_rank.begin(), by_rank.end());
  std::vector<Pair> pairs;
  pairs.reserve(size_);
  for (const uint64_t entry : by_rank)
    pairs.push_back({static_cast<uint32_t>(entry >> 21 & no_symbol), static_cast<uint32_t>(entry & no_symbol),
                     static_cast<uint32_t>(entry >> 42)});
  return pairs;
}

} // namespace bpe
