#include "normalize/charsmap_table.hpp"

#include "text/utf8.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bpe {

namespace {

// A unit of the double array.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label(uint32_t unit) {
  return unit & (uint32_t{1} << 31 | 0xFF);
}
uint64_t offset(uint32_t unit) {
  return uint64_t{unit >> 10} << ((unit & 1u << 9) >> 6);
}

} // namespace

CharsmapTable::CharsmapTable(std::string_view charsmap) {
  uint32_t trie_bytes = 0;
  if (charsmap.size() >= 4)
    std::memcpy(&trie_bytes, charsmap.data(), 4);
  if (trie_bytes < 4 || charsmap.size() - 4 < trie_bytes / 4 * 4)
    throw std::invalid_argument("the charsmap is cut short");
  units_.resize(trie_bytes / 4);
  std::memcpy(units_.data(), charsmap.data() + 4, 4 * units_.size());
  texts_ = charsmap.substr(4 + 4 * units_.size());
  if (validate_utf8(reinterpret_cast<const uint8_t *>(texts_.data()), texts_.size()) < texts_.size())
    throw std::invalid_argument("the charsmap's replacements are not valid UTF-8");
  check_keys();
}

// Visits each state once.
void CharsmapTable::check_keys() const {
  std::vector<bool> seen(units_.size() | 0xFF);
  std::vector<uint64_t> states = {offset(units_[0])};
  while (!states.empty()) {
    const uint64_t state = states.back();
    states.pop_back();
    if (state >= seen.size() || seen[state])
      continue; // units are in blocks of 256; a state after the last block has no transitions
    seen[state] = true;
    for (uint32_t byte = 1; byte < 0x100; ++byte) {
      const uint64_t place = state ^ byte;
      if (place >= units_.size() || label(units_[place]) != byte)
        continue;
      const uint64_t next = place ^ offset(units_[place]);
      states.push_back(next);
      if (!has_leaf(units_[place]))
        continue;
      const size_t start = next < units_.size() ? units_[next] & 0x7FFFFFFFu : texts_.size() + 1;
      if (start > texts_.size() || (start < texts_.size() && continues_character(texts_[start])))
        throw std::invalid_argument("the charsmap names a replacement that is not there");
    }
  }
}

std::string_view CharsmapTable::text_at(uint32_t unit) const {
  const size_t start = unit & 0x7FFFFFFFu;
  const size_t stop = std::min(texts_.find('\0', start), texts_.size());
  return std::string_view(texts_).substr(start, stop - start);
}

template <bool first>
std::optional<CharsmapTable::Found> CharsmapTable::find(const uint8_t *text, size_t size) const {
  std::optional<Found> found;
  uint64_t place = offset(units_[0]);
  for (size_t i = 0; i < size && text[i] != 0; ++i) {
    place ^= text[i];
    if (place >= units_.size() || label(units_[place]) != text[i])
      break;
    const uint32_t unit = units_[place];
    place ^= offset(unit);
    if (!has_leaf(unit) || (!first && i + 1 < size && continues_character(text[i + 1])))
      continue;
    found = Found{i + 1, text_at(units_[place])};
    if (first)
      break;
  }
  return found;
}

bool CharsmapTable::goes_on(const uint8_t *text, size_t size) const {
  uint64_t place = offset(units_[0]);
  for (size_t i = 0; i < size; ++i) {
    place ^= text[i];
    if (place >= units_.size() || label(units_[place]) != text[i])
      return false;
    place ^= offset(units_[place]);
  }
  return true;
}

std::optional<CharsmapTable::Found> CharsmapTable::shortest(const uint8_t *text, size_t size) const {
  return find<true>(text, size);
}

std::optional<CharsmapTable::Found> CharsmapTable::longest(const uint8_t *text, size_t size) const {
  return find<false>(text, size);
}

} // namespace bpe
