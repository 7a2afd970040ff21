#include "encode/encoder_session.hpp"

#include "cache/long_key.hpp"
#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <stdexcept>

namespace bpe {

EncoderSession::EncoderSession(const Vocabulary &vocabulary, const CharacterTable *characters,
                               const Automaton *automaton, bool ignore_merges, CacheBudget &budget,
                               size_t cache_share_bytes)
    : out(vocabulary, characters ? characters->view() : Characters{}, ignore_merges, budget,
          cache_share_bytes),
      characters_(vocabulary, characters, automaton, out), walk_keys_(simd_variant().walk_keys) {
  if (!automaton)
    return;
  window_.emplace(*automaton);
  if (automaton->later)
    later_.emplace(*(later_phases_ = automaton->later.get()));
}

void EncoderSession::reset() {
  out.reset();
  normalized_text.reset();
  changed_text.reset();
  if (later_)
    later_->reset();
}

void EncoderSession::encode_text(const uint8_t *text, size_t size, const uint8_t *readable,
                                 bool begins_input) {
  if (!window_)
    throw std::invalid_argument(
        "this encoder has no pattern of its own; give it pretokens (encode_pretokens)");
  window_->reset(text, size, readable);
  size_t input_bytes = 0;
  if (later_ && later_phases_->asks_for_input && begins_input && size > 0)
    input_bytes = read_char(text, text + size).length;
  constexpr ptrdiff_t worth = 256; // bytes: after a walk, as long as there is more to walk over soon
  const uint8_t *walked = text;    // up to a safe border, if a walk came before the scan
  for (const uint8_t *at = text, *const stop = text + size; at < stop;) {
    size_t most = WindowStates::max_bytes;
    if (characters_.walks_unscanned() && walked <= at) {
      walked = characters_.walk_unscanned(at, stop, readable);
      if (walked == stop)
        break;
      if (walked > at) {
        if (walked - at >= worth)
          most = worth;
        at = characters_.last_piece(at, walked, stop);
        window_->reset(at, static_cast<size_t>(stop - at), readable);
      }
    }
    window_->open(at, most);
    if (window_->certain() == 0) {
      const uint8_t *const end = window_->end_of_long_piece();
      if (walked > at)
        characters_.push_cut(at, walked, end, readable);
      else if (!window_->drops_first())
        push_piece(at, end, readable, input_bytes);
      at = end;
      input_bytes = 0;
      continue;
    }
    if (window_->any_dropped())
      encode_each_piece(readable, input_bytes);
    else if (later_)
      encode_staying(readable, input_bytes);
    else
      encode_window(walked > at ? static_cast<size_t>(walked - at) : 0, readable);
    at += window_->certain();
    input_bytes = 0;
  }
}

// Encode the certain part of the window from `offset`: the start of a piece, or a safe border in one.
void EncoderSession::encode_window(size_t offset, const uint8_t *readable) {
  const uint8_t *const origin = window_->origin(), *const stop = origin + window_->certain();
  while (offset < window_->certain()) {
    if (characters_.may_walk(origin + offset, stop))
      characters_.walk_scanned(*window_, offset, readable);
    else
      walk_keys(offset, readable);
  }
}

// Encode all certain pieces if some continue to later phases.
void EncoderSession::encode_staying(const uint8_t *readable, size_t input_bytes) {
  const uint8_t *const origin = window_->origin();
  const size_t certain = window_->certain();
  for (size_t offset = 0;;) {
    const size_t staying = later_phases_->staying(origin + offset, certain - offset);
    const size_t stop = offset + staying == certain ? certain : window_->last_start(offset + staying);
    window_->narrow(stop);
    encode_window(offset, readable);
    window_->widen();
    if (stop == certain)
      return;
    offset = window_->next_start(stop);
    push_piece(origin + stop, origin + offset, readable, stop == 0 ? input_bytes : 0);
  }
}

// The same if some pieces are dropped.
void EncoderSession::encode_each_piece(const uint8_t *readable, size_t input_bytes) {
  const uint8_t *const origin = window_->origin();
  window_->for_each_certain([&](size_t start, size_t stop, bool drops) {
    if (!drops)
      push_piece(origin + start, origin + stop, readable, start == 0 ? input_bytes : 0);
  });
}

void EncoderSession::push_piece(const uint8_t *start, const uint8_t *stop, const uint8_t *readable,
                                size_t input_bytes) {
  const size_t size = static_cast<size_t>(stop - start);
  if (!later_ || later_phases_->leaves(start, size))
    return characters_.push_cut(start, start, stop, readable);
  later_->cut({reinterpret_cast<const char *>(start), size}, readable, input_bytes);
  const uint8_t *const kept = later_->keep([&] { out.finish(); });
  size_t done = 0;
  for (const size_t end : later_->ends()) {
    if (end > done)
      characters_.push_cut(kept + done, kept + done, kept + end, later_->kept_readable());
    done = end;
  }
}

// Fill a batch from `offset` to where the computation of keys stops, and cut the pretoken there.
void EncoderSession::walk_keys(size_t &offset, const uint8_t *readable) {
  BatchEncoder::Batch &batch = out.open_batch(walk_step);
  const size_t first_long = batch.long_count;
  WalkedKeys made{batch.count,  BatchEncoder::batch_items, batch.keys, batch.hashes, batch.bytes,
                  batch.values, batch.long_items,          first_long};
  const bool stopped = walk_keys_(window_->view(), offset, readable, made);
  for (size_t k = first_long; k < made.long_count; ++k) {
    const size_t i = made.long_items[k];
    batch.keys[i] = long_key(batch.bytes[i], batch.values[i]);
    batch.hashes[i] = batch.keys[i].hash();
    out.prefetch(batch.hashes[i]);
  }
  batch.count = made.count;
  batch.long_count = made.long_count;
  if (!stopped)
    return;
  const uint8_t *const p = window_->origin() + offset;
  if (characters_.may_walk(p, window_->origin() + window_->certain()))
    return;
  offset = window_->next_start(offset);
  characters_.push_cut(p, p, window_->origin() + offset, readable);
}

} // namespace bpe
