#include "vocabulary/character_table.hpp"

#include "common/byte_order.hpp"
#include "common/prefetch.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bpe {

namespace {

// of three bytes; surrogates and shorter characters are harmless
constexpr uint32_t stop_code_point = 0x10000;

// Return the top bit of each of eight bytes that starts a three-byte character.
uint64_t leads_of(uint64_t eight) {
  return eight & eight << 1 & eight << 2 & ~(eight << 3) & 0x8080808080808080;
}

// PairTable::View::rank for many pairs: prefetches cache lines while other ranks are computed.
void find_ranks(const PairTable::View &pairs, const std::vector<PairTable::Pair> &of,
                std::vector<uint32_t> &ranks) {
  constexpr size_t block = 64;
  ranks.resize(of.size());
  for (size_t start = 0; start < of.size(); start += block) {
    const size_t stop = std::min(start + block, of.size());
    const auto bucket = [&](size_t i) { return pairs.hash(of[i].left, of[i].right) >> pairs.bucket_shift; };
    for (size_t i = start; i < stop; ++i)
      prefetch_to_read(&pairs.displacements[bucket(i)]);
    for (size_t i = start; i < stop; ++i)
      prefetch_to_read(&pairs.slots[pairs.slot(pairs.hash(of[i].left, of[i].right), of[i].left,
                                               pairs.displacements[bucket(i)])]);
    for (size_t i = start; i < stop; ++i)
      ranks[i] = pairs.rank(of[i].left, of[i].right);
  }
}

uint32_t code_point(std::string_view entry, size_t at) {
  return Characters::code_point(reinterpret_cast<const uint8_t *>(entry.data()) + at);
}

} // namespace

// The three-byte characters in entries.
struct CharacterTable::Found {
  std::vector<uint32_t> one = std::vector<uint32_t>(stop_code_point, PairTable::no_symbol); // by code point
  std::vector<uint32_t> two; // entries of two characters
  // Adjacent characters within entries; few of them repeat.
  std::vector<PairTable::Pair> joined;
  std::vector<uint64_t> seen = std::vector<uint64_t>(1 << 14); // by hash
};

CharacterTable::CharacterTable(const Vocabulary &vocabulary)
    : characters_(stop_code_point * sizeof(Characters::Character), PageMemory::Pages::small),
      partly_joined_(64), // the first part has no bits
      joined_bytes_(vocabulary.joined_bytes()),
      line_feed_id_(vocabulary.id(vocabulary.symbol_of_byte('\n'))) {
  characters_.populate(0, characters_.bytes());
  Found found;
  list_entries(vocabulary, found);
  fill_ids(vocabulary, found.one);
  fill_pairs(vocabulary, found);
}

Characters::Character *CharacterTable::characters() const {
  return static_cast<Characters::Character *>(characters_.data());
}

// Search all entries for lead bytes, as one string, since most entries have none.
void CharacterTable::list_entries(const Vocabulary &vocabulary, Found &found) {
  const std::string_view all = vocabulary.all_bytes();
  uint32_t symbol = 0;
  for (size_t at = 0; at < all.size(); at += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, all.data() + at, std::min<size_t>(8, all.size() - at));
    for (uint64_t leads = leads_of(eight); leads != 0; leads &= leads - 1) {
      const size_t lead = at + static_cast<size_t>(std::countr_zero(leads)) / 8;
      while (vocabulary.start(symbol + 1) <= lead)
        ++symbol;
      list_character(vocabulary, symbol, lead - vocabulary.start(symbol), found);
    }
  }
}

// Record the character of an entry that starts at byte `at`.
void CharacterTable::list_character(const Vocabulary &vocabulary, uint32_t symbol, size_t at, Found &found) {
  const std::string_view entry = vocabulary.bytes(symbol);
  const auto *const bytes = reinterpret_cast<const uint8_t *>(entry.data());
  if (at > 0)
    return list_border(entry, at, found);
  if (entry.size() == 3 && Characters::starts_at(bytes, 3)) {
    if (vocabulary.text_rules() && vocabulary.text_rules()->has_spaces && entry == lower_block)
      return; // no text contains it
    found.one[Characters::code_point(bytes)] = symbol;
    has_unreachable_ |=
        !vocabulary.all_reachable() && vocabulary.find_unreachable(entry) != PairTable::no_symbol;
  } else if (entry.size() == 6 && Characters::starts_at(bytes, 3) && Characters::starts_at(bytes + 3, 3)) {
    found.two.push_back(symbol);
  }
}

// Record a position in an entry that could be a border between two three-byte characters.
void CharacterTable::list_border(std::string_view entry, size_t at, Found &found) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(entry.data());
  const size_t right = entry.size() - at;
  if (!continues_character(bytes[at - 1]))
    return;
  if (at < 3 || right < 3)
    return mark_part(bytes + at, at, right);
  if (!Characters::starts_at(bytes + at - 3, 3) || !Characters::starts_at(bytes + at, 3))
    return;
  const uint32_t before = Characters::code_point(bytes + at - 3), behind = Characters::code_point(bytes + at);
  const uint64_t pair = uint64_t{before} << 32 | behind;
  if (uint64_t &slot = found.seen[pair * 0x9E3779B97F4A7C15ull >> 50]; slot != pair) {
    slot = pair;
    found.joined.push_back({before, behind, Characters::apart});
    characters()[before].followers |= uint32_t{1} << (behind & 31);
    characters()[behind].leaders |= uint32_t{1} << (before & 31);
  }
}

// At most two merges: one of two of the three bytes, then one of the product and the third byte if all three
// are an entry. Written out, which is faster than merging each character like a pretoken. one: the entry of
// each character; set to no_symbol if merges do not make the entry.
void CharacterTable::fill_ids(const Vocabulary &vocabulary, std::vector<uint32_t> &one) {
  const MergeTables tables = vocabulary.merge_tables();
  const bool is_text = vocabulary.text_rules() && !vocabulary.text_rules()->byte_level;
  const auto set_ids = [&](uint32_t c, const uint32_t *symbols, size_t count) {
    uint64_t ids = 0;
    for (size_t i = 3; i-- > 0;) {
      const uint32_t id = i < count ? vocabulary.id(symbols[i]) : Characters::no_id;
      has_ids_ &= i >= count || id < Characters::no_id;
      ids = ids << Characters::id_bits | id;
    }
    characters()[c].ids = ids;
  };
  std::vector<PairTable::Pair>
      last_merges; // for characters that are entries: the code point instead of a rank
  for (uint32_t c = 0; c < stop_code_point; ++c) {
    const uint8_t bytes[3] = {static_cast<uint8_t>(0xE0 | c >> 12),
                              static_cast<uint8_t>(0x80 | (c >> 6 & 63)),
                              static_cast<uint8_t>(0x80 | (c & 63))};
    const bool is_entry = one[c] != PairTable::no_symbol;
    const uint32_t first = tables.rank_of_bytes(bytes[0], bytes[1]);
    const uint32_t second = tables.rank_of_bytes(bytes[1], bytes[2]);
    uint32_t symbols[3] = {tables.symbol_of_byte[bytes[0]], tables.symbol_of_byte[bytes[1]],
                           tables.symbol_of_byte[bytes[2]]};
    const bool is_unknown = is_text && !is_entry; // so it becomes its bytes
    if (is_unknown || (first == PairTable::no_rank && second == PairTable::no_rank)) {
      set_ids(c, symbols, 3);
      one[c] = PairTable::no_symbol;
      continue;
    }
    if (first <= second) {
      symbols[0] = vocabulary.product(first);
      symbols[1] = symbols[2];
    } else {
      symbols[1] = vocabulary.product(second);
    }
    if (is_entry)
      last_merges.push_back({symbols[0], symbols[1], c});
    else
      set_ids(c, symbols, 2);
  }
  std::vector<uint32_t> ranks;
  find_ranks(tables.pairs, last_merges, ranks);
  for (size_t i = 0; i < last_merges.size(); ++i) {
    const auto [left, right, c] = last_merges[i];
    const uint32_t symbols[2] = {left, right};
    if (ranks[i] == PairTable::no_rank) {
      set_ids(c, symbols, 2);
      one[c] = PairTable::no_symbol;
    } else {
      set_ids(c, &one[c], 1);
    }
  }
}

// found.one: the entry of each character that merges make into one.
void CharacterTable::fill_pairs(const Vocabulary &vocabulary, Found &found) {
  std::vector<PairTable::Pair> halves;
  halves.reserve(found.two.size());
  size_t known = 0;
  for (const uint32_t symbol : found.two) {
    const std::string_view entry = vocabulary.bytes(symbol);
    const uint32_t before = code_point(entry, 0), behind = code_point(entry, 3);
    if (!vocabulary.all_reachable() && vocabulary.find_unreachable(entry) != PairTable::no_symbol) {
      found.joined.push_back({before, behind, Characters::unreachable});
    } else if (found.one[before] != PairTable::no_symbol && found.one[behind] != PairTable::no_symbol) {
      halves.push_back({found.one[before], found.one[behind], 0});
      found.two[known++] = symbol;
    }
  }
  std::vector<uint32_t> ranks;
  find_ranks(vocabulary.merge_tables().pairs, halves, ranks);
  for (size_t i = 0; i < halves.size(); ++i) {
    if (ranks[i] == PairTable::no_rank)
      continue;
    const std::string_view entry = vocabulary.bytes(found.two[i]);
    const uint32_t id = vocabulary.id(found.two[i]); // the product has the bytes of this entry
    has_ids_ &= id < Characters::no_id;
    found.joined.push_back({code_point(entry, 0), code_point(entry, 3),
                            Characters::apart + 1 + std::min(id, Characters::no_id - 1)});
  }
  pairs_ = PairTable(found.joined); // for a duplicate pair, an ID takes precedence over `apart`
}

// Mark an entry with `left` bytes before a border and `right` bytes after it, where one of them is less than
// a character. If the entry does not determine the byte before or after, all are marked.
void CharacterTable::mark_part(const uint8_t *p, size_t left, size_t right) {
  const auto set = [](uint8_t (&bits)[128], uint32_t place) {
    bits[place >> 3] |= static_cast<uint8_t>(1u << (place & 7));
  };
  const bool any_before = left == 1, any_behind = right == 1;
  if ((!any_before && !continues_character(p[-2])) || (!any_behind && !continues_character(p[1])))
    return;
  const uint32_t x = p[-1], y = p[0], w = any_before ? 0 : p[-2] & 63u, z = any_behind ? 0 : p[1] & 63u;
  const uint32_t w_stop = any_before ? 64 : w + 1, z_stop = any_behind ? 64 : z + 1;
  uint16_t &part = partly_joined_parts_[Characters::end_of(x, y)];
  if (part == 0) {
    part = static_cast<uint16_t>(partly_joined_.size() / 64);
    partly_joined_.resize(partly_joined_.size() + 64);
  }
  const uint64_t before = any_before ? ~uint64_t{0} : uint64_t{1} << w;
  set(partly_joined_ends_, Characters::end_of(x, y));
  for (uint32_t one = z; one < z_stop; ++one) {
    partly_joined_[64 * part + one] |= before;
    set(partly_joined_starts_, Characters::start_of(y, one));
  }
  for (uint32_t one = w; one < w_stop; ++one)
    set(partly_joined_lasts_, Characters::last_of(one, x));
}

} // namespace bpe
