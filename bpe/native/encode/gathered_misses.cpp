#include "encode/gathered_misses.hpp"

#include "cache/long_key.hpp"

namespace bpe {

namespace {

// Whole registers: up to 15 more ids are read and written.
inline uint32_t *copy_ids(const uint32_t *from, size_t count, uint32_t *to) {
  for (size_t i = 0; i < count; i += 16)
    std::memcpy(to + i, from + i, 16 * sizeof(uint32_t));
  return to + count;
}

} // namespace

void GatheredMisses::add(const CacheKey &key, uint32_t hash, const uint8_t *bytes, const uint32_t *place) {
  size_t cell = hash >> 20 & (cells - 1); // other bits than choose the slot
  for (; cells_[cell] != 0; cell = (cell + 1) & (cells - 1)) {
    const uint32_t known = cells_[cell] - 1u;
    if (misses_[known].key.low == key.low && misses_[known].key.high == key.high &&
        (!key.is_long() || equal_long(longs_[misses_[known].merge].bytes, bytes, key.long_size())))
      return mark(place, known);
  }
  const uint32_t miss = static_cast<uint32_t>(miss_count_++);
  cells_[cell] = static_cast<uint16_t>(miss + 1);
  mark(place, miss);
  if (key.is_long()) {
    misses_[miss] = {key, hash, static_cast<uint32_t>(long_count_)};
    const size_t size = key.long_size();
    longs_[long_count_++] = {bytes, static_cast<uint32_t>(size), 0, long_symbols_ + long_bytes_};
    long_bytes_ += size;
  } else {
    misses_[miss] = {key, hash, static_cast<uint32_t>(short_count_)};
    ShortMerge &merge = shorts_[short_count_++];
    key.copy_bytes(merge.bytes);
    merge.size = static_cast<uint32_t>(key.size());
  }
}

size_t GatheredMisses::id_count() {
  size_t count = id_count_;
  for (size_t i = 0; i < mark_count_; ++i)
    if (marks_[i].miss != row_end)
      count += ids(misses_[marks_[i].miss]).count;
  return count;
}

uint32_t *GatheredMisses::write(const uint32_t *origin, uint32_t *to, std::vector<uint64_t> &row_ends) {
  size_t place = 0;
  for (size_t i = 0; i < mark_count_; ++i) {
    to = copy_ids(window_ + place, marks_[i].place - place, to);
    place = marks_[i].place;
    if (marks_[i].miss == row_end) {
      row_ends.push_back(static_cast<uint64_t>(to - origin));
    } else {
      const Ids missing = ids(misses_[marks_[i].miss]);
      to = copy_ids(missing.data, missing.count, to);
    }
  }
  return copy_ids(window_ + place, id_count_ - place, to);
}

void GatheredMisses::clear() {
  if (!open_)
    return;
  open_ = false;
  id_count_ = mark_count_ = miss_count_ = short_count_ = long_count_ = long_bytes_ = 0;
  std::memset(cells_, 0, sizeof cells_);
}

} // namespace bpe
