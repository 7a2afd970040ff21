// Encode Chinese text with the walk of character_walk.hpp, and by pretokens where the walk stops. If two
// characters determine enough of the borders between pretokens, the walk comes first, and the automaton only
// scans the rest.
#include "cache/short_key.hpp"
#include "encode/encoder_session.hpp"
#include "pretokenize/safe_cut.hpp"
#include "text/utf8.hpp"
#include "text/wordless_leads.hpp"

namespace bpe {

namespace {

constexpr size_t most_others = 8; // pretokens between Chinese ones

// Return whether a byte leads a character that usually occurs in runs. This excludes E2, the quotes and
// dashes of English, where words would miss the cache.
bool is_character_lead(uint8_t byte) {
  return byte > 0xE2 && byte < 0xF0 && is_wordless_lead(byte);
}

} // namespace

// Return whether to walk over a text by characters from `at`, the start of a pretoken: such a character is
// there, or one byte later.
bool EncoderSession::may_walk_characters(const uint8_t *at, const uint8_t *stop) const {
  return has_character_ids_ &&
         (is_character_lead(*at) || (*at < 0x80 && stop - at >= 2 && is_character_lead(at[1])));
}

// Walk until the walk stops, and push the IDs and parts.
void EncoderSession::walk_on(CharacterWalk &walk, const uint8_t *readable) {
  do {
    Batch &batch = open_batch(2 * CharacterWalk::most_parts + 1);
    const uint32_t *ids = batch.ready_ids + batch.ready_count;
    walk.out = batch.ready_ids + batch.ready_count;
    walk.out_stop = batch.ready_ids + ready_room;
    walk_characters_(character_view_, walk);
    const auto push_ids = [&](size_t count) {
      if (count > 0)
        push(ready_ids, reinterpret_cast<const uint8_t *>(ids), static_cast<uint32_t>(count));
      ids += count;
    };
    for (size_t i = 0; i < walk.part_count; ++i) {
      const CharacterWalk::Part &part = walk.parts[i];
      push_ids(part.ids_before);
      push_part(part.bytes, part.size, part.whole, readable);
    }
    push_ids(static_cast<size_t>(walk.out - ids));
    batch.ready_count = static_cast<size_t>(walk.out - batch.ready_ids); // after all of this is in the batch
  } while (walk.full && walk.at < walk.window.certain);
}

// Walk from the start of a piece, and over some pieces between such characters, without a scan. Returns a
// safe border or one between pieces, or `at` if there is nothing to walk over.
const uint8_t *EncoderSession::walk_unscanned(const uint8_t *at, const uint8_t *stop,
                                              const uint8_t *readable) {
  if (!may_walk_characters(at, stop))
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
const uint8_t *EncoderSession::next_border(const uint8_t *p, const uint8_t *stop) const {
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

// Return the start of the last piece known to start at or before p, a border that a walk reached from a
// start.
const uint8_t *EncoderSession::last_piece(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const {
  if (borders_->by_joins) // any safe border may end a piece
    return p;
  return start + last_safe_cut(*borders_, start, static_cast<size_t>(p - start) + read_char(p, stop).length);
}

// Advance `offset` to the start of a pretoken followed by other characters, or to the last certain start.
void EncoderSession::walk_characters(size_t &offset, const uint8_t *readable) {
  const uint8_t *const origin = window_->origin();
  const size_t certain = window_->certain();
  CharacterWalk walk;
  walk.window = window_->view();
  walk.at = offset;
  for (;;) {
    walk_on(walk, readable);
    if (walk.at == certain)
      break;
    size_t start = window_->last_start(walk.at), end = window_->next_start(walk.at);
    walk.at =
        static_cast<size_t>(push_start(origin + start, origin + walk.at, origin + end, readable) - origin);
    for (size_t others = 0; walk.at == end && end < certain && !is_character_lead(origin[end]);) {
      if (++others > most_others) {
        offset = end;
        return;
      }
      start = end;
      end = window_->next_start(start);
      walk.at =
          static_cast<size_t>(push_start(origin + start, origin + start, origin + end, readable) - origin);
    }
  }
  offset = certain;
}

// Push the rest of the pretoken [start, stop) from the safe border p, or only its first part if a walk over
// characters may continue after it. Returns the end of the pushed text.
const uint8_t *EncoderSession::push_start(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                                          const uint8_t *readable) {
  const size_t size = static_cast<size_t>(stop - start);
  if (p == start && !needs_cutting(*start, size)) {
    push_part(start, size, true, readable);
    return stop;
  }
  if (is_character_lead(*p) || (stop - p > 1 && is_character_lead(p[1]))) {
    const uint8_t *const border = next_safe_border(start, p, stop);
    if (border < stop && is_character_lead(*border)) {
      push_part(p, static_cast<size_t>(border - p), false, readable);
      return border;
    }
  }
  push_cut(start, p, stop, readable);
  return stop;
}

} // namespace bpe
