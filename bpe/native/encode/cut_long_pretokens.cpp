// Cut pretokens that are not looked up whole: pretokens of more than 15 bytes that are not words, and those
// that start with a three-byte character outside words.
//
// A pretoken is cut between characters that no entry of the vocabulary crosses: the text on either side of
// such a border has the same IDs as in the whole pretoken, for any merges. Three-byte characters between two
// such borders have their IDs in the CharacterTable. The rest becomes parts that are looked up in the cache.
#include "encode/encoder_session.hpp"

#include "cache/short_key.hpp"
#include "common/prefetch.hpp"
#include "text/wordless_leads.hpp"

#include <cstring>
#include <stdexcept>

namespace bpe {

namespace {

constexpr size_t max_word_bytes = 64;
bool starts_character(uint8_t byte) { // of more than one byte
  return byte >= 0xC0;
}

// Return whether bytes[0, size), size >= 8, may be a word.
bool is_word(const uint8_t *bytes, size_t size) {
  uint64_t wordless = 0;
  const auto add = [&](size_t place) {
    uint64_t eight;
    std::memcpy(&eight, bytes + place, 8);
    wordless |= wordless_leads(eight);
  };
  for (size_t place = 0; place + 8 < size; place += 8)
    add(place);
  add(size - 8);
  return wordless == 0;
}

} // namespace

// Push the rest of the pretoken [start, stop) from p, which is a safe border or `start`.
void EncoderSession::push_cut(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                              const uint8_t *readable) {
  if (const size_t size = static_cast<size_t>(stop - start); size > UINT32_MAX)
    throw std::length_error("a pretoken of 4 GiB or more; cut the text into documents");
  else if (p == start && (vocabulary_.merges_characters() || !needs_cutting(*start, size) ||
                          (size > CacheKey::max_bytes && size <= max_word_bytes && is_word(start, size))))
    return push_part(start, size, true, readable);
  while (p < stop) {
    if (const uint8_t *const end = characters_end(p, stop); end > p) {
      push(characters, p, static_cast<uint32_t>(end - p));
      p = end;
      continue;
    }
    const uint8_t *const part = p;
    p = next_safe_border(start, p, stop);
    push_part(part, static_cast<size_t>(p - part), part == start && p == stop, readable);
  }
}

// Return the end of the three-byte characters from p with safe borders between them.
const uint8_t *EncoderSession::characters_end(const uint8_t *p, const uint8_t *stop) const {
  const auto starts_at = [&](const uint8_t *q) {
    return Characters::starts_at(q, static_cast<size_t>(stop - q));
  };
  if (!has_character_ids_ || !starts_at(p))
    return p;
  // A single one, such as a quote or a dash, is not worth a block.
  const uint8_t *const end = p + (starts_at(p + 3) ? find_characters_(character_view_, p, stop) : 3);
  const bool joined =
      end < stop && (starts_at(end) ? character_view_.may_join(end) : vocabulary_.may_join(end[-1], *end));
  return joined ? end - 3 : end;
}

// Return the first safe border after p in the pretoken [start, stop), or `stop`. Steps by character in valid
// UTF-8. Other bytes may hide a border, which is harmless.
const uint8_t *EncoderSession::next_safe_border(const uint8_t *start, const uint8_t *p,
                                                const uint8_t *stop) const {
  do {
    if (*p < 0x80) { // borders before ASCII are not used
      uint64_t eight;
      for (; stop - p >= 9; p += 8) {
        std::memcpy(&eight, p + 1, 8);
        if ((eight & 0x8080808080808080) != 0)
          break;
      }
      ++p;
    } else {
      p += *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : 4;
    }
    if (p >= stop)
      return stop;
  } while (!starts_character(*p) || may_join(start, p, stop));
  return p;
}

// Return whether an entry may cross the border before p, where a multi-byte character starts.
bool EncoderSession::may_join(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const {
  if (!vocabulary_.fuses_unknown() && Characters::starts_at(p, static_cast<size_t>(stop - p)) &&
      p - start >= 3 && Characters::starts_at(p - 3, 3))
    return character_view_.may_join(p);
  return vocabulary_.may_join(p[-1], p[0]);
}

void EncoderSession::push_part(const uint8_t *bytes, size_t size, bool whole, const uint8_t *readable) {
  if (size > CacheKey::max_long_bytes)
    return push(whole ? huge_pretoken : huge_part, bytes, static_cast<uint32_t>(size));
  Batch &batch = open_batch();
  const size_t i = batch.count++;
  CacheKey key;
  if (size <= CacheKey::max_bytes) [[likely]] {
    key = key_of(bytes, size, readable);
  } else {
    key = long_key(bytes, size);
    batch.bytes[i] = bytes;
    batch.long_items[batch.long_count++] = static_cast<uint8_t>(i);
  }
  key.high |= ignore_merges_ && !whole ? CacheKey::part_bit : 0;
  batch.keys[i] = key;
  batch.hashes[i] = key.hash();
  if (size > CacheKey::max_bytes)
    prefetch_to_read(cache_.first_slot(batch.hashes[i]));
}

} // namespace bpe
