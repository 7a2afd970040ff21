#include "normalize/character_map.hpp"

#include "normalize/unicode_tables.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace bpe {

namespace {

constexpr size_t block = 32;                     // bytes compared at once
constexpr size_t chunk_bytes = size_t{64} << 10; // bytes of output reserved at once

bool is_ascii(const uint8_t *p) {
  uint64_t words[block / 8];
  std::memcpy(words, p, block);
  return ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080ull) == 0;
}

std::string utf8_of(uint32_t code_point) {
  uint8_t bytes[4];
  const size_t size = write_utf8(code_point, bytes);
  return {reinterpret_cast<const char *>(bytes), size};
}

} // namespace

void CharacterMap::replace(uint32_t code_point, const std::string &utf8) {
  const auto [known, is_new] = place_of_text_.emplace(utf8, static_cast<uint32_t>(pool_.size()));
  places_.set(code_point, known->second);
  if (!is_new)
    return;
  const uint32_t length = static_cast<uint32_t>(utf8.size());
  const uint8_t *const length_bytes = reinterpret_cast<const uint8_t *>(&length);
  pool_.insert(pool_.end(), length_bytes, length_bytes + sizeof length);
  pool_.insert(pool_.end(), utf8.begin(), utf8.end());
}

std::string CharacterMap::image(uint32_t code_point) const {
  const uint32_t place = places_[code_point];
  if (place == 0)
    return utf8_of(code_point);
  if (place == spaced)
    return " " + utf8_of(code_point) + " ";
  uint32_t length;
  std::memcpy(&length, &pool_[place], sizeof length);
  return {pool_.begin() + place + 4, pool_.begin() + place + 4 + length};
}

CharacterMap CharacterMap::followed_by(const CharacterMap &other) const {
  CharacterMap both;
  for (uint32_t c = 0; c < code_point_count; ++c) {
    const uint32_t first = places_[c], second = other.places_[c];
    if (first == 0 && second == spaced) {
      both.space_around(c);
    } else if (first == spaced && other.image(' ') == " " && second == 0) {
      both.space_around(c);
    } else if (first == 0) {
      if (second != 0)
        both.replace(c, other.image(c));
    } else {
      const std::string between = image(c);
      std::string made;
      const uint8_t *p = reinterpret_cast<const uint8_t *>(between.data()), *const stop = p + between.size();
      while (p < stop) {
        const Char part = read_char(p, stop);
        made += other.image(part.code_point);
        p += part.length;
      }
      both.replace(c, made);
    }
  }
  both.finish();
  return both;
}

void CharacterMap::finish() {
  pool_.resize(pool_.size() + ByteBuffer::spare_bytes);
  places_.for_each_set([&](uint32_t c) {
    max_growth_ = std::max(max_growth_, (image(c).size() + utf8_of(c).size() - 1) / utf8_of(c).size());
  });
  places_.share_pages();
  length_of_same_ = places_.lengths_of_zero();
  ascii_stays_ = short_ascii_ = lowers_ascii_ = true;
  if (!image('\n').starts_with('\n')) { // cleaning replaces line breaks by spaces
    plain_from_ = 0x20;
    plain_to_ = 0x7E;
  }
  for (uint32_t c = 0; c < 0x80; ++c) {
    const std::string made = image(c);
    ascii_stays_ = ascii_stays_ && places_[c] == 0;
    short_ascii_ = short_ascii_ && made.size() <= 7;
    if (c >= plain_from_ && c <= plain_to_)
      lowers_ascii_ =
          lowers_ascii_ && made == std::string(1, static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
    std::copy_n(made.begin(), std::min<size_t>(made.size(), 7), ascii_[c].begin());
    ascii_[c][7] = static_cast<uint8_t>(made.size());
  }
}

// Return whether a block is plain ASCII.
bool CharacterMap::is_plain(const uint8_t *p) const {
  uint8_t other = 0;
  for (size_t i = 0; i < block; ++i)
    other |= static_cast<uint8_t>(p[i] - plain_from_) > plain_to_ - plain_from_ ? 1 : 0;
  return other == 0;
}

// Returns the first character from p on that changes.
const uint8_t *CharacterMap::next_changed(const uint8_t *p, const uint8_t *stop) const {
  while (p < stop) {
    if (*p < 0x80 && ascii_stays_ && static_cast<size_t>(stop - p) >= block && p[1] < 0x80 && is_ascii(p)) {
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
  const size_t chunk = std::max<size_t>(1, chunk_bytes / max_growth_);
  const uint8_t *p = text, *const stop = text + size;
  while (p < stop) {
    if (ascii_stays_) {
      const uint8_t *const changed = next_changed(p, stop);
      buffer.append(p, static_cast<size_t>(changed - p));
      p = changed;
    }
    const uint8_t *const chunk_stop = p + std::min<size_t>(chunk, static_cast<size_t>(stop - p));
    uint8_t *out = buffer.room((chunk + 4) * (max_growth_ + 1) + block);
    while (p < chunk_stop) {
      if (*p < 0x80 && lowers_ascii_ && static_cast<size_t>(chunk_stop - p) >= block && p[1] < 0x80 &&
          is_plain(p)) {
        for (size_t i = 0; i < block; ++i)
          out[i] = static_cast<uint8_t>(p[i] + (static_cast<uint8_t>(p[i] - 'A') < 26 ? 32 : 0));
        p += block;
        out += block;
        continue;
      }
      if (*p < 0x80 && short_ascii_) {
        const std::array<uint8_t, 8> made = ascii_[*p++];
        std::memcpy(out, made.data(), 8);
        out += made[7];
        continue;
      }
      if (const uint8_t length = length_of_same_[*p]; length != 0 && stop - p >= 4 && !ascii_stays_) {
        std::memcpy(out, p, 4);
        p += length;
        out += length;
        continue;
      }
      const Char c = read_char(p, stop);
      const uint32_t place = places_[c.code_point];
      if (place > spaced) {
        uint32_t length;
        std::memcpy(&length, &pool_[place], sizeof length);
        if (length <= 16)
          std::memcpy(out, &pool_[place + 4], 16);
        else
          std::memcpy(out, &pool_[place + 4], length);
        out += length;
      } else {
        *out = ' ';
        out += place == spaced;
        if (stop - p >= 4)
          std::memcpy(out, p, 4);
        else
          std::copy_n(p, c.length, out);
        out += c.length;
        *out = ' ';
        out += place == spaced;
      }
      p += c.length;
      if (ascii_stays_ && place == 0)
        break; // a long unchanged run may follow
    }
    buffer.set_end(out);
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
  for_each_in(unicode::bert_ideographs, [&](uint32_t c) { map.space_around(c); });
  map.finish();
  return map;
}

} // namespace bpe
