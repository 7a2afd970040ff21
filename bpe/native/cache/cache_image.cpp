// A cache as bytes: the table and the arena as they lie in memory, behind a header that says how large they
// are.
#include "cache/pretoken_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bpe {

namespace {

// Changes with the layout of slots and arena and with both hashes.
constexpr uint64_t image_version = 0x42504543'00000007;

struct Header {
  uint64_t version;
  uint64_t slot_count, used, arena_words;
};

} // namespace

struct CacheImage::Parts {
  Header header;
  const char *slots, *arena;

  // False if the lengths do not fit together.
  bool read(std::string_view bytes) {
    if (bytes.size() < sizeof header)
      return false;
    std::memcpy(&header, bytes.data(), sizeof header);
    constexpr uint64_t limit = uint64_t{1} << 32; // also keeps the sums below from wrapping around
    if (header.slot_count > limit || header.arena_words > limit)
      return false;
    slots = bytes.data() + sizeof header;
    arena = slots + header.slot_count * sizeof(PretokenCache::Slot);
    return header.version == image_version &&
           bytes.size() == sizeof header + header.slot_count * sizeof(PretokenCache::Slot) +
                               header.arena_words * sizeof(uint32_t);
  }
};

CacheImage CacheImage::of(const PretokenCache &cache) {
  const Header header{image_version, cache.slot_count_, cache.used_, cache.arena_words_};
  CacheImage image;
  image.bytes_.append(reinterpret_cast<const char *>(&header), sizeof header);
  for (size_t i = 0; i < header.slot_count; ++i) {
    PretokenCache::Slot slot = cache.own_slots_[i];
    if (const uint32_t count = slot.last_id() + 1; count < 4) // behind them lies what was copied along
      std::fill(slot.ids + count, slot.ids + 4, 0);
    image.bytes_.append(reinterpret_cast<const char *>(&slot), sizeof slot);
  }
  image.bytes_.append(static_cast<const char *>(cache.arena_memory_.data()),
                      header.arena_words * sizeof(uint32_t));
  return image;
}

bool CacheImage::is_sound(std::string_view bytes) {
  Parts parts;
  if (!parts.read(bytes))
    return false;
  const Header &header = parts.header;
  if (header.slot_count == 0 ? header.used != 0
                             : !std::has_single_bit(header.slot_count) || header.slot_count < 16 ||
                                   header.used > header.slot_count)
    return false;
  for (uint64_t i = 0; i < header.slot_count; ++i) {
    PretokenCache::Slot slot;
    std::memcpy(&slot, parts.slots + i * sizeof slot, sizeof slot);
    if (!slot.is_in_arena())
      continue;
    const CacheKey key = slot.key();
    const bool is_long = key.is_long();
    const size_t bytes_there = is_long ? key.long_size() : 0;
    if ((is_long && (bytes_there <= CacheKey::max_bytes || bytes_there > CacheKey::max_long_bytes)) ||
        slot.ids[1] > (is_long ? bytes_there : PretokenCache::max_ids) ||
        uint64_t{slot.ids[0]} + PretokenCache::words_of(bytes_there) + slot.ids[1] > header.arena_words)
      return false;
  }
  return true;
}

void CacheImage::lay_into(PretokenCache &cache, std::string_view bytes) {
  Parts parts;
  if (!parts.read(bytes))
    return;
  const Header &header = parts.header;
  const size_t slot_bytes = header.slot_count * sizeof(PretokenCache::Slot);
  const size_t arena_bytes = header.arena_words * sizeof(uint32_t);
  const size_t arena_room = arena_bytes + PretokenCache::max_ids * sizeof(uint32_t); // may be read
  const size_t most_slots = PretokenCache::most_slot_bytes(cache.share_bytes_);
  const size_t most_arena = PretokenCache::most_arena_bytes(cache.share_bytes_);
  if (slot_bytes == 0 || slot_bytes > most_slots ||
      (arena_bytes > 0 && (arena_room > most_arena || !cache.arena_memory_.extend(arena_room, most_arena))) ||
      !cache.slot_memory_.extend(slot_bytes, most_slots))
    return;
  if (arena_bytes > 0)
    std::memcpy(cache.arena_memory_.data(), parts.arena, arena_bytes);
  std::memcpy(cache.slot_memory_.data(), parts.slots, slot_bytes);
  cache.take_slots(header.slot_count);
  cache.used_ = header.used;
  cache.arena_words_ = header.arena_words;
}

} // namespace bpe
