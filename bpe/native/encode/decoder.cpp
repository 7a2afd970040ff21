#include "encode/decoder.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bpe {

Decoder::Decoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens) {
  struct Item {
    uint32_t id;
    std::string_view bytes;
  };
  std::vector<Item> items;
  items.reserve(vocabulary.size() + special_tokens.size());
  size_t total = spare_bytes;
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol)
    items.push_back({vocabulary.id(symbol), vocabulary.bytes(symbol)});
  for (const SpecialToken &token : special_tokens)
    items.push_back({token.value, token.text});
  // Entries are sorted; a stable sort keeps them before special tokens with the same ID.
  if (!special_tokens.empty())
    std::stable_sort(items.begin(), items.end(), [](const Item &a, const Item &b) { return a.id < b.id; });
  for (size_t i = 0; i < items.size(); ++i) {
    total += items[i].bytes.size();
    if (i > 0 && items[i].id == items[i - 1].id && items[i].bytes != items[i - 1].bytes)
      throw std::invalid_argument("id " + std::to_string(items[i].id) + " is both " +
                                  quoted(items[i - 1].bytes) + " and the special token " +
                                  quoted(items[i].bytes) + "; ids must differ");
  }
  if (total > UINT32_MAX)
    throw std::invalid_argument("the entries have " + std::to_string(total) +
                                " bytes in all; at most 4294967279 are supported");
  text_.reserve(total);
  const bool dense = !items.empty() && items.back().id <= 4 * items.size();
  if (dense)
    places_.resize(size_t{items.back().id} + 1);
  for (const Item &item : items) {
    const Place place{static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(item.bytes.size())};
    text_ += item.bytes;
    if (item.bytes.empty())
      empty_id_ = item.id;
    if (dense) {
      places_[item.id] = place;
    } else {
      places_.push_back(place);
      ids_.push_back(item.id);
    }
  }
  text_.append(spare_bytes, '\0');
}

inline Decoder::Place Decoder::find(uint64_t id) const {
  if (ids_.empty())
    return id < places_.size() ? places_[id] : Place{0, 0};
  const auto item = std::lower_bound(ids_.begin(), ids_.end(), id);
  return item != ids_.end() && *item == id ? places_[static_cast<size_t>(item - ids_.begin())] : Place{0, 0};
}

size_t Decoder::size_of(const int64_t *ids, size_t count) const {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t size = find(static_cast<uint64_t>(ids[i])).size; // a negative ID becomes a large one
    if (size == 0 && empty_id_ != ids[i]) [[unlikely]]
      throw std::invalid_argument("ids[" + std::to_string(i) + "] = " + std::to_string(ids[i]) +
                                  " is not an id of this vocabulary");
    total += size;
  }
  return total;
}

void Decoder::write(const int64_t *ids, size_t count, char *out) const {
  size_t i = 0;
  // Copy sixteen bytes whatever the size, without a branch, while at least as many follow.
  for (; i + spare_bytes < count; ++i) {
    const Place place = find(static_cast<uint64_t>(ids[i]));
    std::memcpy(out, text_.data() + place.start, spare_bytes);
    if (place.size > spare_bytes)
      std::memcpy(out + spare_bytes, text_.data() + place.start + spare_bytes, place.size - spare_bytes);
    out += place.size;
  }
  for (; i < count; ++i) {
    const Place place = find(static_cast<uint64_t>(ids[i]));
    std::memcpy(out, text_.data() + place.start, place.size);
    out += place.size;
  }
}

} // namespace bpe
