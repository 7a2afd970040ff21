// The encoding loop of one thread: takes texts and produces IDs and row ends in the order of the calls.
//
// Pretokens are collected in batches of 128 that continue across texts. Keys and hashes are computed first,
// then the cache is probed; each probe of a batch prefetches a cache line of the next batch. Row ends and
// special tokens are items of the batch, so short documents cost no more than their pretokens. Misses are
// collected and merged many at once (gathered_misses.hpp). A pretoken of more than 15 bytes is first cut
// between characters that no entry crosses, and its parts are items too. A part and a pretoken with the same
// bytes may have different IDs (a whole pretoken that is an entry may be emitted at once), so their keys
// differ in CacheKey::part_bit.
//
// Not thread-safe. Texts must stay in place until finish().
#pragma once

#include "cache/key_walk.hpp"
#include "cache/long_key.hpp"
#include "cache/pretoken_cache.hpp"
#include "common/token_buffer.hpp"
#include "encode/character_runs.hpp"
#include "encode/character_walk.hpp"
#include "encode/gathered_misses.hpp"
#include "encode/normalized_text.hpp"
#include "merge/merge_by_heap.hpp"
#include "merge/merge_pretokens.hpp"
#include "pretokenize/later_phases.hpp"
#include "pretokenize/text_window.hpp"
#include "vocabulary/character_table.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace bpe {

class EncoderSession {
public:
  // The vocabulary, its characters, the automaton and the budget must outlive the session. characters: null
  // if the vocabulary merges characters. automaton: cuts texts; null: only encode_pretoken() may be called.
  EncoderSession(const Vocabulary &vocabulary, const CharacterTable *characters, const Automaton *automaton,
                 bool ignore_merges, CacheBudget &budget, size_t cache_share_bytes);

  // IDs are appended here, and the caller takes and clears them. Memory from the caller must have room for
  // one token per byte of text and spare_tokens more.
  TokenBuffer tokens;
  static constexpr size_t spare_tokens = 2048;
  std::vector<uint64_t> row_ends; // token counts at the end_row() calls
  NormalizedText normalized_text; // used by encoders with a normalizer
  NormalizedText changed_text;    // applies the changes of the pre-tokenizer to it

  // Encode valid UTF-8 without special tokens; needs an automaton. Bytes up to `readable` (>= text + size)
  // may be read. begins_input: no text of the input comes before.
  void encode_text(const uint8_t *text, size_t size, const uint8_t *readable, bool begins_input = false);
  // Encode one given pretoken of any bytes, not empty, less than 4 GiB.
  void encode_pretoken(const uint8_t *start, const uint8_t *stop, const uint8_t *readable) {
    push_cut(start, start, stop, readable);
  }
  void append_token(uint32_t id);
  void end_row();
  // Complete the output, which is incomplete before this call. After an exception the session remains usable,
  // but its output is invalid.
  void finish();
  void reset(); // drops pending work, tokens and rows

  // Announce a text of this size.
  void expect(size_t text_bytes) { cache_.expect(text_bytes); }
  size_t cache_share_bytes() const { return cache_share_bytes_; }

private:
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
    // of three-byte characters: see walk_characters()
    uint32_t ready_ids[ready_room + 2 * character_walk_room];
  };

  Batch &open_batch(size_t room = 1);
  void encode_window(size_t offset, const uint8_t *readable);
  void encode_staying(const uint8_t *readable, size_t input_bytes);
  void encode_each_piece(const uint8_t *readable, size_t input_bytes);
  void push_piece(const uint8_t *start, const uint8_t *stop, const uint8_t *readable, size_t input_bytes);
  void walk_keys(size_t &offset, const uint8_t *readable);
  const uint8_t *walk_unscanned(const uint8_t *at, const uint8_t *stop, const uint8_t *readable);
  const uint8_t *next_border(const uint8_t *p, const uint8_t *stop) const;
  const uint8_t *last_piece(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const;
  void walk_characters(size_t &offset, const uint8_t *readable);
  void walk_on(CharacterWalk &walk, const uint8_t *readable);
  const uint8_t *push_start(const uint8_t *start, const uint8_t *p, const uint8_t *stop,
                            const uint8_t *readable);
  bool may_walk_characters(const uint8_t *at, const uint8_t *stop) const;
  void push(Item item, const uint8_t *bytes, uint32_t value);
  void push_cut(const uint8_t *start, const uint8_t *p, const uint8_t *stop, const uint8_t *readable);
  const uint8_t *characters_end(const uint8_t *p, const uint8_t *stop) const;
  const uint8_t *next_safe_border(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const;
  bool may_join(const uint8_t *start, const uint8_t *p, const uint8_t *stop) const;
  void push_part(const uint8_t *bytes, size_t size, bool whole, const uint8_t *readable);
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
  const Characters character_view_; // empty if merges are not of bytes: no pretoken is cut then
  const bool has_character_ids_;
  const MergeTables merge_tables_;
  const WalkKeys walk_keys_;
  const WalkCharacters walk_characters_;
  const FindCharacters find_characters_;
  const EmitCharacters emit_characters_;
  const MergePretokens merge_pretokens_;
  const bool ignore_merges_; // and some entries are not reachable by merges
  const size_t cache_share_bytes_;
  std::optional<TextWindow> window_;   // set if there is an automaton
  const Automaton *borders_ = nullptr; // the automaton if texts are walked over before they are scanned
  const LaterPhases *later_phases_ = nullptr;
  std::optional<LaterPieces> later_; // set if the automaton has later phases
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
