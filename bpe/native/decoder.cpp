#include "decoder.hpp"

#include <algorithm>
#include <stdexcept>

namespace bpe {

Decoder::Decoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens) {
  for (const SpecialToken &token : special_tokens)
    special_texts_.push_back(token.text);
  items_.reserve(vocabulary.size() + special_tokens.size());
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol)
    items_.push_back({vocabulary.id(symbol), vocabulary.bytes(symbol)});
  for (size_t i = 0; i < special_tokens.size(); ++i)
    items_.push_back({special_tokens[i].value, special_texts_[i]});
  // Stable: entries stand before special tokens of the same id.
  std::stable_sort(items_.begin(), items_.end(), [](const Item &a, const Item &b) { return a.id < b.id; });
  for (size_t i = 1; i < items_.size(); ++i)
    if (items_[i].id == items_[i - 1].id && items_[i].bytes != items_[i - 1].bytes)
      throw std::invalid_argument("id " + std::to_string(items_[i].id) + " is both " +
                                  quoted(items_[i - 1].bytes) + " and the special token " +
                                  quoted(items_[i].bytes) + "; ids must differ");
  if (!items_.empty() && items_.back().id <= 4 * items_.size()) {
    dense_.resize(size_t{items_.back().id} + 1);
    for (const Item &item : items_)
      dense_[item.id] = item.bytes;
  }
}

bool Decoder::find(uint64_t id, std::string_view &bytes) const {
  if (!dense_.empty()) {
    if (id >= dense_.size() || dense_[id].data() == nullptr)
      return false;
    bytes = dense_[id];
    return true;
  }
  const auto item =
      std::lower_bound(items_.begin(), items_.end(), id,
                       [](const Item &candidate, uint64_t wanted) { return candidate.id < wanted; });
  if (item == items_.end() || item->id != id)
    return false;
  bytes = item->bytes;
  return true;
}

std::string Decoder::decode(const int64_t *ids, size_t count) const {
  std::string out;
  out.reserve(4 * count);
  for (size_t i = 0; i < count; ++i) {
    std::string_view bytes;
    if (ids[i] < 0 || !find(static_cast<uint64_t>(ids[i]), bytes))
      throw std::invalid_argument("ids[" + std::to_string(i) + "] = " + std::to_string(ids[i]) +
                                  " is not an id of this vocabulary");
    out += bytes;
  }
  return out;
}

} // namespace bpe
