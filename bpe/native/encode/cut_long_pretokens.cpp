// How an encoder session cuts pretokens that are not looked up whole: those of more than 15 bytes that are no
// words, and those that begin with a character of three bytes that words are not made of.
//
// A pretoken is cut between characters that no entry of the vocabulary reaches across: what is left of such a
// border and what is right of it have the ids they have in the whole, whatever the merges. Characters of
// three bytes between two such borders have their ids in the CharacterTable. What else there is becomes parts
// for the cache.
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

// Whether bytes[0, size), size >= 8, may be a word.
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

// What of the pretoken [start, stop) lies behind p, a safe border or its start.
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

// The end of the characters of three bytes from p on that stand between safe borders.
const uint8_t *EncoderSession::characters_end(const uint8_t *p, const uint8_t *stop) const {
  const auto starts_at = [&](const uint8_t *q) {
    return Characters::starts_at(q, static_cast<size_t>(stop - q));
  };
  if (!has_character_ids_ || !starts_at(p))
    return p;
  // One by itself, as quotes and dashes are, is not worth a block.
  const uint8_t *const end = p + (starts_at(p + 3) ? find_characters_(character_view_, p, stop) : 3);
  const bool joined =
      end < stop && (starts_at(end) ? character_view_.may_join(end) : vocabulary_.may_join(end[-1], *end));
  return joined ? end - 3 : end;
}

// The first safe border behind p in the pretoken [start, stop), or its end. Steps from character to character
// where the bytes are UTF-8; what else there is may hide a border, which is no fault.
const uint8_t *EncoderSession::next_safe_border(const uint8_t *start, const uint8_t *p,
                                                const uint8_t *stop) const {
  do {
    if (*p < 0x80) { // no border before ASCII
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

// Whether an entry may reach over the border before p, where a character of several bytes starts.
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
