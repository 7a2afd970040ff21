// How an encoder session cuts pretokens that are not looked up whole: those of more than 15 bytes, and
// those that begin with a character of three bytes.
//
// A pretoken is cut between characters that no entry of the vocabulary reaches across: what is left of such a
// border and what is right of it have the ids they have in the whole, whatever the merges. Characters of
// three bytes between two such borders have their ids in the CharacterTable; what else there is becomes parts
// for the cache.
#include "encoder_session.hpp"

#include <cstring>

namespace bpe {

namespace {

bool starts_character(uint8_t byte) { // of more than one byte
  return byte >= 0xC0;
}

} // namespace

// Cuts before each character that no entry joins to the one before. An entry joins all its own bytes, so a
// pretoken that is an entry stays whole. Returns how many items it became.
size_t EncoderSession::push_long(const uint8_t *bytes, size_t size, const uint8_t *readable) {
  size_t start = 0, items = 0;
  while (start < size) {
    size_t i = start;
    if (CharacterTable::starts_at(bytes + start, size - start)) {
      const size_t next = push_characters(bytes, start, size);
      items += next > start;
      i = start = next;
      if (start == size)
        return items;
    }
    do { // to the next border that is safe
      uint64_t eight;
      for (; i + 9 <= size; i += 8) { // ASCII has none
        std::memcpy(&eight, bytes + i + 1, 8);
        if ((eight & 0x8080808080808080) != 0)
          break;
      }
      ++i;
    } while (i < size && !(starts_character(bytes[i]) && !may_join(bytes, i, size)));
    push_part(bytes + start, i - start, start == 0 && i == size, readable);
    ++items;
    start = i;
  }
  return items;
}

// Takes the characters of three bytes from `start` on that stand between two safe borders. Returns where the
// first other one starts.
size_t EncoderSession::push_characters(const uint8_t *bytes, size_t start, size_t size) {
  if (!characters_)
    characters_ = &lazy_characters_.get();
  size_t i = start;
  while (CharacterTable::starts_at(bytes + i, size - i)) {
    const size_t next = i + 3;
    if (next < size) {
      const bool joined = CharacterTable::starts_at(bytes + next, size - next)
                              ? (characters_->at(bytes + i).info & CharacterTable::joins_next) != 0 &&
                                    characters_->may_join(bytes + next)
                              : vocabulary_.may_join(bytes[next - 1], bytes[next]);
      if (joined)
        break;
    }
    i = next;
  }
  if (i > start)
    push(characters, bytes + start, static_cast<uint32_t>(i - start));
  return i;
}

// Whether an entry may reach over the border before bytes[place], which starts a character of several bytes.
bool EncoderSession::may_join(const uint8_t *bytes, size_t place, size_t size) const {
  if (characters_ && place >= 3 && CharacterTable::starts_at(bytes + place - 3, 3) &&
      CharacterTable::starts_at(bytes + place, size - place))
    return characters_->may_join(bytes + place);
  return vocabulary_.may_join(bytes[place - 1], bytes[place]);
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
  key.high |= whole_pretokens_ && !whole ? CacheKey::part_bit : 0;
  batch.keys[i] = key;
  batch.hashes[i] = key.hash();
  prefetch_to_read(cache_.first_slot(batch.hashes[i]));
}

// Characters between safe borders. `out` has room for an id a byte and one more.
uint32_t *EncoderSession::emit_characters(const uint8_t *bytes, size_t size, uint32_t *out) const {
  for (size_t i = 0; i < size; i += 3) {
    const CharacterTable::Entry &entry = characters_->at(bytes + i);
    std::memcpy(out, &entry, sizeof entry); // what is behind its ids is overwritten
    out += entry.id_count();
  }
  return out;
}

} // namespace bpe
