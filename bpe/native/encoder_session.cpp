#include "encoder_session.hpp"

#include "merge_by_windows.hpp"
#include "simd_variants.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace bpe {

EncoderSession::EncoderSession(const Vocabulary &vocabulary, LazyCharacterTable &characters,
                               std::optional<Pattern> pattern, bool whole_pretokens, CacheBudget &budget,
                               size_t cache_share_bytes)
    : vocabulary_(vocabulary), lazy_characters_(characters), merge_tables_(vocabulary.merge_tables()),
      make_keys_(simd_variant().make_keys), merge_short_pretokens_(simd_variant().merge_short_pretokens),
      merge_long_pretoken_(simd_variant().merge_long_pretoken),
      whole_pretokens_(whole_pretokens && !vocabulary.all_reachable()), cache_share_bytes_(cache_share_bytes),
      cache_(budget, cache_share_bytes) {
  if (pattern) {
    pretokenizer_.emplace(*pattern);
    walk_keys_ = simd_variant().key_walks[static_cast<size_t>(*pattern)];
  }
}

void EncoderSession::reset() {
  for (Batch &batch : batches_)
    batch.count = batch.long_count = 0;
  tokens.clear();
  if (tokens.lent())
    tokens = TokenBuffer();
  row_ends.clear();
}

// The batch to put the next item into. A full one is emitted only when the next is full too: by then the
// lines it asked for have come.
EncoderSession::Batch &EncoderSession::open_batch(size_t room) {
  if (batch_items - batches_[open_].count < room) {
    open_ ^= 1;
    if (batches_[open_].count > 0)
      emit(batches_[open_]);
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
  if (batches_[open_].count > 0)
    emit(batches_[open_]);
  open_ ^= 1;
  if (batches_[open_].count > 0)
    emit(batches_[open_]);
  scratch_.trim();
}

void EncoderSession::encode_text(const uint8_t *text, size_t size, const uint8_t *readable) {
  if (!pretokenizer_)
    throw std::invalid_argument(
        "this encoder has no pattern of its own; give it pretokens (encode_pretokens)");
  const uint8_t *at = text, *const stop = text + size;
  while (at < stop) {
    if (spans_left_ == 0) {
      walk_text(at, stop, readable);
      continue;
    }
    pretokenizer_->reset(at, static_cast<size_t>(stop - at));
    const Spans spans =
        pretokenizer_->next(std::clamp(spans_left_, Pretokenizer::block_spans, Pretokenizer::batch_spans));
    encode_spans(spans, readable);
    at += spans.ends[spans.count - 1];
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
                  batch.bytes, batch.values, batch.long_items, first_long,
                  0,           first_slots()};
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
  if (at == stop || (made.split_bytes == 0 && batch_items - made.count < walk_step))
    return;
  if (made.split_bytes == 0) { // a pretoken without an end in sight
    spans_left_ = 1;
    return;
  }
  push_long(at, made.split_bytes, readable);
  at += made.split_bytes;
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
void EncoderSession::encode_spans(const Spans &spans, const uint8_t *readable) {
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
      const size_t made = make_keys_to_split(run, first_slots(), keys, hashes);
      if (made < run.count) {
        split = uint64_t{1} << made;
        done = made + 1;
      }
      careful_ -= std::min(careful_, done);
    } else {
      split = make_keys_(run, first_slots(), keys, hashes);
    }
    batch.count = first + done;
    for (; split != 0; split &= split - 1) {
      const size_t i = static_cast<size_t>(std::countr_zero(split));
      const uint32_t start = i > 0 ? run.ends[i - 1] : run.start;
      batch.count = first + i;
      if (push_long(run.origin + start, run.ends[i] - start, readable) > 1) {
        done = i + 1;
        careful_ = careful_for;
        break;
      }
      batch.count = first + done;
    }
    left -= done;
    run.ends += done;
    run.start = run.ends[-1];
  }
}

// The slots of a full batch's long pretokens have come by now; where they lead is asked for in turn.
void EncoderSession::prefetch_long(const Batch &batch) const {
  for (size_t k = 0; k < batch.long_count; ++k) {
    const size_t i = batch.long_items[k];
    const PretokenCache::Slot &slot = *cache_.first_slot(batch.hashes[i]);
    if (!slot.holds(batch.keys[i]))
      continue;
    const uint32_t *const place = cache_.arena(slot);
    prefetch_to_read(place);
    prefetch_to_read(place + 16);
  }
}

// Copies four ids or sixteen, whatever the count: `out` has room for sixteen.
inline uint32_t *EncoderSession::emit_slot(const Batch &batch, size_t i, const PretokenCache::Slot &slot,
                                           uint32_t *out) {
  const uint32_t count = slot.id_count();
  if (count <= 4) [[likely]] {
    std::memcpy(out, slot.ids, sizeof slot.ids);
    return out + count;
  }
  if (count != PretokenCache::in_arena) {
    slot.unpack(out);
    return out + count;
  }
  return emit_from_arena(batch, i, slot, out);
}

uint32_t *EncoderSession::emit_from_arena(const Batch &batch, size_t i, const PretokenCache::Slot &slot,
                                          uint32_t *out) {
  const uint32_t *ids = cache_.arena(slot);
  const size_t count = slot.ids[1];
  const CacheKey key = batch.keys[i];
  if (!key.is_long()) {
    std::memcpy(out, ids, PretokenCache::max_ids * sizeof(uint32_t));
    return out + count;
  }
  const size_t size = key.long_size();
  if (!equal_long(reinterpret_cast<const uint8_t *>(ids), batch.bytes[i], size)) [[unlikely]]
    return merge_long(batch.bytes[i], size, (key.high & CacheKey::part_bit) == 0, out);
  ids += PretokenCache::words_of(size);
  tokens.set_end(out);
  out = tokens.room(count + batch_room);
  for (size_t k = 0; k < count; k += 16) // whole registers: a copy by size would be mispredicted
    std::memcpy(out + k, ids + k, 16 * sizeof(uint32_t));
  return out + count;
}

void EncoderSession::emit(Batch &batch) {
  uint32_t *out = tokens.room(batch_room);
  cache_.count_lookups(batch.count);
  for (size_t i = 0; i < batch.count; ++i) {
    const PretokenCache::Slot *const slot = cache_.first_slot(batch.hashes[i]);
    if (slot->holds(batch.keys[i])) [[likely]] {
      out = emit_slot(batch, i, *slot, out);
    } else {
      out = emit_item(batch, i, out);
    }
  }
  tokens.set_end(out);
  batch.count = batch.long_count = 0;
  batch.merged = false;
}

// Merges all short pretokens of the batch from `first` on that are not in the cache, which takes them as it
// sees fit.
void EncoderSession::merge_missing(Batch &batch, size_t first) {
  batch.merged = true;
  static_assert(batch_items <= max_short_merges && no_merge >= batch_items);
  std::fill(merge_of_item_ + first, merge_of_item_ + batch.count, no_merge);
  size_t items[batch_items];
  size_t maybe = 0, count = 0;
  for (size_t i = first; i < batch.count; ++i) {
    const uint32_t hash = batch.hashes[i];
    if (batch.keys[i].high != 0 && !batch.keys[i].is_long() && !cache_.is_in_line(batch.keys[i], hash)) {
      items[maybe++] = i;
      prefetch_to_read(cache_.next_line(hash));
    }
  }
  for (size_t k = 0; k < maybe; ++k) {
    const size_t i = items[k];
    const CacheKey key = batch.keys[i];
    if (cache_.find(key, batch.hashes[i]))
      continue;
    ShortMerge &merge = merges_[count];
    key.copy_bytes(merge.bytes);
    merge.size = static_cast<uint32_t>(key.size());
    items[count] = i;
    merge_of_item_[i] = static_cast<uint8_t>(count++);
  }
  merge_short_pretokens_(merge_tables_, merges_, count);
  for (size_t k = 0; k < count; ++k) {
    const size_t i = items[k];
    ShortMerge &merge = merges_[k];
    if (const uint32_t entry = find_whole(batch.keys[i], merge.bytes); entry != PairTable::no_symbol) {
      merge.symbols[0] = entry;
      merge.count = 1;
    }
    vocabulary_.to_ids(merge.symbols, merge.count);
    if (!cache_.find(batch.keys[i], batch.hashes[i])) // the same pretoken twice
      cache_.insert(batch.keys[i], batch.hashes[i], merge.symbols, merge.count);
  }
}

// The entry that a whole pretoken is emitted as at once, or no_symbol.
uint32_t EncoderSession::find_whole(const CacheKey &key, const uint8_t *bytes) const {
  if (!whole_pretokens_ || key.high & CacheKey::part_bit)
    return PairTable::no_symbol;
  return vocabulary_.find_unreachable({reinterpret_cast<const char *>(bytes), key.size()});
}

// What is not a hit in its first slot. Long pretokens make their own room, so `out` may move.
uint32_t *EncoderSession::emit_item(Batch &batch, size_t i, uint32_t *out) {
  const CacheKey key = batch.keys[i];
  if (key.high != 0) {
    if (key.is_long() || !batch.merged) {
      if (const PretokenCache::Slot *const slot = cache_.find_and_promote(key, batch.hashes[i]))
        return emit_slot(batch, i, *slot, out);
      if (key.is_long()) {
        const size_t start = static_cast<size_t>(out - tokens.data());
        out = merge_long(batch.bytes[i], key.long_size(), (key.high & CacheKey::part_bit) == 0, out);
        const uint32_t *const ids = tokens.data() + start;
        cache_.insert_long(key, batch.hashes[i], batch.bytes[i], ids, static_cast<size_t>(out - ids));
        return out;
      }
      merge_missing(batch, i);
    }
    if (const uint8_t merge = merge_of_item_[i]; merge != no_merge) {
      std::memcpy(out, merges_[merge].symbols, sizeof merges_[merge].symbols);
      return out + merges_[merge].count;
    }
    // There when the batch was merged; inserts since then may have taken its slot.
    if (const PretokenCache::Slot *const slot = cache_.find_and_promote(key, batch.hashes[i]))
      return emit_slot(batch, i, *slot, out);
    return emit_displaced(key, out);
  }
  switch (key.low) {
  case huge_pretoken:
  case huge_part:
    return merge_long(batch.bytes[i], batch.values[i], key.low == huge_pretoken, out);
  case characters:
    tokens.set_end(out);
    tokens.set_end(emit_characters(batch.bytes[i], batch.values[i], tokens.room(batch.values[i] + 1)));
    return tokens.room(batch_room);
  case row_end:
    tokens.set_end(out);
    row_ends.push_back(tokens.size());
    return out;
  case token:
    *out = batch.values[i];
    return out + 1;
  default: // an empty pretoken
    return out;
  }
}

uint32_t *EncoderSession::emit_displaced(const CacheKey &key, uint32_t *out) const {
  uint8_t bytes[16];
  key.copy_bytes(bytes);
  uint32_t symbols[short_pretoken_bytes];
  size_t count = 1;
  symbols[0] = find_whole(key, bytes);
  if (symbols[0] == PairTable::no_symbol)
    count = merge_short(vocabulary_, bytes, key.size(), symbols);
  for (size_t i = 0; i < count; ++i)
    out[i] = vocabulary_.id(symbols[i]);
  return out + count;
}

// The ids of a long pretoken, to `out`, which may move. Returns their end, with a batch's room behind it.
uint32_t *EncoderSession::merge_long(const uint8_t *bytes, size_t size, bool whole, uint32_t *out) {
  tokens.set_end(out);
  out = tokens.room(size + batch_room);
  const uint32_t entry = whole && whole_pretokens_
                             ? vocabulary_.find_unreachable({reinterpret_cast<const char *>(bytes), size})
                             : PairTable::no_symbol;
  if (entry != PairTable::no_symbol) {
    *out = vocabulary_.id(entry);
    return out + 1;
  }
  if (!sweep_scratch_)
    sweep_scratch_ = std::make_unique_for_overwrite<SweepScratch>();
  const size_t count =
      size <= max_sweep_bytes
          ? merge_long_pretoken_(merge_tables_, bytes, size, *sweep_scratch_, out)
          : WindowMerge(vocabulary_, merge_long_pretoken_, *sweep_scratch_, scratch_).merge(bytes, size, out);
  vocabulary_.to_ids(out, count);
  return out + count;
}

} // namespace bpe
