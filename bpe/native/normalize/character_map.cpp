#include "normalize/character_map.hpp"

#include "normalize/unicode_tables.hpp"

#include <algorithm>
#include <cstring>

namespace bpe {

namespace {

constexpr size_t block = 32; // bytes that are lowered, or found to be ASCII, at a time

bool is_ascii(const uint8_t *p) {
  uint64_t words[block / 8];
  std::memcpy(words, p, block);
  return ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080ull) == 0;
}

std::string utf8_of(uint32_t code_point) {
  uint8_t bytes[4];
  return {bytes, write_character(code_point, bytes)};
}

} // namespace

void CharacterMap::replace(uint32_t code_point, std::string_view utf8) {
  places_.set(code_point, static_cast<uint32_t>(pool_.size()));
  const uint32_t length = static_cast<uint32_t>(utf8.size());
  const uint8_t *const length_bytes = reinterpret_cast<const uint8_t *>(&length);
  pool_.insert(pool_.end(), length_bytes, length_bytes + sizeof length);
  pool_.insert(pool_.end(), utf8.begin(), utf8.end());
  const size_t own_length = utf8_of(code_point).size();
  max_growth_ = std::max(max_growth_, (utf8.size() + own_length - 1) / own_length);
}

void CharacterMap::finish() {
  pool_.resize(pool_.size() + ByteBuffer::spare_bytes);
  length_of_same_ = places_.lengths_of_zero();
  ascii_stays_ = ascii_to_ascii_ = true;
  for (uint32_t c = 0; c < 0x80; ++c) {
    ascii_[c] = static_cast<uint8_t>(c);
    const uint32_t place = places_[c];
    if (place == 0)
      continue;
    ascii_stays_ = false;
    if (pool_[place] == 1 && pool_[place + 4] < 0x80)
      ascii_[c] = pool_[place + 4];
    else
      ascii_to_ascii_ = false;
  }
}

// The first character from p on that does not stay.
const uint8_t *CharacterMap::next_changed(const uint8_t *p, const uint8_t *stop) const {
  while (p < stop) {
    if (ascii_stays_ && static_cast<size_t>(stop - p) >= block && is_ascii(p)) {
      p += block;
      continue;
    }
    if (const uint8_t length = length_of_same_[*p]; length != 0) {
      p += std::min<ptrdiff_t>(length, stop - p);
      continue;
    }
    const Char c = read_char(p, stop);
    if (places_[c.code_point] != 0)
      return p;
    p += c.length;
  }
  return stop;
}

size_t CharacterMap::first_change(const uint8_t *text, size_t size) const {
  return static_cast<size_t>(next_changed(text, text + size) - text);
}

void CharacterMap::append(const uint8_t *text, size_t size, ByteBuffer &buffer) const {
  const uint8_t *p = text, *const stop = text + size;
  while (p < stop) {
    if (!ascii_stays_ && ascii_to_ascii_ && *p < 0x80) {
      // Most of it changes or might: all of it is looked up.
      uint8_t *out = buffer.room(static_cast<size_t>(stop - p));
      while (p < stop && *p < 0x80)
        *out++ = ascii_[*p++];
      buffer.set_end(out);
      continue;
    }
    const uint8_t *const changed = next_changed(p, stop);
    buffer.append(p, static_cast<size_t>(changed - p));
    for (p = changed; p < stop;) {
      const Char c = read_char(p, stop);
      const uint32_t place = places_[c.code_point];
      if (place == 0)
        break;
      uint32_t length;
      std::memcpy(&length, &pool_[place], sizeof length);
      uint8_t *const out = buffer.room(length);
      if (length <= 16)
        std::memcpy(out, &pool_[place + 4], 16);
      else
        std::memcpy(out, &pool_[place + 4], length);
      buffer.set_end(out + length);
      p += c.length;
    }
  }
}

CharacterMap lower_case_map() {
  CharacterMap map;
  for_each_mapping(unicode::lower_case, [&](uint32_t c, std::span<const uint32_t> lower) {
    std::string text;
    for (const uint32_t each : lower)
      text += utf8_of(each);
    map.replace(c, text);
  });
  map.finish();
  return map;
}

CharacterMap removing_map(std::span<const uint32_t> removed) {
  return clean_map(removed, {});
}

CharacterMap clean_map(std::span<const uint32_t> removed, std::span<const uint32_t> spaces) {
  CharacterMap map;
  for_each_in(removed, [&](uint32_t c) { map.replace(c, ""); });
  for_each_in(spaces, [&](uint32_t c) { map.replace(c, " "); });
  map.finish();
  return map;
}

CharacterMap spaced_ideographs_map() {
  CharacterMap map;
  for_each_in(unicode::bert_ideographs, [&](uint32_t c) { map.replace(c, " " + utf8_of(c) + " "); });
  map.finish();
  return map;
}

} // namespace bpe
