// How an encoder session goes through Chinese: by the walk of character_walk.hpp, and by pretokens where that
// stops.
#include "encode/encoder_session.hpp"

#include <algorithm>
#include <stdexcept>

namespace bpe {

namespace {

// Of a character of three bytes; not E0, whose scripts have short pretokens that are found in the cache.
bool is_character_lead(uint8_t byte) {
  return byte > 0xE0 && byte < 0xF0;
}

} // namespace

// Whether text may be walked over by characters from `at` on, a pretoken's start.
bool EncoderSession::may_walk_characters(const uint8_t *at) {
  if (!is_character_lead(*at))
    return false;
  if (!characters_) {
    characters_ = &lazy_characters_.get();
    character_view_ = characters_->view();
  }
  return characters_->has_ids() && !(whole_pretokens_ && characters_->has_unreachable());
}

// `at` moves to a pretoken's start behind which there are other characters, or to the end.
void EncoderSession::walk_characters(const uint8_t *&at, const uint8_t *stop, const uint8_t *readable) {
  constexpr size_t most_others = 4;  // pretokens between Chinese ones
  const uint8_t *p = at, *start = p; // of the pretoken that p is in, or of one before
  for (;;) {
    Batch &batch = open_batch();
    uint32_t *const ids = batch.ready_ids + batch.ready_count;
    CharacterWalk walk{p,    stop, start, ids, batch.ready_ids + ready_room, 0, CharacterWalk::Part::unknown,
                       false};
    character_walks_->walk(character_view_, walk);
    if (walk.out > ids) {
      const size_t count = static_cast<size_t>(walk.out - ids);
      push(ready_ids, reinterpret_cast<const uint8_t *>(ids), static_cast<uint32_t>(count));
      batch.ready_count += count;
    }
    const uint8_t *const from = p;
    p = walk.at;
    start = walk.start;
    if (p == stop)
      break;
    if (walk.full)
      continue;
    if (walk.part_bytes > 0 && (!whole_pretokens_ || walk.part_is != CharacterWalk::Part::unknown)) {
      const bool whole = walk.part_is == CharacterWalk::Part::whole;
      push_part(p, walk.part_bytes, whole, readable);
      p += walk.part_bytes;
      if (p == stop)
        break;
      if (whole)
        start = p;
      continue;
    }
    if (p > start)
      if (const uint8_t *const boundary = character_walks_->last_boundary(std::max(from, start), p, stop))
        start = boundary;
    const uint8_t *end = character_walks_->match_end(start, stop);
    for (; end <= p; end = character_walks_->match_end(start, stop))
      start = end;
    push_pretoken(start, p, end, readable);
    size_t others = 0;
    for (p = end; p < stop && !is_character_lead(*p); p = end) {
      if (++others > most_others) {
        at = p;
        return;
      }
      end = character_walks_->match_end(p, stop);
      push_pretoken(p, p, end, readable);
    }
    if (p == stop)
      break;
    start = p;
  }
  at = stop;
}

// What of the pretoken [start, stop) lies behind p, a safe border.
void EncoderSession::push_pretoken(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                                   const uint8_t *readable) {
  const size_t size = static_cast<size_t>(stop - start);
  if (size > UINT32_MAX)
    throw std::length_error("a pretoken of 4 GiB or more; cut the text into documents");
  if (p == start && !is_split(*start, size))
    return push_part(start, size, true, readable);
  const uint32_t end = static_cast<uint32_t>(size);
  push_cut({start, 0, &end, 1, readable}, 0, p);
}

} // namespace bpe
