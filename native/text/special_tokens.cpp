#include "text/special_tokens.hpp"

#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"
#include "text/word_characters.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

namespace bpe {

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)) {
  if (tokens_.empty())
    return;
  std::vector<std::string_view> texts;
  std::unordered_set<std::string_view> known;
  for (const SpecialToken &token : tokens_) {
    if (token.text.empty())
      throw std::invalid_argument("a special token is empty; every special token needs a byte");
    if (!known.insert(token.text).second)
      throw std::invalid_argument("the special token '" + token.text + "' is given twice");
    texts.push_back(token.text);
    longest_ = std::max(longest_, token.text.size());
    looks_around_ |= token.lstrip || token.rstrip || token.single_word;
  }
  trie_ = TokenTrie(texts, longest_ > short_bytes);
  first_two_ = FirstTwoBytes(texts);
}

// Return the first offset >= `place` at which a token may start, or `size`. place <= size.
size_t SpecialTokens::next_start(const uint8_t *text, size_t size, size_t place) const {
  return place == size ? size : simd_variant().find_first_two(first_two_, text, place, size);
}

// Return the longest token at place_.
uint32_t SpecialTokens::Search::longest_here() {
  constexpr size_t block_bytes = 1 << 16;
  if (tokens_.longest_ <= short_bytes)
    return tokens_.trie_.longest_at(text_, size_, place_);
  if (place_ < block_start_ || place_ >= block_stop_) {
    block_start_ = place_;
    block_stop_ = place_ + std::min(size_ - place_, std::max(block_bytes, tokens_.longest_));
    tokens_.trie_.longest_at_each(text_, size_, block_start_, block_stop_, longest_);
  }
  return longest_[place_ - block_start_];
}

// Advance place_ to the next token and return it, or no_token if none is left.
uint32_t SpecialTokens::Search::next_occurrence() {
  if (tokens_.empty())
    return TokenTrie::no_token;
  for (place_ = tokens_.next_start(text_, size_, place_); place_ < size_;
       place_ = tokens_.next_start(text_, size_, place_ + 1))
    if (const uint32_t token = longest_here(); token != TokenTrie::no_token)
      return token;
  return TokenTrie::no_token;
}

SpecialTokens::Match SpecialTokens::Search::next() {
  for (uint32_t which; (which = next_occurrence()) != TokenTrie::no_token;) {
    const SpecialToken &token = tokens_.tokens_[which];
    size_t start = place_, stop = start + token.text.size();
    place_ = stop;
    if (token.single_word && is_beside_word(start, stop))
      continue;
    if (token.lstrip)
      start = std::max(space_before(start), taken_);
    if (token.rstrip)
      stop = space_behind(stop);
    taken_ = stop;
    return {start, stop, token.value};
  }
  return {size_, size_, no_special};
}

bool SpecialTokens::Search::is_beside_word(size_t start, size_t stop) const {
  size_t before = start;
  while (before > 0 && continues_character(text_[--before]))
    ;
  return (start > 0 && is_word_character(read_char(text_ + before, text_ + start).code_point)) ||
         (stop < size_ && is_word_character(read_char(text_ + stop, text_ + size_).code_point));
}

// Return the start of the whitespace that ends at `start`, excluding the last match.
size_t SpecialTokens::Search::space_before(size_t start) const {
  while (start > taken_) {
    size_t before = start - 1;
    while (before > taken_ && continues_character(text_[before]))
      --before;
    if (!is_space(read_char(text_ + before, text_ + start).code_point))
      return start;
    start = before;
  }
  return start;
}

// Return the end of the whitespace that starts at `stop`.
size_t SpecialTokens::Search::space_behind(size_t stop) {
  if (stop < spaces_start_ || stop > spaces_stop_)
    spaces_start_ = spaces_stop_ = stop;
  while (spaces_stop_ < size_) {
    const Char next = read_char(text_ + spaces_stop_, text_ + size_);
    if (!is_space(next.code_point))
      break;
    spaces_stop_ += next.length;
  }
  return spaces_stop_;
}

SpecialTokens::Match SpecialTokens::find(const uint8_t *text, size_t size, size_t start) const {
  return Search(*this, text, size, start).next();
}

bool SpecialTokens::stands_across(const uint8_t *text, size_t size, size_t place) const {
  if (tokens_.empty())
    return false;
  // Only an occurrence that starts before `last` and ends after `first` matters.
  size_t first = place, last = place;
  if (looks_around_) {
    Search around(*this, text, std::min(size, place + most_spaces), place - std::min(place, most_spaces));
    first = around.space_before(place);
    last = around.space_behind(place);
    if ((first > 0 && place - first >= most_spaces) || (last < size && last - place >= most_spaces))
      return true;
    first -= std::min<size_t>(first, 1);
    last += last < size;
  }
  Search search(*this, text, std::min(size, last + longest_), first - std::min(first, longest_));
  for (;; ++search.place_) {
    const uint32_t which = search.next_occurrence();
    if (which == TokenTrie::no_token || search.place_ >= last)
      return false;
    if (search.place_ + tokens_[which].text.size() > first)
      return true;
  }
}

} // namespace bpe
