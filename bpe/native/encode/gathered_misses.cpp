#include "encode/gathered_misses.hpp"

#include "cache/long_key.hpp"

namespace bpe {

namespace {

// Copies whole registers: reads and writes up to 15 more IDs.
inline uint32_t *copy_ids(const uint32_t *from, size_t count, uint32_t *to) {
  std::memcpy(to, from, 16 * sizeof(uint32_t)); // always 16: a branch on the count would be mispredicted
  for (size_t i = 16; i < count; i += 16)
    std::memcpy(to + i, from + i, 16 * sizeof(uint32_t));
  return to + count;
}

} // namespace

// Return the cell of the miss for which `is_same` holds, or the empty cell where it belongs.
template <class IsSame> uint16_t &GatheredMisses::cell_of(uint32_t hash, IsSame is_same) {
  size_t cell = hash >> 20 & (cells - 1); // other bits than those that select the slot
  while (cells_[cell] != 0 && !is_same(misses_[cells_[cell] - 1u]))
    cell = (cell + 1) & (cells - 1);
  return cells_[cell];
}

void GatheredMisses::add_short(const CacheKey &key, uint32_t hash, const uint32_t *place) {
  missing_bytes_ += key.size();
  uint16_t &cell = cell_of(hash, [&](const Miss &known) { return known.key == key; });
  if (cell == 0) {
    misses_[miss_count_] = {key, hash, static_cast<uint32_t>(short_count_), 0, nullptr};
    cell = static_cast<uint16_t>(++miss_count_);
    ShortMerge &merge = shorts_[short_count_++];
    std::memcpy(merge.bytes, &key, sizeof merge.bytes);
    merge.size = static_cast<uint32_t>(key.size());
  }
  add_hole(place, cell - 1u);
}

void GatheredMisses::add_long(const CacheKey &key, uint32_t hash, const uint8_t *bytes,
                              const uint32_t *place) {
  const size_t size = key.long_size();
  missing_bytes_ += size;
  uint16_t &cell = cell_of(hash, [&](const Miss &known) {
    return known.key == key && equal_long(longs_[known.merge].bytes, bytes, size);
  });
  if (cell == 0) {
    misses_[miss_count_] = {key, hash, static_cast<uint32_t>(long_count_), 0, nullptr};
    cell = static_cast<uint16_t>(++miss_count_);
    longs_[long_count_++] = {bytes, static_cast<uint32_t>(size), 0, long_symbols_ + long_bytes_};
    long_bytes_ += size;
  }
  add_hole(place, cell - 1u);
}

uint32_t *GatheredMisses::write(const uint32_t *origin, uint32_t *to, std::vector<uint64_t> &row_ends) {
  size_t place = 0;
  for (size_t i = 0; i < hole_count_; ++i) {
    to = copy_ids(window_ + place, holes_[i].place - place, to);
    place = holes_[i].place;
    if (holes_[i].miss == row_end) {
      row_ends.push_back(static_cast<uint64_t>(to - origin));
    } else {
      const Miss &missing = misses_[holes_[i].miss];
      to = copy_ids(missing.ids, missing.count, to);
    }
  }
  return copy_ids(window_ + place, id_count_ - place, to);
}

void GatheredMisses::clear() {
  if (!open_)
    return;
  open_ = false;
  id_count_ = hole_count_ = miss_count_ = short_count_ = long_count_ = long_bytes_ = missing_bytes_ = 0;
  std::memset(cells_, 0, sizeof cells_);
}

} // namespace bpe
