#include "special_tokens.hpp"

#include "find_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace bpe {

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens)
    : tokens_(std::move(tokens)), first_byte_starts_{} {
  longest_first_.resize(tokens_.size());
  std::iota(longest_first_.begin(), longest_first_.end(), 0u);
  for (const SpecialToken &token : tokens_)
    if (token.text.empty())
      throw std::invalid_argument("a special token is empty; every special token needs a byte");
  const auto first_byte = [&](uint32_t index) { return static_cast<uint8_t>(tokens_[index].text[0]); };
  std::sort(longest_first_.begin(), longest_first_.end(), [&](uint32_t a, uint32_t b) {
    if (first_byte(a) != first_byte(b))
      return first_byte(a) < first_byte(b);
    if (tokens_[a].text.size() != tokens_[b].text.size())
      return tokens_[a].text.size() > tokens_[b].text.size();
    return tokens_[a].text < tokens_[b].text;
  });
  for (size_t i = 1; i < longest_first_.size(); ++i)
    if (tokens_[longest_first_[i]].text == tokens_[longest_first_[i - 1]].text)
      throw std::invalid_argument("the special token '" + tokens_[longest_first_[i]].text +
                                  "' is given twice");
  for (const uint32_t index : longest_first_)
    ++first_byte_starts_[first_byte(index) + 1];
  std::partial_sum(std::begin(first_byte_starts_), std::end(first_byte_starts_),
                   std::begin(first_byte_starts_));
  if (tokens_.size() < 2)
    return;
  can_start_.assign(65536, 0);
  for (const auto &[token, value] : tokens_) {
    const uint32_t first = static_cast<uint8_t>(token[0]);
    if (token.size() > 1)
      can_start_[first | static_cast<uint32_t>(static_cast<uint8_t>(token[1])) << 8] = 1;
    for (uint32_t second = 0; token.size() == 1 && second < 256; ++second)
      can_start_[first | second << 8] = 1;
  }
}

SpecialTokens::Match SpecialTokens::find(const uint8_t *text, size_t size, size_t start) const {
  if (tokens_.empty())
    return {size, size, 0};
  if (tokens_.size() == 1) {
    const size_t place = find_bytes(text, size, start, tokens_[0].text);
    return {place, place < size ? place + tokens_[0].text.size() : size, tokens_[0].value};
  }
  for (size_t place = start; place < size; ++place) {
    if (place + 1 < size && !can_start_[text[place] | text[place + 1] << 8])
      continue;
    const uint8_t first = text[place];
    for (uint32_t i = first_byte_starts_[first]; i < first_byte_starts_[first + 1]; ++i) {
      const auto &[token, value] = tokens_[longest_first_[i]];
      if (token.size() <= size - place && std::memcmp(text + place, token.data(), token.size()) == 0)
        return {place, place + token.size(), value};
    }
  }
  return {size, size, 0};
}

} // namespace bpe
