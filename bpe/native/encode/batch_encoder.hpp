// Convert pretokens, special tokens and row ends to IDs, in the order in which they are added.
//
//     fill a batch of 128 items with keys and hashes, while the slots of the previous batch are prefetched
//     for each item of the previous batch:
//         cache hit: copy its IDs
//         miss: note the hole, and continue in a window until many misses are merged at once
//
// Beyond that:
// 1. Batches continue across texts. Row ends and special tokens are items, so short documents cost no more
//    than their pretokens.
// 2. Misses are collected over many batches (gathered_misses.hpp).
// 3. A part of a pretoken and a pretoken with the same bytes may have different IDs, since a whole pretoken
//    that is an entry may be emitted at once. Their keys differ in CacheKey::part_bit.
//
// Not thread-safe. The bytes of items must stay in place until finish().
#pragma once

#include "cache/key_walk.hpp"
#include "cache/pretoken_cache.hpp"
#include "common/prefetch.hpp"
#include "common/token_buffer.hpp"
#include "encode/character_walk.hpp"
#include "encode/gathered_misses.hpp"
#include "merge/merge_by_heap.hpp"
#include "vocabulary/character_table.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bpe {

class BatchEncoder {
public:
  // The vocabulary, the tables of the characters and the budget must outlive the object.
  BatchEncoder(const Vocabulary &vocabulary, const Characters &characters, bool ignore_merges,
               CacheBudget &budget, size_t cache_share_bytes);

  // IDs are appended here, and the caller takes and clears them. Memory from the caller must have room for
  // one token per byte of text and spare_tokens more.
  TokenBuffer tokens;
  static constexpr size_t spare_tokens = 2048;
  std::vector<uint64_t> row_ends; // token counts at the end_row() calls

  static constexpr size_t batch_items = 128;
  // Room for the IDs of a batch of short pretokens, and for whole registers stored after the last.
  static constexpr size_t batch_room = batch_items * PretokenCache::max_ids;
  static_assert(batch_room <= spare_tokens);
  enum Item : uint64_t {
    huge_pretoken = 1, // too long for the cache
    huge_part,
    characters,
    ready_ids, // stored in the batch
    row_end,
    token
  }; // stored in key.low if key.high is 0
  static constexpr size_t ready_room = 1024;
  struct Batch {
    size_t count = 0;
    CacheKey keys[batch_items + walk_step];
    uint32_t hashes[batch_items + walk_step]{};
    uint32_t offsets[batch_items]{};   // of their first slots, once they are prefetched
    const uint8_t *bytes[batch_items]; // of long and huge pretokens and of characters
    uint32_t values[batch_items];      // the size of long and huge pretokens and characters, or the token
    size_t long_count = 0;
    uint8_t long_items[batch_items + walk_step]; // indices of long pretokens
    size_t ready_count = 0;
    // of three-byte characters: see character_encoder.hpp
    uint32_t ready_ids[ready_room + 2 * character_walk_room];
  };

  // Return the batch for the next items, with room for `room` of them.
  Batch &open_batch(size_t room = 1);
  void push(Item item, const uint8_t *bytes, uint32_t value);
  // Add a part of a pretoken, or all of it if `whole`. Bytes up to `readable` may be read.
  void push_part(const uint8_t *bytes, size_t size, bool whole, const uint8_t *readable);
  void prefetch(uint32_t hash) const { prefetch_to_read(cache_.first_slot(hash)); }
  void append_token(uint32_t id) { push(token, nullptr, id); }
  void end_row() { push(row_end, nullptr, 0); }
  // Complete the output, which is incomplete before this call. After an exception the object remains usable,
  // but its output is invalid.
  void finish();
  void reset(); // drops pending work, tokens and rows

  // Announce a text of this size.
  void expect(size_t text_bytes) { cache_.expect(text_bytes); }
  size_t cache_share_bytes() const { return cache_share_bytes_; }
  // Return whether a whole pretoken may be an entry that merges do not make.
  bool emits_whole() const { return ignore_merges_; }

private:
  void prefetch_long(const Batch &batch) const;
  void emit(Batch &batch, Batch &next);
  uint32_t *emit_slot(const Batch &batch, size_t i, const PretokenCache::Slot &slot, uint32_t *out);
  uint32_t *emit_from_arena(const Batch &batch, size_t i, const PretokenCache::Slot &slot, uint32_t *out);
  uint32_t *emit_item(Batch &batch, size_t i, uint32_t *out);
  uint32_t *emit_missing(const Batch &batch, size_t i, uint32_t *out);
  void open_misses(uint32_t *&out);
  uint32_t *room_for(size_t count, uint32_t *out);
  uint32_t *flush_misses(uint32_t *out);
  uint32_t find_whole(const uint8_t *bytes, size_t size) const;
  size_t merge_characters(const uint8_t *bytes, size_t size, uint32_t *symbols);
  uint32_t *merge_long(const uint8_t *bytes, size_t size, uint32_t *out, size_t &count);
  RankMergeScratch &rank_scratch();

  const Vocabulary &vocabulary_;
  const Characters characters_;
  const MergeTables merge_tables_;
  const EmitCharacters emit_characters_;
  const MergePretokens merge_pretokens_;
  const bool ignore_merges_; // and some entries are not reachable by merges
  const size_t cache_share_bytes_;
  PretokenCache cache_;
  HeapMerge heap_;
  std::vector<uint32_t> first_symbols_;            // of a pretoken merged by characters
  std::unique_ptr<RankMergeScratch> rank_scratch_; // allocated for the first merge
  GatheredMisses misses_;
  Batch batches_[2];
  PretokenCache::FirstSlots first_slots_{}; // base of these offsets
  size_t open_ = 0; // the batch being filled; the other one comes before it unless empty
};

} // namespace bpe
