#include "vocabulary/vocabulary.hpp"

#include "common/prefetch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

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

constexpr uint32_t lines_ahead = 16; // prefetch distance

} // namespace

std::string quoted(std::string_view bytes) {
  static const char digits[] = "0123456789abcdef";
  constexpr size_t longest = 60; // keeps a message on one line
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

Vocabulary::Vocabulary(std::vector<Entry> entries, const std::optional<Merges> &merges, bool ignore_merges,
                       std::optional<TextRules> text)
    : is_rank_file_(!merges), text_(std::move(text)) {
  check_entry_count(entries.size());
  if (!std::ranges::is_sorted(entries, {}, &Entry::id))
    std::ranges::sort(entries, {}, &Entry::id);
  size_t total = 0;
  for (const Entry &entry : entries)
    total += entry.bytes.size();
  bytes_.reserve(total);
  ids_.reserve(entries.size());
  starts_.reserve(entries.size() + 1);
  for (const Entry &entry : entries) {
    if (entry.bytes.empty())
      throw std::invalid_argument("vocab[" + std::to_string(entry.id) + "]: must not be empty");
    ids_.push_back(entry.id);
    starts_.push_back(bytes_.size());
    bytes_ += entry.bytes;
  }
  starts_.push_back(bytes_.size());
  index_entries();
  ids_are_symbols_ = !text_ && (ids_.empty() || ids_.back() == size() - 1); // ids ascend
  if (text_) {
    list_byte_entries();
    list_text_symbols(merges_bytes(*merges));
  } else {
    list_bytes();
  }

  std::vector<uint32_t> unreachable;
  pairs_ = PairTable(merges ? listed_pairs(*merges) : rank_file_pairs(unreachable));

  list_neighbours();
  if (merges && ignore_merges)
    unreachable = list_unreachable();
  index_unreachable(unreachable);
}

void Vocabulary::check_entry_count(size_t entries) {
  if (entries >= PairTable::no_symbol)
    throw std::invalid_argument("the vocabulary has " + std::to_string(entries) + " entries; at most " +
                                std::to_string(PairTable::no_symbol - 1) + " are supported");
}

Vocabulary::Vocabulary(const std::array<uint8_t, 256> &byte_order, const uint32_t *merges, size_t merge_count,
                       uint32_t first_id, const MemoryLimit &limit)
    : is_rank_file_(false) {
  const size_t entries = 256 + merge_count;
  check_entry_count(entries);
  if (first_id > uint64_t{INT32_MAX} + 1 - entries)
    throw std::invalid_argument("the ids of " + std::to_string(entries) + " entries from " +
                                std::to_string(first_id) + " on pass 2^31");
  std::vector<PairTable::Pair> pairs;
  pairs.reserve(merge_count);
  starts_.reserve(entries + 1);
  for (size_t symbol = 0; symbol <= 256; ++symbol)
    starts_.push_back(symbol);
  const auto size_of = [&](uint32_t symbol) { return starts_[symbol + 1] - starts_[symbol]; };
  for (size_t merge = 0; merge < merge_count; ++merge) {
    const uint32_t left = merges[2 * merge], right = merges[2 * merge + 1];
    for (const uint32_t part : {left, right})
      if (part >= 256 + merge)
        throw std::invalid_argument("merge " + std::to_string(merge) + " joins the entry of merge " +
                                    std::to_string(part - 256) + ", which is not made yet");
    // The products ascend with the ranks, so the product can be used as the rank (see listed_pairs).
    pairs.push_back({left, right, static_cast<uint32_t>(256 + merge)});
    starts_.push_back(starts_.back() + size_of(left) + size_of(right));
  }
  limit.expect(2 * starts_.back() + 200 * entries);
  bytes_.reserve(starts_.back());
  for (const uint8_t byte : byte_order)
    bytes_ += static_cast<char>(byte);
  for (const PairTable::Pair &pair : pairs)
    for (const uint32_t part : {pair.left, pair.right})
      bytes_.append(bytes_, starts_[part], size_of(part));
  ids_.resize(entries);
  std::iota(ids_.begin(), ids_.end(), first_id);
  index_entries();
  ids_are_symbols_ = first_id == 0;
  list_bytes();
  pairs_ = PairTable(pairs);
  list_neighbours();
  index_unreachable({});
}

// Tabulate the ranks and joins of all pairs of bytes.
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
  std::string in_text_form;
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    std::string_view entry = bytes(symbol);
    if (text_ && text_->has_spaces)
      entry = in_text_form = in_text(symbol);
    for (size_t i = 1; i < entry.size(); ++i)
      joined_[static_cast<uint8_t>(entry[i - 1]) << 8 | static_cast<uint8_t>(entry[i])] = 1;
  }
  // Adjacent unknown characters are one token.
  if (fuses_unknown())
    for (uint32_t left = 0; left < 256; ++left)
      for (uint32_t right = 0; right < 256; ++right)
        joined_[left << 8 | right] |=
            ids_[symbol_of_byte_[left]] >= hidden_id && ids_[symbol_of_byte_[right]] >= hidden_id;
}

std::vector<PairTable::Pair> Vocabulary::pairs() const {
  std::vector<PairTable::Pair> pairs = pairs_.pairs();
  pairs.erase(pairs.begin(), pairs.begin() + static_cast<ptrdiff_t>(character_merges_.size()));
  return pairs;
}

void Vocabulary::index_entries() {
  index_.assign(std::bit_ceil(2 * size() + 2), IndexSlot{0, PairTable::no_symbol});
  const size_t mask = index_.size() - 1;
  std::vector<uint32_t> hashes(size());
  for (uint32_t symbol = 0; symbol < size(); ++symbol)
    hashes[symbol] = hash_of(bytes(symbol));
  for (uint32_t symbol = 0; symbol < size(); ++symbol) {
    if (symbol + lines_ahead < size())
      prefetch_to_read(&index_[hashes[symbol + lines_ahead] & mask]);
    const uint32_t hash = hashes[symbol];
    size_t place = hash & mask;
    for (; index_[place].symbol != PairTable::no_symbol; place = (place + 1) & mask)
      if (index_[place].hash == hash && bytes(index_[place].symbol) == bytes(symbol))
        throw std::invalid_argument("vocab[" + std::to_string(id(index_[place].symbol)) +
                                    "]: same bytes as vocab[" + std::to_string(id(symbol)) + "] (got " +
                                    quoted(bytes(symbol)) + ")");
    index_[place] = {hash, symbol};
  }
}

void Vocabulary::list_bytes() {
  std::vector<char> missing;
  for (uint32_t value = 0; value < 256; ++value) {
    const char byte = static_cast<char>(value);
    symbol_of_byte_[value] = find({&byte, 1});
    if (symbol_of_byte_[value] == PairTable::no_symbol)
      missing.push_back(byte);
  }
  if (!missing.empty())
    throw std::invalid_argument("vocab: " + std::to_string(missing.size()) +
                                " of the 256 bytes have no entry, the first is " +
                                quoted({missing.data(), 1}) + ". Add an entry for each byte.");
}

std::optional<std::string_view> Vocabulary::entry(uint64_t id) const {
  const auto end = ids_.begin() + static_cast<ptrdiff_t>(size());
  const auto place = std::lower_bound(ids_.begin(), end, id);
  if (place == end || *place != id)
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

// find() for many entries: prefetches table lines while other entries are hashed, which halves the time to
// load half a million merges.
void Vocabulary::find_all(const std::string_view *wanted, size_t count, uint32_t *symbols) const {
  constexpr size_t block = 96;
  const size_t mask = index_.size() - 1;
  uint32_t hashes[block];
  for (; count > 0;) {
    const size_t some = std::min(count, block);
    for (size_t i = 0; i < some; ++i) {
      hashes[i] = hash_of(wanted[i]);
      prefetch_to_read(&index_[hashes[i] & mask]);
    }
    for (size_t i = 0; i < some; ++i) {
      size_t place = hashes[i] & mask;
      while (index_[place].symbol != PairTable::no_symbol && index_[place].hash != hashes[i])
        place = (place + 1) & mask;
      symbols[i] = index_[place].symbol;
      if (symbols[i] != PairTable::no_symbol)
        prefetch_to_read(&starts_[symbols[i]]);
    }
    for (size_t i = 0; i < some; ++i)
      if (symbols[i] != PairTable::no_symbol && bytes(symbols[i]) != wanted[i])
        symbols[i] = find(wanted[i]); // another entry with this hash came first
    wanted += some;
    symbols += some;
    count -= some;
  }
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

} // namespace bpe
