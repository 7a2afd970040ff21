#include "vocabulary/character_table.hpp"

namespace bpe {

namespace {

constexpr uint32_t stop_code_point = 0x10000; // of three bytes; surrogates and shorter ones do no harm

bool is_lead(uint8_t byte) {
  return (byte & 0xF0) == 0xE0;
}
bool continues(uint8_t byte) {
  return (byte & 0xC0) == 0x80;
}

} // namespace

CharacterTable::CharacterTable(const Vocabulary &vocabulary)
    : ids_(stop_code_point), joined_((size_t{1} << 22) / 64) {
  std::vector<bool> is_entry(stop_code_point);
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol) {
    const std::string_view entry = vocabulary.bytes(symbol);
    mark_borders(entry);
    const auto *const bytes = reinterpret_cast<const uint8_t *>(entry.data());
    if (entry.size() == 3 && Characters::starts_at(bytes, 3)) {
      is_entry[Characters::code_point(bytes)] = true;
      has_unreachable_ |=
          !vocabulary.all_reachable() && vocabulary.find_unreachable(entry) != PairTable::no_symbol;
    }
  }
  fill_ids(vocabulary, is_entry);
}

// At most two merges: of two of the three bytes, and of what that makes with the third if all are an entry.
// Written out, this takes 1 to 3 ms less than to merge each character like a pretoken.
void CharacterTable::fill_ids(const Vocabulary &vocabulary, const std::vector<bool> &is_entry) {
  for (uint32_t c = 0; c < stop_code_point; ++c) {
    const uint8_t bytes[3] = {static_cast<uint8_t>(0xE0 | c >> 12),
                              static_cast<uint8_t>(0x80 | (c >> 6 & 63)),
                              static_cast<uint8_t>(0x80 | (c & 63))};
    const uint32_t first = vocabulary.rank_of_bytes(bytes[0], bytes[1]);
    const uint32_t second = vocabulary.rank_of_bytes(bytes[1], bytes[2]);
    uint32_t symbols[3] = {vocabulary.symbol_of_byte(bytes[0]), vocabulary.symbol_of_byte(bytes[2])};
    size_t count = 2;
    if (first == PairTable::no_rank && second == PairTable::no_rank) {
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
          symbols[0] = vocabulary.product(rank);
          count = 1;
        }
    }
    uint64_t ids = 0;
    for (size_t i = 3; i-- > 0;) {
      const uint32_t id = i < count ? vocabulary.id(symbols[i]) : Characters::no_id;
      has_ids_ &= i >= count || id < Characters::no_id;
      ids = ids << Characters::id_bits | id;
    }
    ids_[c] = ids;
  }
}

// Every border within the entry that could lie between two characters of three bytes. Where the entry does
// not tell the byte before or behind, all are marked.
void CharacterTable::mark_borders(std::string_view entry) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(entry[i]); };
  for (size_t i = 1; i < entry.size(); ++i) {
    if (!is_lead(byte(i)) || !continues(byte(i - 1)))
      continue;
    const bool any_before = i == 1, any_behind = i + 1 == entry.size();
    if ((!any_before && !continues(byte(i - 2))) || (!any_behind && !continues(byte(i + 1))))
      continue;
    const uint64_t before = any_before ? ~uint64_t{0} : uint64_t{1} << (byte(i - 2) & 63);
    for (uint32_t z = any_behind ? 0 : byte(i + 1) & 63u, z_stop = any_behind ? 64 : z + 1; z < z_stop; ++z)
      joined_[Characters::border_of(0, byte(i - 1), byte(i), z) >> 6] |= before;
    const auto set = [](uint8_t (&bits)[128], uint32_t place) {
      bits[place >> 3] |= static_cast<uint8_t>(1u << (place & 7));
    };
    set(joined_ends_, Characters::border_of(0, byte(i - 1), byte(i), 0) >> 12);
    for (uint32_t w = any_before ? 0 : byte(i - 2), w_stop = any_before ? 64 : w + 1; w < w_stop; w += 4)
      set(joined_lasts_, Characters::last_of(w, byte(i - 1)));
  }
}

} // namespace bpe
