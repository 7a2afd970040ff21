#include "encode/decoder.hpp"

#include "text/utf8.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bpe {

namespace {

std::string replace_all(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  size_t at = 0;
  for (size_t found; (found = text.find(what, at)) != std::string_view::npos; at = found + what.size())
    out.append(text.substr(at, found - at)).append(by);
  out.append(text.substr(at));
  return out;
}

int hexadecimal(char digit) {
  return digit >= '0' && digit <= '9'   ? digit - '0'
         : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
         : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                        : -1;
}

// Return 10 for "<0x0A>", parsing numbers like tokenizers, or -1.
int byte_of(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return -1;
  const int high = text[3] == '+' ? 0 : hexadecimal(text[3]), low = hexadecimal(text[4]);
  return high < 0 || low < 0 ? -1 : high << 4 | low;
}

} // namespace

Decoder::Decoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens,
                 const std::optional<TextDecoding> &rule)
    : rule_(rule) {
  struct Item {
    uint32_t id;
    std::string_view bytes;
  };
  const auto by_id = [](const Item &a, const Item &b) { return a.id < b.id; };
  std::vector<Item> items;
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol)
    items.push_back({vocabulary.id(symbol), vocabulary.bytes(symbol)});
  for (const SpecialToken &token : rule ? rule->special_tokens : special_tokens)
    items.push_back({token.value, token.text});
  const auto specials = items.begin() + static_cast<ptrdiff_t>(vocabulary.size());
  std::stable_sort(specials, items.end(), by_id);
  std::inplace_merge(items.begin(), specials, items.end(),
                     by_id); // stable: entries come before special tokens
  const bool dense = !items.empty() && items.back().id <= 4 * items.size();
  if (dense)
    places_.resize(size_t{items.back().id} + 1, unknown);
  if (rule)
    is_byte_.resize(std::max(places_.size(), items.size()) + 1);
  text_.reserve(vocabulary.all_bytes().size());
  std::string replaced;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto &[id, bytes] = items[i];
    if (i + 1 < items.size() && items[i + 1].id == id) {
      if (!rule && items[i + 1].bytes != bytes)
        throw std::invalid_argument("id " + std::to_string(id) + " is both " + quoted(bytes) +
                                    " and the special token " + quoted(items[i + 1].bytes) +
                                    "; ids must differ");
      continue;
    }
    std::string_view text = bytes;
    if (rule)
      for (const auto &[what, by] : rule->replaced)
        if (text.find(what) != std::string_view::npos)
          text = replaced = replace_all(text, what, by);
    const int byte = rule ? byte_of(text) : -1;
    const char one = static_cast<char>(byte);
    if (byte >= 0)
      text = {&one, 1};
    if (text_.size() + text.size() > UINT32_MAX - spare_bytes)
      throw std::invalid_argument(
          "the entries have more than 4294967279 bytes in all, which is not supported");
    const Place place{static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(text.size())};
    text_ += text;
    if (!dense) {
      ids_.push_back(id);
      places_.push_back(place);
    } else {
      places_[id] = place;
    }
    if (byte >= 0)
      is_byte_[dense ? id : places_.size() - 1] = true;
  }
  places_.push_back(unknown);
  text_.append(spare_bytes, '\0');
}

// Return the index of an ID in places_, or of the last place for an unknown one.
inline size_t Decoder::index_of(int64_t id) const {
  const uint64_t value = static_cast<uint64_t>(id); // a negative ID becomes a large one
  const size_t last = places_.size() - 1;
  if (ids_.empty())
    return std::min<uint64_t>(value, last);
  const auto item = std::lower_bound(ids_.begin(), ids_.end(), value);
  return item != ids_.end() && *item == value ? static_cast<size_t>(item - ids_.begin()) : last;
}

size_t Decoder::size_of(const int64_t *ids, size_t count) const {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const Place place = places_[index_of(ids[i])];
    if (place.start == unknown.start) [[unlikely]]
      throw std::invalid_argument("ids[" + std::to_string(i) + "] = " + std::to_string(ids[i]) +
                                  " is not an id of this vocabulary");
    total += place.size;
  }
  return total;
}

void Decoder::write(const int64_t *ids, size_t count, char *out, const char *stop) const {
  const Place *const places = places_.data(); // written bytes might alias the members
  const char *const text = text_.data();
  const uint64_t last = places_.size() - 1;
  const bool dense = ids_.empty();
  const auto place_of = [&](int64_t id) {
    return places[dense ? std::min(static_cast<uint64_t>(id), last) : index_of(id)];
  };
  size_t i = 0;
  // Copy sixteen bytes whatever the size, without a branch, while there is room.
  for (; i < count && static_cast<size_t>(stop - out) >= spare_bytes; ++i) {
    const Place place = place_of(ids[i]);
    std::memcpy(out, text + place.start, spare_bytes);
    if (place.size > spare_bytes)
      std::memcpy(out + spare_bytes, text + place.start + spare_bytes, place.size - spare_bytes);
    out += place.size;
  }
  for (; i < count; ++i) {
    const Place place = place_of(ids[i]);
    std::memcpy(out, text + place.start, place.size);
    out += place.size;
  }
}

std::string Decoder::decode_text(const int64_t *ids, size_t count, bool valid) const {
  std::string out;
  out.reserve(size_of(ids, count));
  size_t run_start = 0; // of bytes
  const auto end_run = [&] {
    const size_t size = out.size() - run_start;
    if (size == 0 || !valid || validate_utf8(bytes_of(out) + run_start, size) == size)
      return;
    out.resize(run_start);
    for (size_t i = 0; i < size; ++i)
      out += "\xEF\xBF\xBD";
  };
  for (size_t i = 0; i < count; ++i) {
    const size_t index = index_of(ids[i]);
    if (!is_byte_[index])
      end_run();
    out.append(text_, places_[index].start, places_[index].size);
    if (!is_byte_[index])
      run_start = out.size();
  }
  end_run();
  size_t start = 0;
  for (size_t i = 0;
       i < rule_->strip_count && std::string_view(out).substr(start).starts_with(rule_->stripped); ++i)
    start += rule_->stripped.size();
  return out.substr(start);
}

} // namespace bpe
