// Convert a batch of cache keys to IDs: copy the IDs of hits, and collect misses to be merged.
#include "encode/batch_encoder.hpp"

#include "cache/long_key.hpp"
#include "cache/short_key.hpp"
#include "common/prefetch.hpp"
#include "merge/merge_by_windows.hpp"
#include "simd/simd_variants.hpp"

#include <algorithm>
#include <cstring>

namespace bpe {

BatchEncoder::BatchEncoder(const Vocabulary &vocabulary, const Characters &characters, bool ignore_merges,
                           CacheBudget &budget, size_t cache_share_bytes)
    : vocabulary_(vocabulary), characters_(characters), merge_tables_(vocabulary.merge_tables()),
      emit_characters_(simd_variant().emit_characters), merge_pretokens_(simd_variant().merge_pretokens),
      ignore_merges_(ignore_merges && !vocabulary.all_reachable()), cache_share_bytes_(cache_share_bytes),
      cache_(budget, cache_share_bytes) {}

void BatchEncoder::reset() {
  for (Batch &batch : batches_)
    batch.count = batch.long_count = batch.ready_count = 0;
  misses_.clear();
  tokens.clear();
  if (tokens.lent())
    tokens = TokenBuffer();
  row_ends.clear();
}

// Return the batch for the next item. A full batch is emitted only when the next one is full too, so that its
// cache lines are prefetched in between.
BatchEncoder::Batch &BatchEncoder::open_batch(size_t room) {
  if (batch_items - batches_[open_].count < room || batches_[open_].ready_count >= ready_room) {
    open_ ^= 1;
    emit(batches_[open_], batches_[open_ ^ 1]);
    if (batches_[open_ ^ 1].long_count > 0)
      prefetch_long(batches_[open_ ^ 1]);
  }
  return batches_[open_];
}

void BatchEncoder::push(Item item, const uint8_t *bytes, uint32_t value) {
  Batch &batch = open_batch();
  const size_t i = batch.count++;
  batch.keys[i] = {item, 0};
  batch.hashes[i] = 0;
  batch.bytes[i] = bytes;
  batch.values[i] = value;
}

void BatchEncoder::push_part(const uint8_t *bytes, size_t size, bool whole, const uint8_t *readable) {
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
    prefetch(batch.hashes[i]);
}

void BatchEncoder::finish() {
  open_ ^= 1;
  emit(batches_[open_], batches_[open_ ^ 1]);
  open_ ^= 1;
  emit(batches_[open_], batches_[open_ ^ 1]);
  if (misses_.is_open())
    tokens.set_end(flush_misses(misses_.end()));
  heap_.trim();
}

// The slots of the long pretokens of a full batch are in the cache by now; prefetch the data they point to.
void BatchEncoder::prefetch_long(const Batch &batch) const {
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

// Copy the IDs of a slot with up to four. Always copies four.
inline uint32_t *copy_four(const PretokenCache::Slot &slot, uint32_t last, uint32_t *out) {
  std::memcpy(out, slot.ids, sizeof slot.ids);
  return out + 1 + last;
}

// Copy four or sixteen IDs whatever the count: `out` has room for sixteen.
inline uint32_t *BatchEncoder::emit_slot(const Batch &batch, size_t i, const PretokenCache::Slot &slot,
                                         uint32_t *out) {
  const uint32_t last = slot.last_id();
  if (last < 4) [[likely]]
    return copy_four(slot, last, out);
  if (last != PretokenCache::in_arena) {
    slot.unpack(out);
    return out + 1 + last;
  }
  return emit_from_arena(batch, i, slot, out);
}

uint32_t *BatchEncoder::emit_from_arena(const Batch &batch, size_t i, const PretokenCache::Slot &slot,
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
    return emit_missing(batch, i, out);
  if (misses_.is_open() && !misses_.has_room(out, count + batch_room)) [[unlikely]] {
    // Merged misses are inserted into the cache, so the arena may move and this slot may be reused.
    out = flush_misses(out);
    const PretokenCache::Slot *const found = cache_.find(key, batch.hashes[i]);
    return found ? emit_from_arena(batch, i, *found, out) : emit_missing(batch, i, out);
  }
  ids += PretokenCache::words_of(size);
  out = room_for(count, out);
  for (size_t k = 0; k < count; k += 16) // whole registers: a branch on the size would be mispredicted
    std::memcpy(out + k, ids + k, 16 * sizeof(uint32_t));
  return out + count;
}

// Also prefetches the slots of the next batch: 128 prefetches at once, when keys are computed, would wait for
// each other.
void BatchEncoder::emit(Batch &batch, Batch &next) {
  uint32_t *out = room_for(0, misses_.is_open() ? misses_.end() : tokens.room(0));
  PretokenCache::FirstSlots first = first_slots_;
  const auto place = [&](Batch &of) {
    if (of.count > batch_items / 2)
      first.offsets(of.hashes, batch_items, of.offsets); // a loop of constant length
    else
      first.offsets(of.hashes, of.count, of.offsets); // a partial batch
  };
  const auto place_both = [&] {
    first = first_slots_ = cache_.first_slots();
    place(batch);
    place(next);
  };
  if (first != cache_.first_slots()) [[unlikely]]
    place_both();
  else
    place(next);
  for (size_t i = batch.count; i < next.count; ++i)
    prefetch_to_read(first.at(next.offsets[i]));
  for (size_t i = 0, count = batch.count; i < count; ++i) {
    const PretokenCache::Slot *const slot = first.at(batch.offsets[i]);
    prefetch_to_read(first.at(next.offsets[i]));
    prefetch_to_write(out + 128);
    if (slot->holds(batch.keys[i])) [[likely]] {
      if (const uint32_t last = slot->last_id(); last < 4) [[likely]] {
        out = copy_four(*slot, last, out);
        continue;
      }
      out = emit_slot(batch, i, *slot, out);
    } else {
      out = emit_item(batch, i, out);
    }
    if (first != cache_.first_slots()) [[unlikely]] // misses were merged, and the cache has grown
      place_both();
  }
  if (misses_.is_open()) {
    // Prefetch the lines of the result that are written when the window closes.
    const uint32_t *const result = tokens.data() + tokens.size();
    for (const uint32_t *id = misses_.end(); id < out; id += 16)
      prefetch_to_write(result + (id - misses_.begin()));
    misses_.set_end(out);
  } else {
    tokens.set_end(out);
  }
  batch.count = batch.long_count = batch.ready_count = 0;
}

// Emit an item that does not hit in its first slot. May move `out`.
uint32_t *BatchEncoder::emit_item(Batch &batch, size_t i, uint32_t *out) {
  const CacheKey &key = batch.keys[i];
  if (key.high != 0) {
    if (const PretokenCache::Slot *const slot = cache_.find_and_promote(key, batch.hashes[i]))
      return emit_slot(batch, i, *slot, out);
    if (key.is_long() || ignore_merges_)
      return emit_missing(batch, i, out);
    open_misses(out);
    misses_.add(key, batch.hashes[i], nullptr, out);
    return misses_.is_full() ? flush_misses(out) : out;
  }
  const uint8_t *const bytes = batch.bytes[i];
  const size_t size = batch.values[i];
  size_t count;
  switch (key.low) {
  case huge_pretoken:
    if (const uint32_t entry = find_whole(bytes, size); entry != PairTable::no_symbol) {
      *out = vocabulary_.id(entry);
      return out + 1;
    }
    [[fallthrough]];
  case huge_part:
    return merge_long(bytes, size, out, count);
  case characters:
    static_assert(characters_spare <= batch_room);
    out = room_for(size, out);
    if (size == 3) { // a quote or a dash
      const uint64_t ids = characters_.characters[Characters::code_point(bytes)].ids;
      const auto id = [&](unsigned k) {
        return static_cast<uint32_t>(ids >> k * Characters::id_bits) & Characters::no_id;
      };
      out[0] = id(0), out[1] = id(1), out[2] = id(2); // the next item overwrites IDs after these
      return out + 1 + (out[1] != Characters::no_id) + (out[2] != Characters::no_id);
    }
    return emit_characters_(characters_, bytes, size, out);
  case ready_ids: {
    const uint32_t *const ids = reinterpret_cast<const uint32_t *>(bytes);
    out = room_for(size, out);
    for (size_t k = 0; k < size; k += 16) // whole registers
      std::memcpy(out + k, ids + k, 16 * sizeof(uint32_t));
    return out + size;
  }
  case row_end:
    if (misses_.is_open()) {
      misses_.add_row_end(out);
      return misses_.is_full() ? flush_misses(out) : out;
    }
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

// Emit the IDs of an item that is not in the cache; most are written later.
uint32_t *BatchEncoder::emit_missing(const Batch &batch, size_t i, uint32_t *out) {
  const CacheKey &key = batch.keys[i];
  const uint32_t hash = batch.hashes[i];
  const bool is_long = key.is_long();
  uint8_t short_bytes[16];
  const uint8_t *bytes = short_bytes;
  if (is_long)
    bytes = batch.bytes[i];
  else
    key.copy_bytes(short_bytes);
  const size_t size = is_long ? key.long_size() : key.size();
  if (ignore_merges_ && (key.high & CacheKey::part_bit) == 0) {
    if (const uint32_t entry = find_whole(bytes, size); entry != PairTable::no_symbol) {
      const uint32_t ids[PretokenCache::max_ids] = {vocabulary_.id(entry)};
      if (is_long)
        cache_.insert_long(key, hash, bytes, ids, 1);
      else
        cache_.insert(key, hash, ids, 1);
      *out = ids[0];
      return out + 1;
    }
  }
  if (size > GatheredMisses::max_long_bytes) {
    size_t count;
    uint32_t *const end = merge_long(bytes, size, out, count);
    if (count > 0)
      cache_.insert_long(key, hash, bytes, end - count, count);
    return end;
  }
  open_misses(out);
  misses_.add(key, hash, bytes, out);
  return misses_.is_full() ? flush_misses(out) : out;
}

// Move `out` to the window unless it is already open.
inline void BatchEncoder::open_misses(uint32_t *&out) {
  if (misses_.is_open())
    return;
  tokens.set_end(out);
  out = misses_.open();
}

// Merge the misses, insert them into the cache and close the window. Returns where the next ID goes in the
// result, with room for a batch.
uint32_t *BatchEncoder::flush_misses(uint32_t *out) {
  misses_.set_end(out);
  for (size_t i = 0; i < misses_.size(); ++i)
    prefetch_to_write(cache_.first_slot(misses_[i].hash));
  PretokenMerge *const merges = misses_.merges();
  if (!vocabulary_.merges_characters())
    merge_pretokens_(merge_tables_, merges, misses_.size(), rank_scratch());
  for (size_t i = 0; i < misses_.size(); ++i) {
    auto &[bytes, size, count, ids] = merges[i];
    if (vocabulary_.merges_characters())
      count = static_cast<uint32_t>(merge_characters(bytes, size, ids));
    count = static_cast<uint32_t>(vocabulary_.to_ids(ids, count));
    if (count == 0) // unknown characters that are dropped; the cache stores no pretoken without IDs
      continue;
    const auto &[key, hash] = misses_[i];
    if (key.is_long())
      cache_.insert_long(key, hash, bytes, ids, count);
    else
      cache_.insert(key, hash, ids, count);
  }
  uint32_t *const to = tokens.room(misses_.most_ids() + batch_room);
  tokens.set_end(misses_.write(tokens.data(), to, row_ends));
  misses_.clear();
  return tokens.room(batch_room);
}

// Return `out` or its new location, with room for `count` IDs and then a batch.
uint32_t *BatchEncoder::room_for(size_t count, uint32_t *out) {
  if (misses_.is_open()) {
    if (misses_.has_room(out, count + batch_room))
      return out;
    out = flush_misses(out);
  }
  tokens.set_end(out);
  return tokens.room(count + batch_room);
}

// Return the entry for a pretoken that is emitted whole, or no_symbol.
uint32_t BatchEncoder::find_whole(const uint8_t *bytes, size_t size) const {
  if (!ignore_merges_)
    return PairTable::no_symbol;
  const std::string_view text(reinterpret_cast<const char *>(bytes), size);
  const std::optional<TextRules> &rules = vocabulary_.text_rules();
  return rules && rules->has_spaces ? vocabulary_.find_unreachable(exchange_spaces(text))
                                    : vocabulary_.find_unreachable(text);
}

size_t BatchEncoder::merge_characters(const uint8_t *bytes, size_t size, uint32_t *symbols) {
  vocabulary_.begin(bytes, size, first_symbols_);
  const std::vector<uint32_t> &merged = heap_.merge(vocabulary_, first_symbols_);
  std::copy(merged.begin(), merged.end(), symbols);
  return merged.size();
}

RankMergeScratch &BatchEncoder::rank_scratch() {
  if (!rank_scratch_)
    rank_scratch_ = std::make_unique_for_overwrite<RankMergeScratch>();
  return *rank_scratch_;
}

// Write the IDs of one long pretoken to `out`, which may move. Returns their end, with room for a batch.
uint32_t *BatchEncoder::merge_long(const uint8_t *bytes, size_t size, uint32_t *out, size_t &count) {
  out = room_for(size, out);
  if (vocabulary_.merges_characters())
    count = merge_characters(bytes, size, out);
  else
    count = WindowMerge(vocabulary_, merge_pretokens_, rank_scratch(), heap_).merge(bytes, size, out);
  count = vocabulary_.to_ids(out, count);
  return out + count;
}

} // namespace bpe
