#include "vocabulary/character_table.hpp"

#include <algorithm>

namespace bpe {

namespace {

constexpr uint32_t stop_code_point = 0x10000; // of three bytes; surrogates and shorter ones do no harm

bool is_lead(uint8_t byte) {
  return (byte & 0xF0) == 0xE0;
}
bool continues(uint8_t byte) {
  return (byte & 0xC0) == 0x80;
}

// Two characters that an entry holds one behind the other, in the upper half of a word; an id may be in the
// lower.
constexpr uint32_t no_verdict = UINT32_MAX;
uint64_t joined_pair(uint32_t left, uint32_t right) {
  return uint64_t{left} << 48 | uint64_t{right} << 32;
}
uint64_t joined_pair(std::string_view entry) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(entry.data());
  return joined_pair(Characters::code_point(bytes), Characters::code_point(bytes + 3));
}

} // namespace

CharacterTable::CharacterTable(const Vocabulary &vocabulary)
    : characters_(stop_code_point), partly_joined_(64), // the first part has no bits
      joined_bytes_(vocabulary.joined_bytes()),
      line_feed_id_(vocabulary.id(vocabulary.symbol_of_byte('\n'))) {
  std::vector<bool> is_entry(stop_code_point);
  std::vector<uint32_t> two_characters; // entries
  std::vector<uint64_t> joined;
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol) {
    const std::string_view entry = vocabulary.bytes(symbol);
    list_borders(entry, joined);
    const auto *const bytes = reinterpret_cast<const uint8_t *>(entry.data());
    if (entry.size() == 3 && Characters::starts_at(bytes, 3)) {
      is_entry[Characters::code_point(bytes)] = true;
      has_unreachable_ |=
          !vocabulary.all_reachable() && vocabulary.find_unreachable(entry) != PairTable::no_symbol;
    } else if (entry.size() == 6 && Characters::starts_at(bytes, 3) && Characters::starts_at(bytes + 3, 3)) {
      two_characters.push_back(symbol);
    }
  }
  const std::vector<uint32_t> symbols = fill_ids(vocabulary, is_entry);
  for (const uint32_t symbol : two_characters)
    if (const uint32_t id = id_of_two(vocabulary, symbol, symbols); id != Characters::no_id)
      joined.push_back(joined_pair(vocabulary.bytes(symbol)) | id);
  fill_pairs(std::move(joined));
}

// The id that two characters become, which are an entry: see Characters::pairs. symbols: of each character
// that merges make one of.
uint32_t CharacterTable::id_of_two(const Vocabulary &vocabulary, uint32_t symbol,
                                   const std::vector<uint32_t> &symbols) {
  const std::string_view entry = vocabulary.bytes(symbol);
  if (!vocabulary.all_reachable() && vocabulary.find_unreachable(entry) != PairTable::no_symbol)
    return Characters::unreachable;
  const auto *const bytes = reinterpret_cast<const uint8_t *>(entry.data());
  const uint32_t left = symbols[Characters::code_point(bytes)],
                 right = symbols[Characters::code_point(bytes + 3)];
  if (left == PairTable::no_symbol || right == PairTable::no_symbol)
    return Characters::no_id;
  const uint32_t rank = vocabulary.rank(left, right);
  if (rank == PairTable::no_rank)
    return Characters::no_id;
  const uint32_t made = vocabulary.id(vocabulary.product(rank));
  has_ids_ &= made < Characters::no_id;
  return std::min(made, Characters::no_id);
}

// joined: pairs in any order and more than once, of which the one that tells an id counts.
void CharacterTable::fill_pairs(std::vector<uint64_t> joined) {
  std::sort(joined.begin(), joined.end());
  std::vector<PairTable::Pair> pairs;
  pairs.reserve(joined.size());
  for (size_t i = 0; i < joined.size(); ++i) {
    const uint64_t pair = joined[i];
    if (i == 0 || (joined[i - 1] ^ pair) >> 32 != 0)
      pairs.push_back(
          {static_cast<uint32_t>(pair >> 48), static_cast<uint32_t>(pair >> 32 & 0xFFFF),
           static_cast<uint32_t>(pair) == no_verdict ? Characters::no_id : static_cast<uint32_t>(pair)});
  }
  pairs_ = PairTable(pairs);
}

// At most two merges: of two of the three bytes, and of what that makes with the third if all are an entry.
// Written out, which is quicker than to merge each character like a pretoken. Returns the symbol of
// each that becomes one, else no_symbol.
std::vector<uint32_t> CharacterTable::fill_ids(const Vocabulary &vocabulary,
                                               const std::vector<bool> &is_entry) {
  std::vector<uint32_t> wholes(stop_code_point, PairTable::no_symbol);
  for (uint32_t c = 0; c < stop_code_point; ++c) {
    const uint8_t bytes[3] = {static_cast<uint8_t>(0xE0 | c >> 12),
                              static_cast<uint8_t>(0x80 | (c >> 6 & 63)),
                              static_cast<uint8_t>(0x80 | (c & 63))};
    const uint32_t first = vocabulary.rank_of_bytes(bytes[0], bytes[1]);
    const uint32_t second = vocabulary.rank_of_bytes(bytes[1], bytes[2]);
    uint32_t symbols[3] = {vocabulary.symbol_of_byte(bytes[0]), vocabulary.symbol_of_byte(bytes[2])};
    size_t count = 2;
    const bool is_unknown = vocabulary.text_rules() && !is_entry[c]; // so it becomes its bytes
    if (is_unknown || (first == PairTable::no_rank && second == PairTable::no_rank)) {
      symbols[2] = symbols[1];
      symbols[1] = vocabulary.symbol_of_byte(bytes[1]);
      count = 3;
    } else {
      if (first <= second)
        symbols[0] = vocabulary.product(first);
      else
        symbols[1] = vocabulary.product(second);
      if (is_entry[c])
        if (const uint32_t rank = vocabulary.rank(symbols[0], symbols[1]); rank != PairTable::no_rank) {
          wholes[c] = symbols[0] = vocabulary.product(rank);
          count = 1;
        }
    }
    uint64_t ids = 0;
    for (size_t i = 3; i-- > 0;) {
      const uint32_t id = i < count ? vocabulary.id(symbols[i]) : Characters::no_id;
      has_ids_ &= i >= count || id < Characters::no_id;
      ids = ids << Characters::id_bits | id;
    }
    characters_[c].ids = ids;
  }
  return wholes;
}

// Every border within the entry that could lie between two characters of three bytes.
void CharacterTable::list_borders(std::string_view entry, std::vector<uint64_t> &joined) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(entry.data());
  for (size_t i = 1; i < entry.size(); ++i) {
    if (!is_lead(bytes[i]) || !continues(bytes[i - 1]))
      continue;
    const size_t right = entry.size() - i;
    if (i < 3 || right < 3) {
      mark_part(bytes + i, i, right);
    } else if (Characters::starts_at(bytes + i - 3, 3) && Characters::starts_at(bytes + i, 3)) {
      const uint32_t before = Characters::code_point(bytes + i - 3),
                     behind = Characters::code_point(bytes + i);
      joined.push_back(joined_pair(before, behind) | no_verdict);
      characters_[before].followers |= uint32_t{1} << (behind & 31);
      characters_[behind].leaders |= uint32_t{1} << (before & 31);
    }
  }
}

// Of an entry with `left` bytes before a border and `right` bytes from p on, where one of the two is less
// than a character. Where the entry does not tell the byte before or behind, all are marked.
void CharacterTable::mark_part(const uint8_t *p, size_t left, size_t right) {
  const auto set = [](uint8_t (&bits)[128], uint32_t place) {
    bits[place >> 3] |= static_cast<uint8_t>(1u << (place & 7));
  };
  const bool any_before = left == 1, any_behind = right == 1;
  if ((!any_before && !continues(p[-2])) || (!any_behind && !continues(p[1])))
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
