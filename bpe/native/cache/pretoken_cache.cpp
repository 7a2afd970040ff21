#include "cache/pretoken_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace bpe {

namespace {

// Empty slots used as the table before it is allocated.
constexpr PretokenCache::Slot no_slots[2]{};

constexpr size_t first_slot_count = 1 << 10;
// A table that starts at the size most texts need is never moved. It is not larger, since repetitive text
// would not use it.
constexpr size_t bytes_a_slot = 64, max_expected_slot_count = 1 << 18;
// 32 MiB. With a larger table, text with few repeated words is faster on the second encoding but slower on
// the first, since the memory is new to the process. Other text does not need more.
constexpr size_t max_slot_count = 1 << 20;
// If every new key displaced another, text without repeated words would evict everything else.
constexpr uint32_t displacing_newcomers = 8; // one of this many that find their line full
// The arena fills from start to end, so it grows in steps and uses small pages: clearing a new huge page
// takes longer.
constexpr size_t first_arena_bytes = 16 << 10, arena_step_bytes = 256 << 10;
// Offsets into an arena are 32-bit words.
constexpr size_t max_arena_bytes = size_t{256} << 20;

} // namespace

bool CacheBudget::reserve(size_t bytes) {
  size_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_bytes_ - used)
      return false;
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

bool BudgetedMemory::extend(size_t bytes, size_t most_bytes) {
  constexpr size_t mapped_bytes_at_least = 256 << 10; // see page_memory.cpp
  const size_t more = bytes - bytes_;
  if (!budget_->reserve(more))
    return false;
  const auto move_to = [&](size_t room_bytes) {
    try {
      PageMemory fresh(room_bytes, pages_);
      std::copy_n(static_cast<const char *>(memory_.data()), bytes_, static_cast<char *>(fresh.data()));
      memory_ = std::move(fresh);
      return true;
    } catch (const std::bad_alloc &) {
      return false;
    }
  };
  const bool reserve_all = bytes >= mapped_bytes_at_least && bytes < most_bytes;
  if (bytes > memory_.bytes() && !(reserve_all && move_to(most_bytes)) && !move_to(bytes)) {
    budget_->give_back(more); // a cache that can't grow is slower, not wrong
    return false;
  }
  if (pages_ == PageMemory::Pages::small)
    memory_.populate(bytes_, bytes);
  bytes_ = bytes;
  return true;
}

void BudgetedMemory::release() {
  budget_->give_back(bytes_);
  memory_.resize(0);
  bytes_ = 0;
}

PretokenCache::PretokenCache(CacheBudget &budget, size_t share_bytes)
    : share_bytes_(share_bytes), slots_(no_slots), slot_memory_(budget),
      arena_memory_(budget, PageMemory::Pages::small) {}

void PretokenCache::insert(const CacheKey &key, uint32_t hash, const uint32_t *ids, size_t count) {
  Slot *slot = slot_for_new(hash);
  if (!slot)
    return;
  Slot fresh{key.low, key.high, {}};
  if (count <= 4) {
    fresh.high = Slot::tagged(key.high, count - 1);
    std::memcpy(fresh.ids, ids, sizeof fresh.ids);
  } else if (count <= 7 && *std::max_element(ids, ids + count) >> packed_bits == 0) {
    fresh.high = Slot::tagged(key.high, count - 1);
    fresh.pack(ids, count);
  } else {
    uint32_t *const place = arena_room(count, hash, slot);
    if (!place)
      return;
    std::memcpy(place, ids, max_ids * sizeof *ids);
    fresh.high = Slot::tagged(key.high, in_arena);
    fresh.ids[0] = static_cast<uint32_t>(arena_words_);
    fresh.ids[1] = static_cast<uint32_t>(count);
    arena_words_ += count;
  }
  used_ += slot->high == 0;
  *slot = fresh; // displaces another key if necessary
}

void PretokenCache::insert_long(const CacheKey &key, uint32_t hash, const uint8_t *bytes, const uint32_t *ids,
                                size_t count) {
  Slot *slot = slot_for_new(hash);
  if (!slot)
    return;
  const size_t byte_words = words_of(key.long_size());
  uint32_t *const place = arena_room(byte_words + count, hash, slot);
  if (!place)
    return;
  place[byte_words - 1] = 0; // bytes copied along with other IDs
  std::memcpy(place, bytes, key.long_size());
  std::copy(ids, ids + count, place + byte_words);
  used_ += slot->high == 0;
  *slot = {key.low,
           Slot::tagged(key.high, in_arena),
           {static_cast<uint32_t>(arena_words_), static_cast<uint32_t>(count)}};
  arena_words_ += byte_words + count;
}

// Return the slot for a pretoken that is not cached, or null if it is not added.
PretokenCache::Slot *PretokenCache::slot_for_new(uint32_t hash) {
  if (used_ >= slot_count_ / 3 && !full_size_)
    grow();
  if (slot_count_ == 0)
    return nullptr;
  if (Slot *const slot = empty_slot(hash & mask_))
    return slot;
  if (full_size_ && ++newcomers_ % displacing_newcomers != 0)
    return nullptr;
  return own_slots_ + (hash & mask_);
}

// Return the first empty slot available to a pretoken with its first slot at `place`, or null if all are
// used.
PretokenCache::Slot *PretokenCache::empty_slot(size_t place) const {
  for (size_t line = 0; line <= farthest_; line += 2) {
    Slot *const slot = own_slots_ + (place ^ line), *const other = own_slots_ + (place ^ line ^ 1);
    if (slot->high == 0)
      return slot;
    if (other->high == 0)
      return other;
  }
  return nullptr;
}

size_t PretokenCache::most_slot_bytes(size_t share_bytes) {
  return std::min(max_slot_count * sizeof(Slot), share_bytes / 2);
}

size_t PretokenCache::most_arena_bytes(size_t share_bytes) {
  return std::min(max_arena_bytes, share_bytes / 12 * 5);
}

void PretokenCache::expect(size_t text_bytes) {
  expected_slot_count_ = std::bit_ceil(std::min(text_bytes / bytes_a_slot, max_expected_slot_count));
}

// Grow to the expected size or at least double. If that fails, the table keeps its size permanently.
void PretokenCache::grow() {
  const size_t most_bytes = most_slot_bytes(share_bytes_), old_slot_count = slot_count_;
  const auto extend_to = [&](size_t count) {
    return count * sizeof(Slot) <= most_bytes && slot_memory_.extend(count * sizeof(Slot), most_bytes);
  };
  const size_t doubled = old_slot_count == 0 ? first_slot_count : 2 * old_slot_count;
  size_t wanted = std::max(doubled, expected_slot_count_);
  if (!extend_to(wanted) && !extend_to(wanted = doubled)) {
    full_size_ = true;
    farthest_ = 0;
    return;
  }
  slots_ = own_slots_ = static_cast<Slot *>(slot_memory_.data());
  slot_count_ = wanted;
  mask_ = wanted - 1;
  for (size_t block = 0; block < old_slot_count; block += block_slots)
    place_block_anew(block, [](const Slot &) { return true; });
}

// Place the pretokens of a block of eight lines again: they go to the same lines, in any half or quarter of
// the grown table. Afterwards, no line closer to a pretoken than its own has an empty slot. Returns how many
// are kept.
template <class Keep> size_t PretokenCache::place_block_anew(size_t block, Keep keep) {
  Slot old[block_slots];
  std::memcpy(old, own_slots_ + block, sizeof old);
  std::memset(own_slots_ + block, 0, sizeof old);
  // List occupied slots first, without a branch, since empty slots are unpredictable.
  uint8_t kept[block_slots];
  size_t count = 0;
  for (size_t i = 0; i < block_slots; ++i) {
    kept[count] = static_cast<uint8_t>(i);
    count += (old[i].high != 0) & keep(old[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    const Slot &slot = old[kept[i]];
    if (Slot *const room = empty_slot(slot.key().hash() & mask_)) // sixteen always fit in sixteen
      *room = slot;
  }
  return count;
}

// Return room for `words` after the used part, plus max_ids that may be copied along, or null if refused.
// `slot` is the slot of the new key and may change.
uint32_t *PretokenCache::arena_room(size_t words, uint32_t hash, Slot *&slot) {
  if (!make_arena_room(words)) {
    if (arena_words_ == 0)
      return nullptr;
    forget_arena();
    if (!make_arena_room(words))
      return nullptr;
    slot = empty_slot(hash & mask_);
    if (!slot)
      slot = own_slots_ + (hash & mask_);
  }
  return static_cast<uint32_t *>(arena_memory_.data()) + arena_words_;
}

bool PretokenCache::make_arena_room(size_t words) {
  const size_t wanted = (arena_words_ + words + max_ids) * sizeof(uint32_t);
  if (wanted <= arena_memory_.bytes())
    return true;
  const size_t limit = most_arena_bytes(share_bytes_);
  const size_t step = std::clamp(arena_memory_.bytes(), first_arena_bytes, arena_step_bytes);
  const size_t target = std::min(std::max(wanted, arena_memory_.bytes() + step), limit);
  return target >= wanted && arena_memory_.extend(target, limit);
}

void PretokenCache::forget_arena() {
  arena_words_ = 0;
  used_ = 0;
  for (size_t block = 0; block < slot_count_; block += block_slots)
    used_ += place_block_anew(block, [](const Slot &slot) { return !slot.is_in_arena(); });
}

} // namespace bpe
