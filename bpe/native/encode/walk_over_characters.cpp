// How an encoder session goes through Chinese: by the walk of character_walk.hpp, and by pretokens where that
// stops.
#include "encode/encoder_session.hpp"
#include "text/wordless_leads.hpp"

#include <algorithm>
#include <stdexcept>

namespace bpe {

namespace {

// Of a character that seldom stands among others: not E2, the quotes and dashes of English (with those 450 ->
// 134 MB/s).
bool is_character_lead(uint8_t byte) {
  return byte > 0xE2 && byte < 0xF0 && is_wordless_lead(byte);
}

} // namespace

// Whether a text is to be walked over by characters from `at` on, a pretoken's start: one of them is there,
// or behind a byte.
bool EncoderSession::may_walk_characters(const uint8_t *at, const uint8_t *stop) {
  if (!is_character_lead(*at) && (*at >= 0x80 || stop - at < 2 || !is_character_lead(at[1])))
    return false;
  if (!characters_) {
    characters_ = &lazy_characters_.get();
    character_view_ = characters_->view();
  }
  return characters_->has_ids() && !(ignore_merges_ && characters_->has_unreachable());
}

// `at` moves to a pretoken's start behind which there are other characters, or to the end.
void EncoderSession::walk_characters(const uint8_t *&at, const uint8_t *stop, const uint8_t *readable) {
  constexpr size_t most_others = 8; // pretokens between Chinese ones (4: Japanese with code 1 to 2 % slower)
  // start: of the pretoken that p is in, or of one before. end: of the same, if it is behind p. It is asked
  // for once a pretoken, however long that is.
  const uint8_t *p = at, *start = p, *end = p;
  NearPretokens near{p, 0};
  const auto end_of = [&](const uint8_t *pretoken) {
    if (!near.have(pretoken))
      near = {pretoken, character_walks_->boundaries(pretoken, stop)};
    return near.have(pretoken) ? near.end_at(pretoken) : character_walks_->match_end(pretoken, stop);
  };
  for (;;) {
    Batch &batch = open_batch(2 * CharacterWalk::most_parts + 1);
    const uint32_t *ids = batch.ready_ids + batch.ready_count;
    CharacterWalk walk;
    walk.at = p;
    walk.stop = stop;
    walk.start = start;
    walk.ask_whole = ignore_merges_;
    walk.out = batch.ready_ids + batch.ready_count;
    walk.out_stop = batch.ready_ids + ready_room;
    character_walks_->walk(character_view_, walk);
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
    const uint8_t *const from = p;
    p = walk.at;
    start = walk.start;
    if (p == stop)
      break;
    if (walk.full)
      continue;
    if (p >= end) {
      if (near.have(p))
        start = near.start_at(p);
      else if (p > start)
        if (const uint8_t *const boundary = character_walks_->last_boundary(std::max(from, start), p, stop))
          start = boundary;
      for (end = end_of(start); end <= p; end = end_of(start))
        start = end;
    }
    p = push_start(start, p, end, readable);
    for (size_t others = 0; p == end && p < stop && !is_character_lead(*p);) {
      if (++others > most_others) {
        at = p;
        return;
      }
      start = p;
      end = end_of(p);
      p = push_start(start, p, end, readable);
    }
    if (p == end)
      start = p;
    if (p == stop)
      break;
  }
  at = stop;
}

// What of the pretoken [start, stop) lies behind p, a safe border: all of it, or its first part if a walk
// over characters may go on behind that. Returns the end of what it took.
const uint8_t *EncoderSession::push_start(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                                          const uint8_t *readable) {
  const size_t size = static_cast<size_t>(stop - start);
  if (size > UINT32_MAX)
    throw std::length_error("a pretoken of 4 GiB or more; cut the text into documents");
  if (p == start && !is_split(*start, size)) {
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
  const uint32_t end = static_cast<uint32_t>(size);
  push_cut({start, 0, &end, 1, readable}, 0, p);
  return stop;
}

} // namespace bpe
