// How an encoder session cuts pretokens that are not looked up whole: those of more than 15 bytes that are no
// words, and those that begin with a character of three bytes that words are not made of.
//
// A pretoken is cut between characters that no entry of the vocabulary reaches across: what is left of such a
// border and what is right of it have the ids they have in the whole, whatever the merges. Characters of
// three bytes between two such borders have their ids in the CharacterTable. No token crosses the border of a
// pretoken either, so a run of such characters goes on through the pretokens behind: a line of Chinese with
// its commas is one item. What else there is becomes parts for the cache.
#include "encode/encoder_session.hpp"

#include "common/prefetch.hpp"
#include "text/wordless_leads.hpp"

#include <cstring>

namespace bpe {

namespace {

constexpr size_t max_word_bytes = 64;
// Given pretokens may end within characters, and then what is found behind is found in vain: not all of it.
constexpr ptrdiff_t most_found_bytes = 16 * 48;

bool starts_character(uint8_t byte) { // of more than one byte
  return byte >= 0xC0;
}

bool continues_character(uint8_t byte) {
  return (byte & 0xC0) == 0x80;
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

// Takes pretokens from run number i on: at least that one, from p on, and those behind it that its last
// characters run on into.
EncoderSession::Cut EncoderSession::push_cut(const PretokenSpans &run, size_t i, const uint8_t *p) {
  const auto stop_of = [&](size_t k) { return run.origin + run.ends[k]; };
  const size_t first = i;
  const uint8_t *start = run.origin + (i > 0 ? run.ends[i - 1] : run.start);
  // A short one may come too: where a walk over keys stops for another reason, it may be a single character.
  if (const size_t size = static_cast<size_t>(stop_of(i) - start);
      p == start && (!is_split(*start, size) ||
                     (size > CacheKey::max_bytes && size <= max_word_bytes && is_word(start, size)))) {
    push_part(start, size, true, run.readable);
    return {1, 1};
  }
  size_t items = 0;
  for (;;) {
    if (const size_t size = run_of_characters(run, i, p)) {
      push(characters, p, static_cast<uint32_t>(size));
      ++items;
      p += size;
      while (stop_of(i) <= p) {
        start = stop_of(i);
        if (++i == run.count)
          break;
      }
      if (p == start)
        break;
    }
    const uint8_t *const stop = stop_of(i), *const part = p;
    p = next_safe_border(start, p, stop);
    push_part(part, static_cast<size_t>(p - part), part == start && p == stop, run.readable);
    ++items;
    if (p == stop) {
      ++i;
      break;
    }
  }
  return {i - first, items};
}

// Size of the run of characters from p on, in pretoken number i, that stand between safe borders.
size_t EncoderSession::run_of_characters(const PretokenSpans &run, size_t i, const uint8_t *p) {
  const uint8_t *const start = p;
  const uint8_t *stop = run.origin + run.ends[run.count - 1];
  if (!Characters::starts_at(p, static_cast<size_t>(stop - p)))
    return 0;
  if (!characters_) {
    characters_ = &lazy_characters_.get();
    character_view_ = characters_->view();
  }
  if (!characters_->has_ids())
    return 0;
  if (ignore_merges_ && characters_->has_unreachable())
    stop = run.origin + run.ends[i];
  for (;;) {
    const uint8_t *const from = p;
    const uint8_t *const limit = stop - p > most_found_bytes ? p + most_found_bytes : stop;
    // One by itself, as quotes and dashes are, is not worth a block.
    p += Characters::starts_at(p + 3, static_cast<size_t>(limit - p - 3))
             ? find_characters_(character_view_, p, limit)
             : 3;
    const bool goes_on = p == limit && limit != stop;
    if (goes_on)
      p -= 3; // whether the border behind the last one is joined has not been seen
    for (; run.origin + run.ends[i] < p; ++i)
      if (const uint8_t *end = run.origin + run.ends[i]; continues_character(*end)) { // no UTF-8
        while (continues_character(*end))
          --end;
        return static_cast<size_t>(end - start);
      }
    if (goes_on)
      continue;
    if (p == stop || p == run.origin + run.ends[i]) {
      if (!Characters::starts_at(p, static_cast<size_t>(stop - p)))
        break;
      continue; // a joined border, but one between pretokens
    }
    const bool joined =
        Characters::starts_at(p, static_cast<size_t>(stop - p)) || vocabulary_.may_join(p[-1], p[0]);
    if (joined && p > from)
      p -= 3;
    break;
  }
  return static_cast<size_t>(p - start);
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
  if (characters_ && Characters::starts_at(p, static_cast<size_t>(stop - p)) && p - start >= 3 &&
      Characters::starts_at(p - 3, 3))
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
