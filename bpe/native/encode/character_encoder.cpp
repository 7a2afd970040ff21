#include "encode/character_encoder.hpp"

#include "cache/short_key.hpp"
#include "pretokenize/safe_cut.hpp"
#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"
#include "text/wordless_leads.hpp"

#include <cstring>
#include <stdexcept>

namespace bpe {

namespace {

constexpr size_t most_others = 8; // pretokens between Chinese ones
constexpr size_t max_word_bytes = 64;

// Return whether a byte leads a character that usually occurs in runs. This excludes E2, the quotes and
// dashes of English, where words would miss the cache.
bool is_character_lead(uint8_t byte) {
  return byte > 0xE2 && byte < 0xF0 && is_wordless_lead(byte);
}

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

CharacterEncoder::CharacterEncoder(const Vocabulary &vocabulary, const CharacterTable *characters,
                                   const Automaton *automaton, BatchEncoder &out)
    : vocabulary_(vocabulary), characters_(characters ? characters->view() : Characters{}),
      has_ids_(characters && characters->has_ids() && !(out.emits_whole() && characters->has_unreachable())),
      borders_(automaton && automaton->streams() && !automaton->drops && !out.emits_whole() ? automaton
                                                                                            : nullptr),
      walk_characters_(simd_variant().walk_characters), find_characters_(simd_variant().find_characters),
      out_(out) {}

void CharacterEncoder::push_cut(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                                const uint8_t *readable) {
  if (const size_t size = static_cast<size_t>(stop - start); size > UINT32_MAX)
    throw std::length_error("a pretoken of 4 GiB or more; cut the text into documents");
  else if (p == start && (vocabulary_.merges_characters() || !needs_cutting(*start, size) ||
                          (size > CacheKey::max_bytes && size <= max_word_bytes && is_word(start, size))))
    return out_.push_part(start, size, true, readable);
  while (p < stop) {
    if (const uint8_t *const end = characters_end(p, stop); end > p) {
      out_.push(BatchEncoder::characters, p, static_cast<uint32_t>(end - p));
      p = end;
      continue;
    }
    const uint8_t *const part = p;
    p = next_safe_border(start, p, stop);
    out_.push_part(part, static_cast<size_t>(p - part), part == start && p == stop, readable);
  }
}

// Return the end of the three-byte characters from p with safe borders between them.
const uint8_t *CharacterEncoder::characters_end(const uint8_t *p, const uint8_t *stop) const {
  const auto starts_at = [&](const uint8_t *q) {
    return Characters::starts_at(q, static_cast<size_t>(stop - q));
  };
  if (!has_ids_ || !starts_at(p))
    return p;
  // A single one, such as a quote or a dash, is not worth a block.
  const uint8_t *const end = p + (starts_at(p + 3) ? find_characters_(characters_, p, stop) : 3);
  const bool joined =
      end < stop && (starts_at(end) ? characters_.may_join(end) : vocabulary_.may_join(end[-1], *end));
  return joined ? end - 3 : end;
}

// Return the first safe border after p in the pretoken [start, stop), or `stop`. Steps by character in valid
// UTF-8. Other bytes may hide a border, which is harmless.
const uint8_t *CharacterEncoder::next_safe_border(const uint8_t *start, const uint8_t *p,
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
bool CharacterEncoder::may_join(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const {
  if (!vocabulary_.fuses_unknown() && Characters::starts_at(p, static_cast<size_t>(stop - p)) &&
      p - start >= 3 && Characters::starts_at(p - 3, 3))
    return characters_.may_join(p);
  return vocabulary_.may_join(p[-1], p[0]);
}

// Return whether to walk over a text by characters from `at`, the start of a pretoken: such a character is
// there, or one byte later.
bool CharacterEncoder::may_walk(const uint8_t *at, const uint8_t *stop) const {
  return has_ids_ && (is_character_lead(*at) || (*at < 0x80 && stop - at >= 2 && is_character_lead(at[1])));
}

// Walk until the walk stops, and push the IDs and parts.
void CharacterEncoder::walk_on(CharacterWalk &walk, const uint8_t *readable) {
  do {
    BatchEncoder::Batch &batch = out_.open_batch(2 * CharacterWalk::most_parts + 1);
    const uint32_t *ids = batch.ready_ids + batch.ready_count;
    walk.out = batch.ready_ids + batch.ready_count;
    walk.out_stop = batch.ready_ids + BatchEncoder::ready_room;
    walk_characters_(characters_, walk);
    const auto push_ids = [&](size_t count) {
      if (count > 0)
        out_.push(BatchEncoder::ready_ids, reinterpret_cast<const uint8_t *>(ids),
                  static_cast<uint32_t>(count));
      ids += count;
    };
    for (size_t i = 0; i < walk.part_count; ++i) {
      const CharacterWalk::Part &part = walk.parts[i];
      push_ids(part.ids_before);
      out_.push_part(part.bytes, part.size, part.whole, readable);
    }
    push_ids(static_cast<size_t>(walk.out - ids));
    batch.ready_count = static_cast<size_t>(walk.out - batch.ready_ids); // after all of this is in the batch
  } while (walk.full && walk.at < walk.window.certain);
}

const uint8_t *CharacterEncoder::walk_unscanned(const uint8_t *at, const uint8_t *stop,
                                                const uint8_t *readable) {
  if (!may_walk(at, stop))
    return at;
  for (size_t others = 0; at < stop; ++others) {
    // A single character is not worth a walk.
    if (is_character_lead(*at) && Characters::starts_at(at + 3, static_cast<size_t>(stop - at) - 3)) {
      CharacterWalk walk;
      walk.window = {at, nullptr, static_cast<size_t>(stop - at)};
      walk.borders = borders_->by_joins ? nullptr : borders_;
      walk.at = 0;
      walk_on(walk, readable);
      if (walk.at > 0)
        others = 0;
      at += walk.at;
      if (at == stop)
        break;
    }
    const uint8_t *const border = others < most_others ? next_border(at, stop) : at;
    if (border == at)
      break;
    push_cut(at, at, border, readable);
    at = border;
  }
  return at;
}

// Return the first border after p that no merge crosses, or p if it is far or depends on the context.
const uint8_t *CharacterEncoder::next_border(const uint8_t *p, const uint8_t *stop) const {
  constexpr ptrdiff_t most = 64;
  for (const uint8_t *left = p, *right; left - p < most; left = right) {
    right = left + read_char(left, stop).length;
    if (right == stop)
      return right;
    const Automaton::Border border = borders_->border(left, right);
    if (border == Automaton::cut || (*right >= 0x80 && !may_join(p, right, stop)))
      return right;
    if (border == Automaton::depends)
      return p;
  }
  return p;
}

const uint8_t *CharacterEncoder::last_piece(const uint8_t *start, const uint8_t *p,
                                            const uint8_t *stop) const {
  if (borders_->by_joins) // any safe border may end a piece
    return p;
  return start + last_safe_cut(*borders_, start, static_cast<size_t>(p - start) + read_char(p, stop).length);
}

void CharacterEncoder::walk_scanned(const TextWindow &window, size_t &offset, const uint8_t *readable) {
  const uint8_t *const origin = window.origin();
  const size_t certain = window.certain();
  CharacterWalk walk;
  walk.window = window.view();
  walk.at = offset;
  for (;;) {
    walk_on(walk, readable);
    if (walk.at == certain)
      break;
    size_t start = window.last_start(walk.at), end = window.next_start(walk.at);
    walk.at =
        static_cast<size_t>(push_start(origin + start, origin + walk.at, origin + end, readable) - origin);
    for (size_t others = 0; walk.at == end && end < certain && !is_character_lead(origin[end]);) {
      if (++others > most_others) {
        offset = end;
        return;
      }
      start = end;
      end = window.next_start(start);
      walk.at =
          static_cast<size_t>(push_start(origin + start, origin + start, origin + end, readable) - origin);
    }
  }
  offset = certain;
}

// Push the rest of the pretoken [start, stop) from the safe border p, or only its first part if a walk over
// characters may continue after it. Returns the end of the pushed text.
const uint8_t *CharacterEncoder::push_start(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                                            const uint8_t *readable) {
  const size_t size = static_cast<size_t>(stop - start);
  if (p == start && !needs_cutting(*start, size)) {
    out_.push_part(start, size, true, readable);
    return stop;
  }
  if (is_character_lead(*p) || (stop - p > 1 && is_character_lead(p[1]))) {
    const uint8_t *const border = next_safe_border(start, p, stop);
    if (border < stop && is_character_lead(*border)) {
      out_.push_part(p, static_cast<size_t>(border - p), false, readable);
      return border;
    }
  }
  push_cut(start, p, stop, readable);
  return stop;
}

} // namespace bpe
