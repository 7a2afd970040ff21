#include "encode/gathered_misses.hpp"

#include "cache/long_key.hpp"

#include <algorithm>

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

void GatheredMisses::add(const CacheKey &key, uint32_t hash, const uint8_t *bytes, const uint32_t *place) {
  const bool is_long = key.is_long();
  const size_t size = is_long ? key.long_size() : key.size();
  missing_bytes_ += size;
  const auto is_same = [&](size_t miss) {
    return misses_[miss].key == key && (!is_long || equal_long(merges_[miss].bytes, bytes, size));
  };
  size_t cell = hash >> 20 & (cells - 1); // other bits than those that select the slot
  while (cells_[cell] != 0 && !is_same(cells_[cell] - 1u))
    cell = (cell + 1) & (cells - 1);
  if (cells_[cell] == 0) {
    Miss &miss = misses_[miss_count_] = {key, hash};
    if (!is_long) // the first bytes of the key
      bytes = reinterpret_cast<const uint8_t *>(&miss.key);
    merges_[miss_count_] = {bytes, static_cast<uint32_t>(size), 0, symbols_ + symbol_count_};
    symbol_count_ += std::max<size_t>(size, 16);
    cells_[cell] = static_cast<uint16_t>(++miss_count_);
  }
  add_hole(place, cells_[cell] - 1u);
}

uint32_t *GatheredMisses::write(const uint32_t *origin, uint32_t *to, std::vector<uint64_t> &row_ends) {
  size_t place = 0;
  for (size_t i = 0; i < hole_count_; ++i) {
    to = copy_ids(window_ + place, holes_[i].place - place, to);
    place = holes_[i].place;
    if (holes_[i].miss == row_end) {
      row_ends.push_back(static_cast<uint64_t>(to - origin));
    } else {
      const PretokenMerge &missing = merges_[holes_[i].miss];
      to = copy_ids(missing.symbols, missing.count, to);
    }
  }
  return copy_ids(window_ + place, id_count_ - place, to);
}

void GatheredMisses::clear() {
  if (!open_)
    return;
  open_ = false;
  id_count_ = hole_count_ = miss_count_ = symbol_count_ = missing_bytes_ = 0;
  std::memset(cells_, 0, sizeof cells_);
}

} // namespace bpe
