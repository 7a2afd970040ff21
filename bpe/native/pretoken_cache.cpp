#include "pretoken_cache.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace bpe {

namespace {

// Slots no key is in: stand for the table while there is none.
constexpr PretokenCache::Slot no_slots[2]{};

constexpr size_t first_slot_count = 1 << 10;
// 2^20 slots, 32 MiB: fewer slow English down (128 k 274 MB/s, 256 k 405, 1 M 600), more slow cold text of
// many different words (unbounded 39 MB/s against 80) by page faults and misses of the machine's caches.
constexpr size_t max_slot_count = 1 << 20;
// Tables double at a third full, from 8 MiB on at half: fresh pages cost more than they gain there (en cold
// +4 %, warm -6 % between the two; 50 ms a doubling where the memory is new to the process).
constexpr size_t large_slot_count = 1 << 18;
// Text whose words never come again would wash everything else out if each displaced another: of a full line
// every fourth newcomer takes a slot.
constexpr uint32_t displacing_newcomers = 4;
// From here on (1 MiB) a table grows only where it is of use: not while more than new_percent of the
// pretokens looked for are new. Then merging anew, 40 ns side by side, costs less than a line from far off
// and the pages of a larger table (words cold 66 -> 86 MB/s, warm 105 -> 94; English, code and Chinese grow
// as ever).
constexpr size_t near_slot_count = 1 << 15;
constexpr size_t new_percent = 40;
constexpr size_t first_arena_bytes = 16 << 10;
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

bool BudgetedMemory::grow(size_t bytes) {
  const size_t more = bytes - bytes_;
  if (!budget_->reserve(more))
    return false;
  try {
    memory_.resize(bytes);
  } catch (const std::bad_alloc &) {
    budget_->give_back(more); // a cache that can't grow is slower, not wrong
    return false;
  }
  bytes_ = bytes;
  return true;
}

bool BudgetedMemory::extend(size_t bytes, size_t most_bytes) {
  constexpr size_t mapped_bytes_at_least = 256 << 10; // see page_memory.cpp
  const size_t more = bytes - bytes_;
  if (!budget_->reserve(more))
    return false;
  if (bytes > memory_.bytes()) {
    try {
      PageMemory fresh(bytes < mapped_bytes_at_least ? bytes : std::max(bytes, most_bytes));
      std::memcpy(fresh.data(), memory_.data(), bytes_);
      memory_ = std::move(fresh);
    } catch (const std::bad_alloc &) {
      budget_->give_back(more);
      return false;
    }
  }
  bytes_ = bytes;
  return true;
}

bool BudgetedMemory::replace(PageMemory &old, size_t bytes) {
  if (!budget_->reserve(bytes))
    return false;
  try {
    PageMemory fresh(bytes);
    old = std::move(memory_);
    memory_ = std::move(fresh);
    bytes_ = bytes;
  } catch (const std::bad_alloc &) {
    budget_->give_back(bytes);
    return false;
  }
  return true;
}

void BudgetedMemory::give_back(PageMemory &old) {
  budget_->give_back(old.bytes());
  old.resize(0);
}

void BudgetedMemory::release() {
  budget_->give_back(bytes_);
  memory_.resize(0);
  bytes_ = 0;
}

// Of the share the slots may take half, ids a sixth, long pretokens a third.
PretokenCache::PretokenCache(CacheBudget &budget, size_t share_bytes)
    : share_bytes_(share_bytes), slots_(no_slots), slot_memory_(budget), arena_memory_(budget),
      long_memory_(budget), long_arena_memory_(budget) {}

void PretokenCache::insert(const CacheKey &key, uint32_t hash, const uint32_t *ids, size_t count) {
  ++inserts_;
  if (used_ >= (slot_count_ < large_slot_count ? slot_count_ / 3 : slot_count_ / 2) && !full_size_ &&
      inserts_ >= wait_inserts_)
    make_room();
  if (slot_count_ == 0)
    return;
  Slot *const home = own_slots_ + (hash & mask_);
  Slot *slot = empty_slot(hash & mask_);
  if (!slot && farthest_ == 0 && newcomers_++ % displacing_newcomers != 0)
    return;
  Slot fresh{key.low, key.high, {}};
  if (count <= 4) {
    fresh.high |= uint64_t{count} << 61;
    std::memcpy(fresh.ids, ids, sizeof fresh.ids);
  } else if (count <= 6 && *std::max_element(ids, ids + count) >> packed_bits == 0) {
    fresh.high |= uint64_t{count} << 61;
    fresh.pack(ids, count);
  } else {
    uint32_t *place = arena_room(arena_memory_, arena_words_, count, share_bytes_ / 6);
    if (!place) {
      start_afresh();
      slot = home;
      place = arena_room(arena_memory_, 0, count, share_bytes_ / 6);
      if (!place)
        return;
    }
    std::memcpy(place, ids, max_ids * sizeof *ids);
    fresh.high |= uint64_t{in_arena} << 61;
    fresh.ids[0] = static_cast<uint32_t>(arena_words_);
    fresh.ids[1] = static_cast<uint32_t>(count);
    arena_words_ += count;
  }
  used_ += slot != nullptr;
  *(slot ? slot : home) = fresh; // in place of another, if it must
}

// The first empty slot of those where a pretoken whose first slot is at `place` may be; null: all are taken.
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

// Doubles the table if it may grow.
void PretokenCache::make_room() {
  const bool mostly_new = inserts_ * 100 > lookups_ * new_percent;
  inserts_ = lookups_ = wait_inserts_ = 0;
  if (slot_count_ >= near_slot_count && mostly_new) {
    wait_inserts_ = slot_count_;
    farthest_ = 0;
    return;
  }
  farthest_ = block_slots - 2;
  const size_t wanted = slot_count_ == 0 ? first_slot_count : 2 * slot_count_;
  if (wanted * sizeof(Slot) > most_slot_bytes(share_bytes_) ||
      !slot_memory_.extend(wanted * sizeof(Slot), most_slot_bytes(share_bytes_))) {
    full_size_ = true;
    farthest_ = 0;
    return;
  }
  const size_t old_slot_count = slot_count_;
  take_slots(wanted);
  wait_inserts_ = wanted / 16; // enough to tell, where a table that was full for a while doubles twice
  for (size_t block = 0; block < old_slot_count; block += block_slots)
    split_block(block, old_slot_count);
}

// The pretokens of eight lines go to the same lines of the lower or the upper half. They are put there anew,
// so that no line nearer to a pretoken than its own has an empty slot.
void PretokenCache::split_block(size_t block, size_t old_slot_count) {
  Slot old[block_slots];
  std::memcpy(old, own_slots_ + block, sizeof old);
  std::memset(own_slots_ + block, 0, sizeof old);
  for (const Slot &slot : old) {
    if (slot.high == 0)
      continue;
    const size_t place = CacheKey{slot.low, slot.high << 3 >> 3}.hash() & mask_;
    if ((place & (old_slot_count - 1) & ~(block_slots - 1)) != block) // out of a damaged image
      continue;
    if (Slot *const room = empty_slot(place)) // sixteen have room in sixteen
      *room = slot;
  }
}

// The table is what lies in slot_memory_ now.
void PretokenCache::take_slots(size_t slot_count) {
  slots_ = own_slots_ = static_cast<Slot *>(slot_memory_.data());
  slot_count_ = slot_count;
  mask_ = slot_count - 1;
}

void PretokenCache::start_afresh() {
  if (slot_count_ > 0)
    std::memset(slot_memory_.data(), 0, slot_count_ * sizeof(Slot));
  used_ = 0;
  arena_words_ = 0;
}

// Room for `words` behind the used ones, and for max_ids beyond, which may be copied along; null if refused.
uint32_t *PretokenCache::arena_room(BudgetedMemory &memory, size_t used_words, size_t words,
                                    size_t limit_bytes) {
  const size_t wanted = (used_words + words + max_ids) * sizeof(uint32_t);
  if (wanted > memory.bytes()) {
    const size_t limit = std::min(limit_bytes, max_arena_bytes);
    const size_t target = std::min(std::max({wanted, 2 * memory.bytes(), first_arena_bytes}), limit);
    if (target < wanted || !memory.grow(target))
      return nullptr;
  }
  return static_cast<uint32_t *>(memory.data()) + used_words;
}

uint64_t PretokenCache::long_hash(const uint8_t *bytes, size_t size, uint64_t seed) {
  uint64_t hash = seed ^ size * 0x9E3779B97F4A7C15ull;
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0xC2B2AE3D27D4EB4Full;
    hash ^= hash >> 32;
  };
  uint64_t word;
  for (size_t i = 0; i + 8 <= size; i += 8) {
    std::memcpy(&word, bytes + i, 8);
    mix(word);
  }
  std::memcpy(&word, bytes + size - 8, 8); // size >= 16; may overlap
  mix(word);
  return hash * 0x9E3779B97F4A7C15ull;
}

// At least 16 of them, to the end without a look at what came before: they nearly always are, and memcmp
// branches by size.
static bool equal_bytes(const uint8_t *a, const uint8_t *b, size_t size) {
  uint64_t difference = 0;
  const auto compare = [&](size_t i) {
    uint64_t word[4];
    std::memcpy(word, a + i, 16);
    std::memcpy(word + 2, b + i, 16);
    difference |= (word[0] ^ word[2]) | (word[1] ^ word[3]);
  };
  for (size_t i = 0; i + 16 < size; i += 16)
    compare(i);
  compare(size - 16);
  return difference == 0;
}

PretokenCache::Ids PretokenCache::find_long(const uint8_t *bytes, size_t size, uint64_t hash) const {
  if (long_slot_count_ == 0)
    return {nullptr, 0};
  for (size_t i = 0; i < max_probes; ++i) {
    const LongSlot &slot = long_slots()[((hash >> 32) + i) & (long_slot_count_ - 1)];
    if (slot.size == 0)
      break;
    if (slot.hash != hash || slot.size != size)
      continue;
    const uint32_t *const place = static_cast<const uint32_t *>(long_arena_memory_.data()) + slot.offset;
    if (equal_bytes(reinterpret_cast<const uint8_t *>(place), bytes, size))
      return {place + (size + 3) / 4, slot.count};
  }
  return {nullptr, 0};
}

void PretokenCache::insert_long(const uint8_t *bytes, size_t size, uint64_t hash, const uint32_t *ids,
                                size_t count) {
  const size_t words = (size + 3) / 4 + count;
  if (!make_long_room(words))
    return;
  uint32_t *const place = static_cast<uint32_t *>(long_arena_memory_.data()) + long_words_;
  std::memcpy(place, bytes, size);
  std::copy(ids, ids + count, place + (size + 3) / 4);
  const LongSlot fresh{hash, static_cast<uint32_t>(long_words_), static_cast<uint32_t>(size),
                       static_cast<uint32_t>(count), 0};
  long_words_ += words;
  for (size_t i = 0; i < max_probes; ++i) {
    LongSlot &slot = long_slots()[((hash >> 32) + i) & (long_slot_count_ - 1)];
    if (slot.size == 0) {
      slot = fresh;
      ++long_used_;
      return;
    }
  }
  long_slots()[(hash >> 32) & (long_slot_count_ - 1)] = fresh;
}

bool PretokenCache::make_long_room(size_t words) {
  if (2 * long_used_ >= long_slot_count_) {
    const size_t wanted = long_slot_count_ == 0 ? first_slot_count : 2 * long_slot_count_;
    PageMemory old;
    // A quarter of long pretokens' third while doubling leaves three quarters for their bytes and ids.
    if (wanted * sizeof(LongSlot) <= share_bytes_ / 18 &&
        long_memory_.replace(old, wanted * sizeof(LongSlot))) {
      const LongSlot *const before = static_cast<const LongSlot *>(old.data());
      for (size_t i = 0; i < long_slot_count_; ++i) {
        if (before[i].size == 0)
          continue;
        size_t place = (before[i].hash >> 32) & (wanted - 1);
        while (long_slots()[place].size != 0)
          place = (place + 1) & (wanted - 1);
        long_slots()[place] = before[i];
      }
      long_slot_count_ = wanted;
      long_memory_.give_back(old);
    } else {
      start_long_afresh();
      if (long_slot_count_ == 0)
        return false;
    }
  }
  if (arena_room(long_arena_memory_, long_words_, words, share_bytes_ / 4))
    return true;
  start_long_afresh();
  return arena_room(long_arena_memory_, 0, words, share_bytes_ / 4) != nullptr;
}

void PretokenCache::start_long_afresh() {
  if (long_slot_count_ > 0)
    std::memset(long_memory_.data(), 0, long_slot_count_ * sizeof(LongSlot));
  long_used_ = 0;
  long_words_ = 0;
}

} // namespace bpe
