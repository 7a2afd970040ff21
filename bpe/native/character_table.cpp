#include "character_table.hpp"

#include "merge_pretoken.hpp"

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
    : entries_(stop_code_point), joined_((size_t{1} << 22) / 64) {
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol)
    mark_borders(vocabulary.bytes(symbol));
  std::vector<bool> may_end(4096); // by w and x: whether some border of theirs is joined
  for (uint32_t place = 0; place < uint32_t{1} << 22; ++place) {
    if (place % 64 == 0 && joined_[place >> 6] == 0)
      place += 63;
    else if (joined_[place >> 6] >> (place & 63) & 1)
      may_end[(place & 63) << 6 | (place >> 12 & 63)] = true;
  }
  for (uint32_t c = 0; c < stop_code_point; ++c) {
    const uint8_t bytes[3] = {static_cast<uint8_t>(0xE0 | c >> 12),
                              static_cast<uint8_t>(0x80 | (c >> 6 & 63)),
                              static_cast<uint8_t>(0x80 | (c & 63))};
    Entry &entry = entries_[c];
    uint32_t symbols[3];
    const size_t count = merge_short(vocabulary, bytes, 3, symbols);
    for (size_t i = 0; i < count; ++i)
      entry.ids[i] = vocabulary.id(symbols[i]);
    entry.info = static_cast<uint32_t>(count) | (may_end[c & 0xFFF] ? joins_next : 0);
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
    for (uint32_t w = any_before ? 0 : byte(i - 2) & 63u, w_stop = any_before ? 64 : w + 1; w < w_stop; ++w)
      for (uint32_t z = any_behind ? 0 : byte(i + 1) & 63u, z_stop = any_behind ? 64 : z + 1; z < z_stop;
           ++z) {
        const uint32_t place = border_of(w, byte(i - 1), byte(i), z);
        joined_[place >> 6] |= uint64_t{1} << (place & 63);
      }
  }
}

} // namespace bpe
