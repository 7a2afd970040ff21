#include "encode/text_decoder.hpp"

#include "text/utf8.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

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
int16_t byte_of(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return -1;
  const int high = text[3] == '+' ? 0 : hexadecimal(text[3]), low = hexadecimal(text[4]);
  return static_cast<int16_t>(high < 0 || low < 0 ? -1 : high << 4 | low);
}

} // namespace

TextDecoder::TextDecoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens,
                         const TextDecoding &rule)
    : stripped_(rule.stripped), strip_count_(rule.strip_count) {
  std::vector<std::pair<uint32_t, std::string_view>> items;
  items.reserve(vocabulary.size() + special_tokens.size());
  for (uint32_t symbol = 0; symbol < vocabulary.size(); ++symbol)
    items.emplace_back(vocabulary.id(symbol), vocabulary.bytes(symbol));
  for (const SpecialToken &token : special_tokens)
    items.emplace_back(token.value, token.text);
  std::stable_sort(items.begin(), items.end(),
                   [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string replaced;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto &[id, entry] = items[i];
    if (i + 1 < items.size() && items[i + 1].first == id) // an entry that is also a special token
      continue;
    std::string_view text = entry;
    for (const auto &[what, by] : rule.replaced)
      if (text.find(what) != std::string_view::npos)
        text = replaced = replace_all(text, what, by);
    ids_.push_back(id);
    bytes_.push_back(byte_of(text));
    if (bytes_.back() == no_byte)
      text_ += text;
    else
      text_ += static_cast<char>(bytes_.back());
    ends_.push_back(text_.size());
  }
}

std::string TextDecoder::decode(const int64_t *ids, size_t count, bool valid) const {
  std::string out;
  size_t run_start = 0; // of bytes
  const auto end_run = [&] {
    const size_t size = out.size() - run_start;
    if (size == 0 || !valid ||
        validate_utf8(reinterpret_cast<const uint8_t *>(out.data()) + run_start, size) == size)
      return;
    out.resize(run_start);
    for (size_t i = 0; i < size; ++i)
      out += "\xEF\xBF\xBD";
  };
  for (size_t i = 0; i < count; ++i) {
    const uint64_t id = static_cast<uint64_t>(ids[i]); // a negative ID becomes a large one
    size_t place = static_cast<size_t>(id);
    if (place >= ids_.size() || ids_[place] != id)
      place = static_cast<size_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
    if (place == ids_.size() || ids_[place] != id)
      throw std::invalid_argument("ids[" + std::to_string(i) + "] = " + std::to_string(ids[i]) +
                                  " is not an id of this vocabulary");
    const bool is_byte = bytes_[place] != no_byte;
    if (!is_byte)
      end_run();
    const uint64_t start = place == 0 ? 0 : ends_[place - 1];
    out.append(text_, start, ends_[place] - start);
    if (!is_byte)
      run_start = out.size();
  }
  end_run();
  size_t start = 0;
  for (size_t i = 0; i < strip_count_ && std::string_view(out).substr(start).starts_with(stripped_); ++i)
    start += stripped_.size();
  return out.substr(start);
}

} // namespace bpe
