// Pairs of entries that merge, from a list or from the ranks of a file, and entries that no merges make.
#include "merge/merge_by_heap.hpp"
#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"
#include "vocabulary/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace bpe {

namespace {

// The pairs of a rank file found so far, with the packing of PairTable. rank_file_pairs merges with them.
class GrowingPairs {
public:
  GrowingPairs(const uint32_t *symbol_of_byte, size_t max_pairs)
      : symbol_of_byte_(symbol_of_byte), slots_(std::bit_ceil(2 * max_pairs + 2), empty) {}

  uint32_t symbol_of_byte(uint8_t byte) const { return symbol_of_byte_[byte]; }
  uint32_t product(uint32_t rank) const { return rank; }
  uint32_t rank_of_bytes(uint8_t left, uint8_t right) const {
    return rank(symbol_of_byte_[left], symbol_of_byte_[right]);
  }
  uint32_t rank(uint32_t left, uint32_t right) const {
    return static_cast<uint32_t>(slots_[slot_of(left, right)]) & PairTable::no_rank;
  }
  void insert(uint32_t left, uint32_t right, uint32_t rank) {
    slots_[slot_of(left, right)] = (uint64_t{left} << 21 | right) << 22 | rank;
  }

private:
  static constexpr uint64_t empty = ~uint64_t{0}; // which reads as no_rank
  size_t slot_of(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 21 | right;
    const size_t mask = slots_.size() - 1;
    size_t slot = key * 0x9E3779B97F4A7C15ull >> 32 & mask;
    while (slots_[slot] >> 22 != key && slots_[slot] != empty)
      slot = (slot + 1) & mask;
    return slot;
  }

  const uint32_t *symbol_of_byte_;
  std::vector<uint64_t> slots_;
};

// Return the number of symbols after merging these bytes, and the first two. Most entries are short:
// searching all ranks for the lowest is then faster than a heap.
template <class Rules>
size_t merged(const Rules &rules, std::string_view bytes, HeapMerge &heap, uint32_t (&first_two)[2]) {
  constexpr size_t short_bytes = 32;
  const uint8_t *const data = bytes_of(bytes);
  size_t count = bytes.size();
  if (count > short_bytes) {
    const std::vector<uint32_t> &symbols = heap.merge(rules, data, count);
    std::copy_n(symbols.begin(), std::min<size_t>(symbols.size(), 2), first_two);
    return symbols.size();
  }
  uint32_t symbols[short_bytes], ranks[short_bytes]; // of the pair with the next symbol
  for (size_t i = 0; i < count; ++i) {
    symbols[i] = rules.symbol_of_byte(data[i]);
    ranks[i] = i + 1 < count ? rules.rank_of_bytes(data[i], data[i + 1]) : PairTable::no_rank;
  }
  for (;;) {
    const size_t at = static_cast<size_t>(std::min_element(ranks, ranks + count) - ranks);
    if (ranks[at] == PairTable::no_rank)
      break;
    symbols[at] = rules.product(ranks[at]);
    --count;
    std::copy(symbols + at + 2, symbols + count + 1, symbols + at + 1);
    std::copy(ranks + at + 2, ranks + count + 1, ranks + at + 1);
    ranks[at] = at + 1 < count ? rules.rank(symbols[at], symbols[at + 1]) : PairTable::no_rank;
    if (at > 0)
      ranks[at - 1] = rules.rank(symbols[at - 1], symbols[at]);
  }
  std::copy_n(symbols, 2, first_two);
  return count;
}

} // namespace

std::vector<PairTable::Pair> Vocabulary::listed_pairs(const Merges &merges) {
  if (character_merges_.size() + merges.size() >= PairTable::no_rank)
    throw std::invalid_argument("the vocabulary has " + std::to_string(merges.size()) + " merges; at most " +
                                std::to_string(PairTable::no_rank - 1) + " are supported");
  std::vector<PairTable::Pair> pairs = character_merges_;
  const size_t first_rank = pairs.size();
  pairs.reserve(first_rank + merges.size());
  products_.reserve(first_rank + merges.size());
  bool in_id_order = pairs.empty();
  const size_t prefix = text_ ? text_->prefix.size() : 0; // that a merge removes from its right part
  // Left, right and product of a block of merges are looked up together.
  constexpr size_t block = 32;
  std::string product_bytes;
  std::string_view wanted[3 * block];
  uint32_t symbols[3 * block];
  for (size_t start = 0; start < merges.size(); start += block) {
    const size_t count = std::min(block, merges.size() - start);
    product_bytes.clear();
    for (size_t i = 0; i < count; ++i)
      product_bytes.append(merges[start + i].first)
          .append(merges[start + i].second.substr(std::min(prefix, merges[start + i].second.size())));
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto &[left, right] = merges[start + i];
      wanted[3 * i] = left;
      wanted[3 * i + 1] = right;
      const size_t size = left.size() + right.size() - std::min(prefix, right.size());
      wanted[3 * i + 2] = std::string_view(product_bytes).substr(at, size);
      at += size;
    }
    find_all(wanted, 3 * count, symbols);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t rank = static_cast<uint32_t>(start + i);
      static constexpr const char *roles[] = {"left part", "right part", "product"};
      for (size_t part = 0; part < 3; ++part)
        if (symbols[3 * i + part] == PairTable::no_symbol)
          throw std::invalid_argument("merges[" + std::to_string(rank) + "]: " + roles[part] +
                                      " is not an entry of the vocabulary (got " +
                                      quoted(wanted[3 * i + part]) + ")");
      const uint32_t product = symbols[3 * i + 2];
      in_id_order = in_id_order && (products_.empty() || products_.back() < product);
      products_.push_back(product);
      pairs.push_back({symbols[3 * i], symbols[3 * i + 1], static_cast<uint32_t>(first_rank + rank)});
    }
  }
  if (in_id_order) {
    // Trainers write products that ascend with the ranks, so no pair is listed twice and the product can be
    // used as the rank, which saves a load per merge.
    for (PairTable::Pair &pair : pairs)
      pair.rank = products_[pair.rank];
    products_.clear();
  }
  return pairs;
}

// Which split of an entry can merge? In any context, the merges within the bytes of the entry happen in the
// same order as for the bytes alone, as long as no merge crosses their ends. If two symbols ever make up the
// entry, they are the two that the bytes alone produce, so no other split can occur. The merges before that
// make shorter entries only. Entries are therefore processed shortest first: the pair of an entry is the
// result of merging its bytes with the pairs of shorter entries, if that result is two symbols.
std::vector<PairTable::Pair> Vocabulary::rank_file_pairs(std::vector<uint32_t> &unreachable) const {
  std::vector<uint32_t> shortest_first(size());
  std::iota(shortest_first.begin(), shortest_first.end(), 0u);
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [&](uint32_t a, uint32_t b) { return bytes(a).size() < bytes(b).size(); });
  std::vector<PairTable::Pair> pairs;
  pairs.reserve(size());
  GrowingPairs known(symbol_of_byte_, size());
  HeapMerge heap;
  for (const uint32_t symbol : shortest_first) {
    uint32_t parts[2];
    if (bytes(symbol).size() < 2)
      continue;
    if (merged(known, bytes(symbol), heap, parts) != 2) {
      unreachable.push_back(symbol);
      continue;
    }
    pairs.push_back({parts[0], parts[1], symbol});
    known.insert(parts[0], parts[1], symbol);
  }
  return pairs;
}

std::vector<uint32_t> Vocabulary::list_unreachable() const {
  std::vector<uint32_t> unreachable;
  if (merges_characters_) {
    unreachable.resize(size());
    std::iota(unreachable.begin(), unreachable.end(), 0u);
    return unreachable;
  }
  constexpr uint32_t batch = 512; // entries merged at once
  const auto scratch = std::make_unique_for_overwrite<RankMergeScratch>();
  HeapMerge heap;
  std::vector<uint32_t> made;
  for (uint32_t first = 0; first < size(); first += batch) {
    std::vector<std::string> entries;
    size_t bytes = 0;
    for (uint32_t symbol = first; symbol < std::min<size_t>(size(), size_t{first} + batch); ++symbol)
      bytes += entries.emplace_back(in_text(symbol)).size();
    made.resize(bytes);
    std::vector<PretokenMerge> merges;
    std::vector<uint32_t> symbols;
    uint32_t *room = made.data();
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const uint8_t *const text = reinterpret_cast<const uint8_t *>(entries[i].data());
      if (entries[i].size() <= max_rank_merge_bytes) {
        merges.push_back({text, static_cast<uint32_t>(entries[i].size()), 0, room});
        symbols.push_back(first + i);
        room += entries[i].size();
      } else if (heap.merge(*this, text, entries[i].size()).size() != 1) {
        unreachable.push_back(first + i);
      }
    }
    simd_variant().merge_pretokens(merge_tables(), merges.data(), merges.size(), *scratch);
    for (size_t i = 0; i < merges.size(); ++i)
      if (merges[i].count != 1)
        unreachable.push_back(symbols[i]);
  }
  return unreachable;
}

std::vector<uint32_t> Vocabulary::every_split() const {
  std::vector<uint32_t> splits;
  std::vector<std::pair<uint32_t, uint32_t>> of_entry;
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    const std::string_view entry = bytes(symbol);
    of_entry.clear();
    for (size_t place = 1; place < entry.size(); ++place) {
      const uint32_t left = find(entry.substr(0, place));
      if (left == PairTable::no_symbol)
        continue;
      const uint32_t right = find(entry.substr(place));
      if (right != PairTable::no_symbol)
        of_entry.emplace_back(left, right);
    }
    std::sort(of_entry.begin(), of_entry.end());
    for (const auto &[left, right] : of_entry) {
      splits.push_back(left);
      splits.push_back(right);
    }
  }
  return splits;
}

} // namespace bpe
