#include "vocabulary/vocabulary.hpp"

#include "common/image.hpp"
#include "merge/merge_pretoken.hpp"
#include "simd/simd_variants.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace bpe {

namespace {

uint32_t hash_of(std::string_view bytes) {
  uint64_t hash = bytes.size(), word = 0;
  size_t i = 0;
  const auto mix = [&] {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 32;
  };
  for (; i + 8 <= bytes.size(); i += 8) {
    std::memcpy(&word, bytes.data() + i, 8);
    mix();
  }
  word = 0;
  std::memcpy(&word, bytes.data() + i, bytes.size() - i);
  mix();
  return static_cast<uint32_t>(hash * 0xC2B2AE3D27D4EB4Full >> 32);
}

constexpr uint32_t lines_ahead = 16; // how far ahead of use a cache line is asked for

inline void prefetch(const void *place) {
#if defined(__GNUC__)
  __builtin_prefetch(place);
#else
  (void)place;
#endif
}

// The pairs of a rank file as they are found, shortest products first: what rank_file_pairs merges by.
class GrowingPairs {
public:
  GrowingPairs(const uint32_t *symbol_of_byte, size_t max_pairs)
      : symbol_of_byte_(symbol_of_byte), slots_(std::bit_ceil(2 * max_pairs + 2), Slot{empty, 0}) {}

  uint32_t symbol_of_byte(uint8_t byte) const { return symbol_of_byte_[byte]; }
  uint32_t product(uint32_t rank) const { return rank; }
  uint32_t rank_of_bytes(uint8_t left, uint8_t right) const {
    return rank(symbol_of_byte_[left], symbol_of_byte_[right]);
  }
  uint32_t rank(uint32_t left, uint32_t right) const {
    const Slot &slot = slots_[place_of(left, right)];
    return slot.key == empty ? PairTable::no_rank : slot.rank;
  }
  void insert(uint32_t left, uint32_t right, uint32_t rank) {
    slots_[place_of(left, right)] = {uint64_t{left} << 32 | right, rank};
  }

private:
  static constexpr uint64_t empty = ~uint64_t{0};
  struct Slot {
    uint64_t key;
    uint32_t rank;
  };
  size_t place_of(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    const size_t mask = slots_.size() - 1;
    size_t place = (key ^ key >> 32) * 0x9E3779B97F4A7C15ull >> 32 & mask;
    while (slots_[place].key != key && slots_[place].key != empty)
      place = (place + 1) & mask;
    return place;
  }

  const uint32_t *symbol_of_byte_;
  std::vector<Slot> slots_;
};

// The symbols the merges of these bytes end with: how many, and the first two.
template <class Rules>
size_t merged(const Rules &rules, std::string_view bytes, MergeScratch &scratch, uint32_t (&first_two)[2]) {
  const uint8_t *const data = reinterpret_cast<const uint8_t *>(bytes.data());
  uint32_t symbols[short_pretoken_bytes];
  const uint32_t *result = symbols;
  size_t count;
  if (bytes.size() <= short_pretoken_bytes) {
    count = merge_short(rules, data, bytes.size(), symbols);
  } else {
    const std::vector<uint32_t> &long_result = scratch.merge_long(rules, data, bytes.size());
    count = long_result.size();
    result = long_result.data();
  }
  std::copy_n(result, std::min<size_t>(count, 2), first_two);
  return count;
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

Vocabulary::Vocabulary(std::vector<Entry> entries, const std::optional<Merges> &merges, bool whole_pretokens)
    : is_rank_file_(!merges) {
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
  ids_are_symbols_ = ids_.empty() || ids_.back() == size() - 1; // ids ascend
  list_bytes();

  std::vector<uint32_t> unreachable;
  pairs_ = PairTable(merges ? listed_pairs(*merges) : rank_file_pairs(unreachable));

  list_neighbours();
  if (merges && whole_pretokens)
    unreachable = list_unreachable();
  index_unreachable(unreachable);
}

// What two neighbouring bytes mean.
void Vocabulary::list_neighbours() {
  byte_pairs_.resize(65536);
  pairs_hold_symbols_ =
      *std::max_element(symbol_of_byte_, symbol_of_byte_ + 256) < 1u << (32 - MergeTables::pair_symbol_shift);
  for (uint32_t left = 0; left < 256; ++left)
    for (uint32_t right = 0; right < 256; ++right)
      byte_pairs_[left << 8 | right] =
          rank(symbol_of_byte_[left], symbol_of_byte_[right]) |
          (pairs_hold_symbols_ ? symbol_of_byte_[left] << MergeTables::pair_symbol_shift : 0);
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
  std::vector<uint32_t> hashes(size());
  for (uint32_t symbol = 0; symbol < size(); ++symbol)
    hashes[symbol] = hash_of(bytes(symbol));
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    if (symbol + lines_ahead < size())
      prefetch(&index_[hashes[symbol + lines_ahead] & mask]);
    const uint32_t hash = hashes[symbol];
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

std::optional<std::string_view> Vocabulary::entry(uint64_t id) const {
  const auto place = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (place == ids_.end() || *place != id)
    return std::nullopt;
  return bytes(static_cast<uint32_t>(place - ids_.begin()));
}

uint32_t Vocabulary::find(std::string_view bytes) const {
  return find_in(index_, bytes);
}

uint32_t Vocabulary::find_unreachable(std::string_view bytes) const {
  return find_in(unreachable_, bytes);
}

uint32_t Vocabulary::find_in(const Index &index, std::string_view wanted) const {
  const uint32_t hash = hash_of(wanted);
  const size_t mask = index.size() - 1;
  for (size_t place = hash & mask;; place = (place + 1) & mask) {
    const IndexSlot slot = index[place];
    if (slot.symbol == PairTable::no_symbol || (slot.hash == hash && bytes(slot.symbol) == wanted))
      return slot.symbol;
  }
}

// find() of many: the table's lines are on their way while the others are hashed, which halves the time of
// loading half a million merges.
void Vocabulary::find_all(const std::string_view *wanted, size_t count, uint32_t *symbols) const {
  constexpr size_t block = 96;
  const size_t mask = index_.size() - 1;
  uint32_t hashes[block];
  for (; count > 0;) {
    const size_t some = std::min(count, block);
    for (size_t i = 0; i < some; ++i) {
      hashes[i] = hash_of(wanted[i]);
      prefetch(&index_[hashes[i] & mask]);
    }
    for (size_t i = 0; i < some; ++i) {
      size_t place = hashes[i] & mask;
      while (index_[place].symbol != PairTable::no_symbol && index_[place].hash != hashes[i])
        place = (place + 1) & mask;
      symbols[i] = index_[place].symbol;
      if (symbols[i] != PairTable::no_symbol)
        prefetch(&starts_[symbols[i]]);
    }
    for (size_t i = 0; i < some; ++i)
      if (symbols[i] != PairTable::no_symbol && bytes(symbols[i]) != wanted[i])
        symbols[i] = find(wanted[i]); // another entry with this hash stood before it
    wanted += some;
    symbols += some;
    count -= some;
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
  // Left, right and product of a block of merges are looked up together.
  constexpr size_t block = 32;
  std::string product_bytes;
  std::string_view wanted[3 * block];
  uint32_t symbols[3 * block];
  for (size_t start = 0; start < merges.size(); start += block) {
    const size_t count = std::min(block, merges.size() - start);
    product_bytes.clear();
    for (size_t i = 0; i < count; ++i)
      product_bytes.append(merges[start + i].first).append(merges[start + i].second);
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto &[left, right] = merges[start + i];
      wanted[3 * i] = left;
      wanted[3 * i + 1] = right;
      wanted[3 * i + 2] = std::string_view(product_bytes).substr(at, left.size() + right.size());
      at += left.size() + right.size();
    }
    find_all(wanted, 3 * count, symbols);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t rank = static_cast<uint32_t>(start + i);
      static constexpr const char *roles[] = {"left part", "right part", "product"};
      for (size_t part = 0; part < 3; ++part)
        if (symbols[3 * i + part] == PairTable::no_symbol)
          throw std::invalid_argument("merge " + std::to_string(rank) + " (" + quoted(wanted[3 * i]) + ", " +
                                      quoted(wanted[3 * i + 1]) + "): its " + roles[part] + " " +
                                      quoted(wanted[3 * i + part]) + " is not an entry of the vocabulary");
      const uint32_t product = symbols[3 * i + 2];
      in_id_order = in_id_order && (products_.empty() || products_.back() < product);
      products_.push_back(product);
      pairs.push_back({symbols[3 * i], symbols[3 * i + 1], rank});
    }
  }
  if (in_id_order) {
    // What trainers write: products ascend with the ranks, so no pair is listed twice and the product can
    // stand for the rank, which saves a load per merge.
    for (PairTable::Pair &pair : pairs)
      pair.rank = products_[pair.rank];
    products_.clear();
  }
  return pairs;
}

// Which split of an entry can merge? Whatever text surrounds the entry's bytes, the merges within them happen
// in the order in which they happen for the bytes alone, as long as no merge crosses their ends. So if two
// symbols come to make up the entry, they are the two that the bytes alone come to; no other split is ever
// seen. The merges before that make shorter entries only: shortest first, each entry's own pair is what its
// bytes merge to by the pairs of the shorter ones, if those are two symbols.
std::vector<PairTable::Pair> Vocabulary::rank_file_pairs(std::vector<uint32_t> &unreachable) const {
  std::vector<uint32_t> shortest_first(size());
  std::iota(shortest_first.begin(), shortest_first.end(), 0u);
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [&](uint32_t a, uint32_t b) { return bytes(a).size() < bytes(b).size(); });
  std::vector<PairTable::Pair> pairs;
  pairs.reserve(size());
  GrowingPairs known(symbol_of_byte_, size());
  MergeScratch scratch;
  for (const uint32_t symbol : shortest_first) {
    uint32_t parts[2];
    if (bytes(symbol).size() < 2)
      continue;
    if (merged(known, bytes(symbol), scratch, parts) != 2) {
      unreachable.push_back(symbol);
      continue;
    }
    pairs.push_back({parts[0], parts[1], symbol});
    known.insert(parts[0], parts[1], symbol);
  }
  return pairs;
}

std::vector<uint32_t> Vocabulary::list_unreachable() const {
  std::vector<uint32_t> symbols;
  MergeScratch scratch;
  const MergeShortPretokens merge_short_pretokens = simd_variant().merge_short_pretokens;
  ShortMerge merges[max_short_merges];
  uint32_t of_merge[max_short_merges];
  size_t count = 0;
  const auto merge_gathered = [&] { // several at once: 50 ns each in place of 400
    merge_short_pretokens(merge_tables(), merges, count);
    for (size_t i = 0; i < count; ++i)
      if (merges[i].count != 1)
        symbols.push_back(of_merge[i]);
    count = 0;
  };
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    const std::string_view entry = bytes(symbol);
    if (entry.size() > sizeof merges[0].bytes) {
      uint32_t parts[2];
      if (merged(*this, entry, scratch, parts) != 1)
        symbols.push_back(symbol);
      continue;
    }
    ShortMerge &merge = merges[count];
    std::memset(merge.bytes, 0, sizeof merge.bytes);
    std::memcpy(merge.bytes, entry.data(), entry.size());
    merge.size = static_cast<uint32_t>(entry.size());
    of_merge[count++] = symbol;
    if (count == max_short_merges)
      merge_gathered();
  }
  merge_gathered();
  return symbols;
}

void Vocabulary::index_unreachable(const std::vector<uint32_t> &symbols) {
  unreachable_count_ = symbols.size();
  unreachable_.assign(std::bit_ceil(4 * symbols.size() + 2), IndexSlot{0, PairTable::no_symbol});
  const size_t mask = unreachable_.size() - 1;
  for (const uint32_t symbol : symbols) {
    const uint32_t hash = hash_of(bytes(symbol));
    size_t place = hash & mask;
    while (unreachable_[place].symbol != PairTable::no_symbol)
      place = (place + 1) & mask;
    unreachable_[place] = {hash, symbol};
  }
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

void Vocabulary::write(ImageWriter &image) const {
  image.put(uint64_t{is_rank_file_});
  image.put_array(ids_);
  image.put_array(starts_);
  image.put_array(bytes_);
  image.put_array(products_);
  pairs_.write(image);
  std::vector<uint32_t> unreachable;
  for (const IndexSlot &slot : unreachable_)
    if (slot.symbol != PairTable::no_symbol)
      unreachable.push_back(slot.symbol);
  image.put_array(unreachable);
}

Vocabulary::Vocabulary(ImageReader &image) : is_rank_file_(image.get<uint64_t>() != 0) {
  const auto require = [](bool good) {
    if (!good)
      throw std::invalid_argument("the image's entries are damaged");
  };
  image.get_array(ids_);
  image.get_array(starts_);
  image.get_array(bytes_);
  require(size() < PairTable::no_symbol && starts_.size() == size() + 1 && starts_[0] == 0 &&
          starts_.back() == bytes_.size());
  for (size_t symbol = 0; symbol < size(); ++symbol)
    require(starts_[symbol] < starts_[symbol + 1] && ids_[symbol] <= INT32_MAX &&
            (symbol == 0 || ids_[symbol - 1] < ids_[symbol]));
  index_entries();
  ids_are_symbols_ = ids_.empty() || ids_.back() == size() - 1; // ids ascend
  list_bytes();
  image.get_array(products_);
  require(products_.size() < PairTable::no_rank);
  for (const uint32_t product : products_)
    require(product < size());
  pairs_ = PairTable(image, size(), products_.empty() ? size() : products_.size());
  list_neighbours();
  std::vector<uint32_t> unreachable;
  image.get_array(unreachable);
  require(unreachable.size() <= size());
  for (const uint32_t symbol : unreachable)
    require(symbol < size());
  index_unreachable(unreachable);
}

} // namespace bpe
