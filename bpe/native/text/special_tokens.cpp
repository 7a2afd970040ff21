#include "text/special_tokens.hpp"

#include "common/prefetch.hpp"
#include "text/find_bytes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bpe {

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens)
    : tokens_(std::move(tokens)), first_byte_starts_{} {
  longest_first_.resize(tokens_.size());
  std::iota(longest_first_.begin(), longest_first_.end(), 0u);
  for (const SpecialToken &token : tokens_)
    if (token.text.empty())
      throw std::invalid_argument("a special token is empty; every special token needs a byte");
    else
      longest_ = std::max(longest_, token.text.size());
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
  for (size_t pair = 0; pair < can_start_.size(); ++pair) {
    if (!can_start_[pair])
      continue;
    if (pair_count_ == max_pairs) {
      pair_count_ = 0;
      break;
    }
    pairs_[pair_count_][0] = static_cast<uint8_t>(pair);
    pairs_[pair_count_++][1] = static_cast<uint8_t>(pair >> 8);
  }
}

// The first place from `place` on at which a token may start, or the last one, where only those of one byte
// may; `place` itself if it is no place of the text.
size_t SpecialTokens::next_start(const uint8_t *text, size_t size, size_t place) const {
#if defined(__SSE2__)
  constexpr size_t bytes_ahead = 2048; // see find_bytes
  while (pair_count_ > 0 && place + 64 < size) {
    const uint8_t *const p = text + place;
    prefetch_to_read(p + bytes_ahead);
    __m128i here[4] = {};
    for (size_t pair = 0; pair < pair_count_; ++pair) {
      const __m128i first = _mm_set1_epi8(static_cast<char>(pairs_[pair][0])),
                    second = _mm_set1_epi8(static_cast<char>(pairs_[pair][1]));
      for (size_t i = 0; i < 4; ++i) {
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + 16 * i));
        const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + 16 * i + 1));
        here[i] = _mm_or_si128(here[i], _mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, second)));
      }
    }
    if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(here[0], here[1]), _mm_or_si128(here[2], here[3])))) {
      uint64_t mask = 0;
      for (size_t i = 0; i < 4; ++i)
        mask |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(here[i]))} << 16 * i;
      return place + static_cast<size_t>(std::countr_zero(mask));
    }
    place += 64;
  }
#endif
  while (place + 1 < size && !can_start_[text[place] | text[place + 1] << 8])
    ++place;
  return place;
}

SpecialTokens::Match SpecialTokens::find(const uint8_t *text, size_t size, size_t start) const {
  if (tokens_.empty())
    return {size, size, 0};
  if (tokens_.size() == 1) {
    const size_t place = find_bytes(text, size, start, tokens_[0].text);
    return {place, place < size ? place + tokens_[0].text.size() : size, tokens_[0].value};
  }
  for (size_t place = next_start(text, size, start); place < size;
       place = next_start(text, size, place + 1)) {
    const uint8_t first = text[place];
    for (uint32_t i = first_byte_starts_[first]; i < first_byte_starts_[first + 1]; ++i) {
      const auto &[token, value] = tokens_[longest_first_[i]];
      if (token.size() <= size - place && std::memcmp(text + place, token.data(), token.size()) == 0)
        return {place, place + token.size(), value};
    }
  }
  return {size, size, 0};
}

bool SpecialTokens::stands_across(const uint8_t *text, size_t size, size_t place) const {
  const size_t reach = longest_ - 1;
  const size_t stop = size - place < reach ? size : place + reach;
  size_t start = place - std::min(place, reach);
  for (; start < place; ++start) {
    const Match match = find(text, stop, start);
    if (match.start >= place)
      return false;
    if (match.stop > place)
      return true;
    start = match.start;
  }
  return false;
}

} // namespace bpe
