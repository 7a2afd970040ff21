#include "vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <tuple>

namespace bpe {

namespace {

// A polynomial hash modulo 2^64, so that the hash of every suffix follows from those of the prefixes.
constexpr uint64_t hash_base = 0x9E3779B97F4A7C15ull;

uint64_t extend_hash(uint64_t hash, uint8_t byte) {
  return hash * hash_base + byte + 1;
}

uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 0;
  for (const char c : bytes)
    hash = extend_hash(hash, static_cast<uint8_t>(c));
  return hash;
}

uint32_t folded(uint64_t hash) {
  return static_cast<uint32_t>((hash ^ hash >> 32) * 0xC2B2AE3D27D4EB4Full >> 32);
}

} // namespace

std::string quoted(std::string_view bytes) {
  static const char digits[] = "0123456789abcdef";
  constexpr size_t longest = 60; // a message stays one line
  std::string out = "b'";
  for (const char c : bytes.substr(0, longest)) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (byte == '\'' || byte == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out + (bytes.size() > longest ? "'..." : "'");
}

Vocabulary::Vocabulary(std::vector<Entry> entries, const std::optional<Merges> &merges) {
  if (entries.size() >= PairTable::no_symbol)
    throw std::invalid_argument("the vocabulary has " + std::to_string(entries.size()) +
                                " entries; at most " + std::to_string(PairTable::no_symbol - 1) +
                                " are supported");
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.id < b.id; });
  size_t total = 0;
  for (const Entry &entry : entries)
    total += entry.bytes.size();
  bytes_.reserve(total);
  ids_.reserve(entries.size());
  starts_.reserve(entries.size() + 1);
  for (const Entry &entry : entries) {
    if (entry.bytes.empty())
      throw std::invalid_argument("entry " + std::to_string(entry.id) +
                                  " is empty; every entry needs a byte");
    ids_.push_back(entry.id);
    starts_.push_back(bytes_.size());
    bytes_ += entry.bytes;
  }
  starts_.push_back(bytes_.size());
  index_entries();
  list_bytes();

  pairs_ = PairTable(merges ? listed_pairs(*merges) : rank_file_pairs());

  byte_ranks_.resize(65536);
  for (uint32_t left = 0; left < 256; ++left)
    for (uint32_t right = 0; right < 256; ++right)
      byte_ranks_[left << 8 | right] = rank(symbol_of_byte_[left], symbol_of_byte_[right]);
  joined_.assign(65536, 0);
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    const std::string_view entry = bytes(symbol);
    for (size_t i = 1; i < entry.size(); ++i)
      joined_[static_cast<uint8_t>(entry[i - 1]) << 8 | static_cast<uint8_t>(entry[i])] = 1;
  }
}

void Vocabulary::index_entries() {
  index_.assign(std::bit_ceil(2 * size() + 2), IndexSlot{0, PairTable::no_symbol});
  const size_t mask = index_.size() - 1;
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    const uint32_t hash = folded(hash_of(bytes(symbol)));
    size_t place = hash & mask;
    for (; index_[place].symbol != PairTable::no_symbol; place = (place + 1) & mask)
      if (index_[place].hash == hash && bytes(index_[place].symbol) == bytes(symbol))
        throw std::invalid_argument("entries " + std::to_string(id(index_[place].symbol)) + " and " +
                                    std::to_string(id(symbol)) + " are both " + quoted(bytes(symbol)) +
                                    "; the bytes of an entry must be its own");
    index_[place] = {hash, symbol};
  }
}

void Vocabulary::list_bytes() {
  std::string missing;
  size_t missing_count = 0;
  for (uint32_t value = 0; value < 256; ++value) {
    const char byte = static_cast<char>(value);
    symbol_of_byte_[value] = find({&byte, 1});
    if (symbol_of_byte_[value] != PairTable::no_symbol)
      continue;
    if (++missing_count <= 8)
      missing += (missing_count > 1 ? ", " : "") + quoted({&byte, 1});
  }
  if (missing_count == 0)
    return;
  if (missing_count > 8)
    missing += ", ...";
  throw std::invalid_argument("the vocabulary lacks " + std::to_string(missing_count) +
                              " of the 256 bytes (" + missing +
                              "); a byte-level vocabulary needs an entry for each");
}

uint32_t Vocabulary::find(std::string_view bytes) const {
  return find_hashed(hash_of(bytes), bytes);
}

uint32_t Vocabulary::find_hashed(uint64_t long_hash, std::string_view wanted) const {
  const uint32_t hash = folded(long_hash);
  const size_t mask = index_.size() - 1;
  for (size_t place = hash & mask;; place = (place + 1) & mask) {
    const IndexSlot slot = index_[place];
    if (slot.symbol == PairTable::no_symbol || (slot.hash == hash && bytes(slot.symbol) == wanted))
      return slot.symbol;
  }
}

std::vector<PairTable::Pair> Vocabulary::listed_pairs(const Merges &merges) {
  if (merges.size() >= PairTable::no_rank)
    throw std::invalid_argument("the vocabulary has " + std::to_string(merges.size()) + " merges; at most " +
                                std::to_string(PairTable::no_rank - 1) + " are supported");
  std::vector<PairTable::Pair> pairs;
  pairs.reserve(merges.size());
  products_.reserve(merges.size());
  bool in_id_order = true;
  std::string product_bytes;
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const auto &[left_bytes, right_bytes] = merges[rank];
    const auto symbol_of = [&](std::string_view part, const char *role) {
      const uint32_t symbol = find(part);
      if (symbol == PairTable::no_symbol)
        throw std::invalid_argument("merge " + std::to_string(rank) + " (" + quoted(left_bytes) + ", " +
                                    quoted(right_bytes) + "): its " + role + " " + quoted(part) +
                                    " is not an entry of the vocabulary");
      return symbol;
    };
    const uint32_t left = symbol_of(left_bytes, "left part"), right = symbol_of(right_bytes, "right part");
    product_bytes.assign(left_bytes).append(right_bytes);
    const uint32_t product = symbol_of(product_bytes, "product");
    in_id_order = in_id_order && (products_.empty() || products_.back() < product);
    products_.push_back(product);
    pairs.push_back({left, right, rank});
  }
  if (in_id_order) {
    // What trainers write: products ascend with the ranks, so no pair is listed twice and the product can
    // stand for the rank, which saves a load per merge.
    for (PairTable::Pair &pair : pairs)
      pair.rank = products_[pair.rank];
    products_.clear();
    return pairs;
  }
  // Of a pair listed twice keep the last.
  std::sort(pairs.begin(), pairs.end(), [](const PairTable::Pair &a, const PairTable::Pair &b) {
    return std::tie(a.left, a.right, b.rank) < std::tie(b.left, b.right, a.rank);
  });
  const auto same = [](const PairTable::Pair &a, const PairTable::Pair &b) {
    return a.left == b.left && a.right == b.right;
  };
  pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
  return pairs;
}

std::vector<PairTable::Pair> Vocabulary::rank_file_pairs() const {
  std::vector<PairTable::Pair> pairs;
  pairs.reserve(4 * size());
  std::vector<uint64_t> prefix_hashes, powers{1};
  for (uint32_t product = 0; product < size(); ++product) {
    const std::string_view entry = bytes(product);
    prefix_hashes.assign(1, 0);
    for (const char c : entry)
      prefix_hashes.push_back(extend_hash(prefix_hashes.back(), static_cast<uint8_t>(c)));
    while (powers.size() <= entry.size())
      powers.push_back(powers.back() * hash_base);
    for (size_t cut = 1; cut < entry.size(); ++cut) {
      const uint32_t left = find_hashed(prefix_hashes[cut], entry.substr(0, cut));
      if (left == PairTable::no_symbol)
        continue;
      const uint64_t suffix_hash = prefix_hashes.back() - prefix_hashes[cut] * powers[entry.size() - cut];
      const uint32_t right = find_hashed(suffix_hash, entry.substr(cut));
      if (right != PairTable::no_symbol)
        pairs.push_back({left, right, product});
    }
  }
  return pairs;
}

} // namespace bpe
