// How an encoder session goes through Chinese: by the walk of character_walk.hpp, and by pretokens where that
// stops. Where two characters tell enough of the borders between pretokens, the walk comes first, and the
// automaton looks only at what it leaves.
#include "cache/short_key.hpp"
#include "encode/encoder_session.hpp"
#include "pretokenize/safe_cut.hpp"
#include "text/utf8.hpp"
#include "text/wordless_leads.hpp"

namespace bpe {

namespace {

constexpr size_t most_others = 8; // pretokens between Chinese ones

// Of a character that seldom stands among others: not E2, the quotes and dashes of English, whose words would
// miss the cache.
bool is_character_lead(uint8_t byte) {
  return byte > 0xE2 && byte < 0xF0 && is_wordless_lead(byte);
}

} // namespace

// Whether a text is to be walked over by characters from `at` on, a pretoken's start: one of them is there,
// or behind a byte.
bool EncoderSession::may_walk_characters(const uint8_t *at, const uint8_t *stop) const {
  return has_character_ids_ &&
         (is_character_lead(*at) || (*at < 0x80 && stop - at >= 2 && is_character_lead(at[1])));
}

// Until the walk stops. What it found is pushed.
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
    batch.ready_count = static_cast<size_t>(walk.out - batch.ready_ids); // now that all is in this batch
  } while (walk.full && walk.at < walk.window.certain);
}

// From a piece's start on, and over some pieces between such characters, without a scan. Returns a safe
// border, or one between pieces; `at` if there is nothing to walk over.
const uint8_t *EncoderSession::walk_unscanned(const uint8_t *at, const uint8_t *stop,
                                              const uint8_t *readable) {
  if (!may_walk_characters(at, stop))
    return at;
  for (size_t others = 0; at < stop; ++others) {
    // One is not worth a walk.
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

// The first border behind p that no merge reaches across; p if it is far or hangs on what lies around.
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

// Where the last piece starts that is known to start at or before p, a border that a walk came to from a
// start on.
const uint8_t *EncoderSession::last_piece(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const {
  if (borders_->by_joins) // any safe border may end a piece
    return p;
  return start + last_safe_cut(*borders_, start, static_cast<size_t>(p - start) + read_char(p, stop).length);
}

// `offset` moves to a pretoken's start behind which there are other characters, or to the last certain one.
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

// What of the pretoken [start, stop) lies behind p, a safe border: all of it, or its first part if a walk
// over characters may go on behind that. Returns the end of what it took.
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
