// A cache as bytes: the tables as they lie in memory, behind a header that says how large they are.
#include "pretoken_cache.hpp"

#include <bit>
#include <cstring>

namespace bpe {

namespace {

// Changes with the layout of slots and arenas and with both hashes.
constexpr uint64_t image_version = 0x42504543'00000005;

struct Header {
  uint64_t version;
  uint64_t slot_count, used, arena_words;
  uint64_t long_slot_count, long_used, long_words;
};

} // namespace

struct CacheImage::Parts {
  Header header;
  const char *slots, *arena, *long_slots, *long_arena;

  // False if the lengths do not fit together.
  bool read(std::string_view bytes) {
    if (bytes.size() < sizeof header)
      return false;
    std::memcpy(&header, bytes.data(), sizeof header);
    constexpr uint64_t limit = uint64_t{1} << 32; // also keeps the sums below from wrapping around
    for (const uint64_t count :
         {header.slot_count, header.arena_words, header.long_slot_count, header.long_words})
      if (count > limit)
        return false;
    slots = bytes.data() + sizeof header;
    arena = slots + header.slot_count * sizeof(PretokenCache::Slot);
    long_slots = arena + header.arena_words * sizeof(uint32_t);
    long_arena = long_slots + header.long_slot_count * sizeof(PretokenCache::LongSlot);
    return header.version == image_version &&
           bytes.size() == sizeof header + header.slot_count * sizeof(PretokenCache::Slot) +
                               header.arena_words * sizeof(uint32_t) +
                               header.long_slot_count * sizeof(PretokenCache::LongSlot) +
                               header.long_words * sizeof(uint32_t);
  }
};

CacheImage CacheImage::of(const PretokenCache &cache) {
  const Header header{image_version,          cache.slot_count_, cache.used_,      cache.arena_words_,
                      cache.long_slot_count_, cache.long_used_,  cache.long_words_};
  CacheImage image;
  image.bytes_.append(reinterpret_cast<const char *>(&header), sizeof header);
  const auto append = [&](const BudgetedMemory &memory, size_t bytes) {
    image.bytes_.append(static_cast<const char *>(memory.data()), bytes);
  };
  append(cache.slot_memory_, header.slot_count * sizeof(PretokenCache::Slot));
  append(cache.arena_memory_, header.arena_words * sizeof(uint32_t));
  append(cache.long_memory_, header.long_slot_count * sizeof(PretokenCache::LongSlot));
  append(cache.long_arena_memory_, header.long_words * sizeof(uint32_t));
  return image;
}

bool CacheImage::is_sound(std::string_view bytes) {
  Parts parts;
  if (!parts.read(bytes))
    return false;
  const Header &header = parts.header;
  const auto is_table = [](uint64_t slot_count, uint64_t used) {
    return slot_count == 0 ? used == 0
                           : std::has_single_bit(slot_count) && slot_count >= 16 && used < slot_count;
  };
  if (!is_table(header.slot_count, header.used) || !is_table(header.long_slot_count, header.long_used))
    return false;
  for (uint64_t i = 0; i < header.slot_count; ++i) {
    PretokenCache::Slot slot;
    std::memcpy(&slot, parts.slots + i * sizeof slot, sizeof slot);
    if (slot.id_count() == PretokenCache::in_arena &&
        (slot.ids[1] > PretokenCache::max_ids || uint64_t{slot.ids[0]} + slot.ids[1] > header.arena_words))
      return false;
  }
  for (uint64_t i = 0; i < header.long_slot_count; ++i) {
    PretokenCache::LongSlot slot;
    std::memcpy(&slot, parts.long_slots + i * sizeof slot, sizeof slot);
    if (slot.size > PretokenCache::max_long_bytes ||
        uint64_t{slot.offset} + (slot.size + 3) / 4 + slot.count > header.long_words)
      return false;
  }
  return true;
}

void CacheImage::lay_into(PretokenCache &cache, std::string_view bytes) {
  Parts parts;
  if (!parts.read(bytes))
    return;
  const Header &header = parts.header;
  const auto fill = [](BudgetedMemory &memory, const char *from, size_t bytes, size_t room_bytes,
                       size_t limit_bytes) {
    if (bytes == 0 || room_bytes > limit_bytes || !memory.grow(room_bytes))
      return false;
    std::memcpy(memory.data(), from, bytes);
    return true;
  };
  const size_t share = cache.share_bytes_;
  const size_t arena_bytes = header.arena_words * sizeof(uint32_t);
  const size_t arena_room = arena_bytes + PretokenCache::max_ids * sizeof(uint32_t);
  const size_t slot_bytes = header.slot_count * sizeof(PretokenCache::Slot);
  if (arena_bytes == 0 || fill(cache.arena_memory_, parts.arena, arena_bytes, arena_room, share / 6)) {
    if (slot_bytes > 0 && slot_bytes <= PretokenCache::most_slot_bytes(share) &&
        cache.slot_memory_.extend(slot_bytes, PretokenCache::most_slot_bytes(share))) {
      std::memcpy(cache.slot_memory_.data(), parts.slots, slot_bytes);
      cache.take_slots(header.slot_count);
      cache.used_ = header.used;
      cache.arena_words_ = header.arena_words;
    }
  }
  const size_t long_arena_bytes = header.long_words * sizeof(uint32_t);
  const size_t long_bytes = header.long_slot_count * sizeof(PretokenCache::LongSlot);
  const size_t long_arena_room = long_arena_bytes + PretokenCache::max_ids * sizeof(uint32_t);
  if (fill(cache.long_arena_memory_, parts.long_arena, long_arena_bytes, long_arena_room, share / 4) &&
      fill(cache.long_memory_, parts.long_slots, long_bytes, long_bytes, share / 18)) {
    cache.long_slot_count_ = header.long_slot_count;
    cache.long_used_ = header.long_used;
    cache.long_words_ = header.long_words;
  }
}

} // namespace bpe
