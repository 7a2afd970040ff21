#include "encode/encoder_session.hpp"

#include "common/prefetch.hpp"
#include "simd/simd_variants.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace bpe {

EncoderSession::EncoderSession(const Vocabulary &vocabulary, LazyCharacterTable &characters,
                               std::optional<Pattern> pattern, bool ignore_merges, CacheBudget &budget,
                               size_t cache_share_bytes)
    : vocabulary_(vocabulary), lazy_characters_(characters), merge_tables_(vocabulary.merge_tables()),
      make_keys_(simd_variant().make_keys), find_characters_(simd_variant().find_characters),
      emit_characters_(simd_variant().emit_characters),
      merge_short_pretokens_(simd_variant().merge_short_pretokens),
      merge_long_pretoken_(simd_variant().merge_long_pretoken),
      merge_long_pretokens_(simd_variant().merge_long_pretokens),
      ignore_merges_(ignore_merges && !vocabulary.all_reachable()), cache_share_bytes_(cache_share_bytes),
      cache_(budget, cache_share_bytes) {
  if (pattern) {
    pretokenizer_.emplace(*pattern);
    walk_keys_ = simd_variant().key_walks[static_cast<size_t>(*pattern)];
    character_walks_ = &simd_variant().character_walks[static_cast<size_t>(*pattern)];
  }
}

void EncoderSession::reset() {
  for (Batch &batch : batches_)
    batch.count = batch.long_count = batch.ready_count = 0;
  misses_.clear();
  normalized_text.reset();
  tokens.clear();
  if (tokens.lent())
    tokens = TokenBuffer();
  row_ends.clear();
}

// The batch to put the next item into. A full one is emitted only when the next is full too, whose lines are
// asked for meanwhile.
EncoderSession::Batch &EncoderSession::open_batch(size_t room) {
  if (batch_items - batches_[open_].count < room || batches_[open_].ready_count >= ready_room) {
    open_ ^= 1;
    emit(batches_[open_], batches_[open_ ^ 1]);
    if (batches_[open_ ^ 1].long_count > 0)
      prefetch_long(batches_[open_ ^ 1]);
  }
  return batches_[open_];
}

void EncoderSession::push(Item item, const uint8_t *bytes, uint32_t value) {
  Batch &batch = open_batch();
  const size_t i = batch.count++;
  batch.keys[i] = {item, 0};
  batch.hashes[i] = 0;
  batch.bytes[i] = bytes;
  batch.values[i] = value;
}

void EncoderSession::append_token(uint32_t id) {
  push(token, nullptr, id);
}

void EncoderSession::end_row() {
  push(row_end, nullptr, 0);
}

void EncoderSession::finish() {
  open_ ^= 1;
  emit(batches_[open_], batches_[open_ ^ 1]);
  open_ ^= 1;
  emit(batches_[open_], batches_[open_ ^ 1]);
  if (misses_.is_open())
    tokens.set_end(flush_misses(misses_.end()));
  heap_.trim();
}

void EncoderSession::encode_text(const uint8_t *text, size_t size, const uint8_t *readable) {
  if (!pretokenizer_)
    throw std::invalid_argument(
        "this encoder has no pattern of its own; give it pretokens (encode_pretokens)");
  const uint8_t *at = text, *const stop = text + size;
  if (size > 0 && may_walk_characters(at, stop))
    walk_characters(at, stop, readable);
  while (at < stop) {
    if (spans_left_ == 0) {
      walk_text(at, stop, readable);
      continue;
    }
    pretokenizer_->reset(at, static_cast<size_t>(stop - at));
    const Spans spans =
        pretokenizer_->next(std::clamp(spans_left_, Pretokenizer::block_spans, Pretokenizer::batch_spans));
    at = encode_spans(spans, stop, readable);
    spans_left_ -= std::min(spans_left_, spans.count);
  }
}

// Fills a batch from `at` on. Where that stops again and again, as in Chinese, the next pretokens are taken
// as spans, ever more of them.
void EncoderSession::walk_text(const uint8_t *&at, const uint8_t *stop, const uint8_t *readable) {
  constexpr size_t of_use = 32; // pretokens between two stops
  Batch &batch = open_batch(walk_step);
  const size_t first = batch.count, first_long = batch.long_count;
  WalkedKeys made{first,       batch_items,  batch.keys,       batch.hashes,
                  batch.bytes, batch.values, batch.long_items, first_long};
  walk_keys_(at, stop, readable, made);
  for (size_t k = first_long; k < made.long_count; ++k) {
    const size_t i = made.long_items[k];
    batch.keys[i] = long_key(batch.bytes[i], batch.values[i]);
    batch.hashes[i] = batch.keys[i].hash();
    prefetch_to_read(cache_.first_slot(batch.hashes[i]));
  }
  batch.count = made.count;
  batch.long_count = made.long_count;
  walked_ += made.count - first;
  if (made.stop_bytes == 0) {
    spans_left_ = at < stop && batch_items - made.count >= walk_step; // 4 GiB or more, which they refuse
    return;
  }
  if (may_walk_characters(at, stop))
    return walk_characters(at, stop, readable);
  const uint32_t stop_end = static_cast<uint32_t>(made.stop_bytes);
  push_cut({at, 0, &stop_end, 1, readable}, 0, at);
  at += made.stop_bytes;
  if (!made.stopped_by_split)
    return;
  if (walked_ >= of_use) {
    spans_at_once_ = Pretokenizer::block_spans;
  } else {
    spans_left_ = spans_at_once_;
    spans_at_once_ = std::min(2 * spans_at_once_, Pretokenizer::batch_spans);
  }
  walked_ = 0;
}

// Keys are made in the batch, for all pretokens that fit. Where a long one becomes several items, those
// behind it have lost their places and are made again; while that happens, keys are made one by one and only
// up to the next long one (several languages 165 -> 204 MB/s).
//
// text_stop: if not null, the pretokens are those of a text that goes on up to there, and Chinese is walked
// over. Returns the end of what has been encoded, perhaps behind the last of them.
const uint8_t *EncoderSession::encode_spans(const Spans &spans, const uint8_t *text_stop,
                                            const uint8_t *readable) {
  constexpr size_t careful_for = 256; // pretokens
  PretokenSpans run{spans.origin, 0, spans.ends, 0, readable};
  for (size_t left = spans.count; left > 0;) {
    Batch &batch = open_batch();
    const size_t first = batch.count;
    run.count = std::min({batch_items - first, left, size_t{64}}); // what make_keys takes
    CacheKey *const keys = batch.keys + first;
    uint32_t *const hashes = batch.hashes + first;
    size_t done = run.count;
    uint64_t split = 0;
    if (careful_ > 0) {
      const size_t made = make_keys_to_split(run, keys, hashes);
      if (made < run.count) {
        split = uint64_t{1} << made;
        done = made + 1;
      }
      careful_ -= std::min(careful_, done);
    } else {
      split = make_keys_(run, keys, hashes);
    }
    batch.count = first + done;
    for (; split != 0; split &= split - 1) {
      const size_t i = static_cast<size_t>(std::countr_zero(split));
      batch.count = first + i;
      run.count = left; // all that may belong to a run of characters
      const uint8_t *p = run.origin + (i > 0 ? run.ends[i - 1] : run.start);
      if (text_stop && may_walk_characters(p, text_stop)) {
        walk_characters(p, text_stop, readable);
        for (done = i + 1; done < left && run.origin + run.ends[done] <= p;)
          ++done;
        if (run.origin + run.ends[done - 1] < p)
          return p;
        careful_ = careful_for;
        break;
      }
      if (const Cut cut = push_cut(run, i, p); cut.pretokens != 1 || cut.items != 1) {
        done = i + cut.pretokens;
        careful_ = careful_for;
        break;
      }
      batch.count = first + done;
    }
    left -= done;
    run.ends += done;
    run.start = run.ends[-1];
  }
  return run.origin + run.start;
}

} // namespace bpe
