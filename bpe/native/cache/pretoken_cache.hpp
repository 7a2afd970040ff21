// A bounded cache from pretokens to IDs. A hit touches one cache line.
//
//     find(key): line = hash % lines; for line, then its neighbours among eight:
//         a slot of the line has the key: return it
//         the line has an empty slot: return null
//     insert(key, ids): a third of the slots is used: double the table
//         write to the first empty slot in the same order
//
// 1. A slot of 32 bytes holds a key and up to 7 IDs. The key of a pretoken of up to 15 bytes contains its
//    bytes. The key of a longer one, up to 8 KiB, contains a hash (cache_key.hpp). Its bytes and IDs are in
//    an arena, where the bytes are compared. The arena also holds more than 7 IDs of a short pretoken.
// 2. The table doubles in place: eight lines become sixteen, so growing touches only the new half. For a long
//    text it starts larger.
// 3. At full size, a pretoken is stored only in its own line, so a lookup never reads a second line. A small
//    share of the new keys that find their line full displace an old key. A full arena is dropped.
//
// Every byte is reserved from a CacheBudget first, so all caches of an encoder together stay within its
// cache_bytes. A PretokenCache is not thread-safe; a CacheBudget is.
#pragma once

#include "cache/cache_key.hpp"
#include "common/page_memory.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace bpe {

class CacheBudget {
public:
  explicit CacheBudget(size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  bool reserve(size_t bytes);
  void give_back(size_t bytes) { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  size_t limit_bytes() const { return limit_bytes_; }

private:
  const size_t limit_bytes_;
  std::atomic<size_t> used_bytes_{0};
};

// Memory reserved from a budget.
class BudgetedMemory {
public:
  // Pages::small maps small pages as the memory grows.
  explicit BudgetedMemory(CacheBudget &budget, PageMemory::Pages pages = PageMemory::Pages::huge)
      : budget_(&budget), pages_(pages) {}
  ~BudgetedMemory() { release(); }
  BudgetedMemory(const BudgetedMemory &) = delete;
  BudgetedMemory &operator=(const BudgetedMemory &) = delete;

  // Extend the memory. Returns false and changes nothing if the budget or the system refuses. Keeps the
  // contents and zeroes the rest. From 256 KiB on, the address is stable up to most_bytes, so growing copies
  // nothing.
  bool extend(size_t bytes, size_t most_bytes);
  void release();
  void *data() const { return memory_.data(); }
  size_t bytes() const { return bytes_; }

private:
  CacheBudget *budget_;
  PageMemory::Pages pages_;
  PageMemory memory_;
  size_t bytes_ = 0; // reserved bytes; the memory may have more address space
};

class PretokenCache {
public:
  struct Slot {
    uint64_t low, high; // the key; bits 61-63 of high: number of IDs minus 1, or in_arena
    // up to 4 IDs; 5 to 7 IDs of 18 bits, see pack(); in_arena: offset in the arena and number
    uint32_t ids[4];
    CacheKey key() const { return {low, high << 3 >> 3}; }
    bool holds(const CacheKey &key) const {
#ifdef __SSE2__ // a single comparison
      const __m128i own = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i *>(&low)),
                                        _mm_set_epi64x(static_cast<int64_t>(~uint64_t{0} >> 3), -1));
      const __m128i other = _mm_loadu_si128(reinterpret_cast<const __m128i *>(&key));
      return _mm_movemask_epi8(_mm_cmpeq_epi8(own, other)) == 0xFFFF;
#else
      return ((low ^ key.low) | (high ^ key.high) << 3) == 0;
#endif
    }
    // index of the last ID, or in_arena
    uint32_t last_id() const { return static_cast<uint32_t>(high >> 61); }
    bool is_in_arena() const { return last_id() == in_arena; }
    static uint64_t tagged(uint64_t key_high, uint64_t last_id) { return key_high | last_id << 61; }
    // Store three IDs in each half of the room for four, and half of the seventh above each.
    void pack(const uint32_t *from, size_t count) {
      uint64_t halves[2] = {};
      for (size_t i = 0; i < count && i < 6; ++i)
        halves[i / 3] |= uint64_t{from[i]} << i % 3 * packed_bits;
      if (count == 7)
        for (unsigned half = 0; half < 2; ++half)
          halves[half] |= uint64_t{from[6] >> half * packed_bits / 2 & half_mask} << 3 * packed_bits;
      std::memcpy(ids, halves, sizeof ids);
    }
    void unpack(uint32_t *out) const { // the seven IDs
      uint64_t halves[2];
      std::memcpy(halves, ids, sizeof ids);
      constexpr uint32_t mask = (1u << packed_bits) - 1;
      for (size_t i = 0; i < 6; ++i)
        out[i] = static_cast<uint32_t>(halves[i / 3] >> i % 3 * packed_bits) & mask;
      out[6] = static_cast<uint32_t>(halves[0] >> 3 * packed_bits) |
               static_cast<uint32_t>(halves[1] >> 3 * packed_bits) << packed_bits / 2;
    }
  };
  static constexpr unsigned packed_bits = 18;
  static constexpr uint32_t half_mask = (1u << packed_bits / 2) - 1;
  static constexpr uint32_t in_arena = 7;
  static constexpr size_t max_ids = 16; // of a short pretoken

  // share_bytes: how much of the budget this cache may use.
  PretokenCache(CacheBudget &budget, size_t share_bytes);

  // Announce a text of this size: when the table grows, it grows to the size such text usually needs.
  void expect(size_t text_bytes);
  // Return the slot to search first: prefetch it, compare it, then call find().
  const Slot *first_slot(uint32_t hash) const { return slots_ + (hash & mask_); }
  // The same for many keys: first compute offsets, many at a time. May be kept in registers while it equals
  // first_slots().
  struct FirstSlots {
    const Slot *slots;
    uint64_t mask;
    void offsets(const uint32_t *hashes, size_t count, uint32_t *out) const { // in bytes
      const uint32_t narrow = static_cast<uint32_t>(mask);
      for (size_t i = 0; i < count; ++i)
        out[i] = (hashes[i] & narrow) * sizeof(Slot);
    }
    const Slot *at(uint32_t offset) const {
      return reinterpret_cast<const Slot *>(reinterpret_cast<const char *>(slots) + offset);
    }
    bool operator==(const FirstSlots &) const = default;
  };
  FirstSlots first_slots() const { return {slots_, mask_}; }
  // Return the slot of the key, or null. The pointer is valid until the next insert.
  const Slot *find(const CacheKey &key, uint32_t hash) const {
    for (size_t line = 0; line <= farthest_; line += 2) {
      const size_t place = (hash & mask_) ^ line;
      const Slot *const slot = slots_ + place, *const other = slots_ + (place ^ 1);
      if (slot->holds(key))
        return slot;
      if (other->holds(key))
        return other;
      if (slot->high == 0 || other->high == 0)
        break;
    }
    return nullptr;
  }
  // The same for a key that is not in its first slot. Moves it there if its line is the right one, so that
  // frequent keys end up in their first slot.
  const Slot *find_and_promote(const CacheKey &key, uint32_t hash) {
    const size_t place = hash & mask_;
    if (slots_[place ^ 1].holds(key)) {
      std::swap(own_slots_[place], own_slots_[place ^ 1]);
      return own_slots_ + place;
    }
    if (full_size_ | (slots_[place].high == 0) | (slots_[place ^ 1].high == 0))
      return nullptr;
    const Slot *const found = find(key, hash);
    if (!found)
      return nullptr;
    for (const size_t own : {place, place ^ 1}) { // swap only with a key that may be in either slot
      if (((slots_[own].key().hash() ^ hash) & mask_ & ~uint64_t{1}) != 0)
        continue;
      std::swap(own_slots_[own], own_slots_[found - slots_]);
      return own_slots_ + own;
    }
    return found;
  }
  // Return the arena data of a slot: the bytes of a long pretoken, then the IDs. max_ids beyond the end may
  // be read. Valid until the next insert.
  const uint32_t *arena(const Slot &slot) const {
    return static_cast<const uint32_t *>(arena_memory_.data()) + slot.ids[0];
  }
  static size_t words_of(size_t bytes) { return (bytes + 3) / 4; }
  // Insert a key with at most 16 IDs. The key must not be in the cache. Always reads sixteen IDs.
  void insert(const CacheKey &key, uint32_t hash, const uint32_t *ids, size_t count);
  // The same for a long pretoken and its key, long_key(bytes, size). Allows up to `size` IDs.
  void insert_long(const CacheKey &key, uint32_t hash, const uint8_t *bytes, const uint32_t *ids,
                   size_t count);

private:
  static constexpr size_t block_slots = 16; // eight lines
  static constexpr size_t farthest_line = block_slots - 2;

  // Slots may use half of the share, the arena five twelfths.
  static size_t most_slot_bytes(size_t share_bytes);
  static size_t most_arena_bytes(size_t share_bytes);
  Slot *slot_for_new(uint32_t hash);
  Slot *empty_slot(size_t place) const;
  void grow();
  template <class Keep> size_t place_block_anew(size_t block, Keep keep);
  uint32_t *arena_room(size_t words, uint32_t hash, Slot *&slot);
  bool make_arena_room(size_t words);
  void forget_arena();

  const size_t share_bytes_;
  const Slot *slots_; // own_slots_, or empty slots before allocation
  Slot *own_slots_ = nullptr;
  uint64_t mask_ = 0;
  size_t used_ = 0, slot_count_ = 0, expected_slot_count_ = 0;
  size_t farthest_ = farthest_line; // maximum distance of a pretoken from its own line, in slots
  bool full_size_ = false;          // farthest_ is 0 if true
  uint32_t newcomers_ = 0;          // new keys that found their line full
  BudgetedMemory slot_memory_;
  size_t arena_words_ = 0;
  BudgetedMemory arena_memory_;
};

} // namespace bpe
