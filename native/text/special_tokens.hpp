// Special tokens in a text: leftmost first, of those at one place the longest, not overlapping.
//
// As Hugging Face's added tokens, one may be no token beside a word (single_word) or take the whitespace
// before and behind it with it (lstrip, rstrip). That is decided after the search: a token that is refused
// hides what it overlaps all the same, and whitespace that one takes may hold others, which are found too.
//
// Places where none can start are passed over by their first two bytes. Linear in the text whatever the
// tokens are: long ones are looked for at all places of a block at once. Immutable, so any number of threads
// may search.
#pragma once

#include "text/first_two_bytes.hpp"
#include "text/token_trie.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bpe {

struct SpecialToken {
  std::string text;
  uint32_t value; // an id, or whatever the caller wants back; not no_special
  bool lstrip = false, rstrip = false, single_word = false;
};

inline constexpr uint32_t no_special = UINT32_MAX;

class SpecialTokens {
public:
  // What stands between the last match's stop and this one's start is text. Whitespace that two tokens take
  // can make a stop fall behind the last one, and a match empty: that is a token no more.
  struct Match {
    size_t start, stop; // the text's size if there is none
    uint32_t value;     // what was given with the token, or no_special
  };
  class Search;

  SpecialTokens() : SpecialTokens(std::vector<SpecialToken>()) {}
  // Throws std::invalid_argument for an empty token or one given twice.
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  bool empty() const { return tokens_.empty(); }
  const std::vector<SpecialToken> &tokens() const { return tokens_; }
  // Whether none has a flag: then each is found by its bytes alone.
  bool plain() const { return !looks_around_; }
  // The first match in text[start, size).
  Match find(const uint8_t *text, size_t size, size_t start) const;
  // Whether a token begins before `place` and ends behind it, or looks over it: if none does, the parts
  // before and behind it may be searched apart.
  bool stands_across(const uint8_t *text, size_t size, size_t place) const;
  // So many bytes behind a place decide it, whatever follows them.
  size_t reach() const { return longest_ + (looks_around_ ? most_spaces + 4 : 0); }

private:
  size_t next_start(const uint8_t *text, size_t size, size_t place) const;

  // Up to here a walk of the trie at each place costs less than a look at all places.
  static constexpr size_t short_bytes = 128;
  static constexpr size_t most_spaces = 1 << 10; // bytes beside a place that are looked at
  std::vector<SpecialToken> tokens_;
  TokenTrie trie_;            // reversed where a token has more than short_bytes
  size_t longest_ = 1;        // bytes of a token
  bool looks_around_ = false; // at what stands beside a token
  FirstTwoBytes first_two_;
};

// The matches in a text, one after the other.
class SpecialTokens::Search {
public:
  Search(const SpecialTokens &tokens, const uint8_t *text, size_t size, size_t start = 0)
      : tokens_(tokens), text_(text), size_(size), place_(start), taken_(start) {}
  Match next();

private:
  friend class SpecialTokens;
  uint32_t next_occurrence();
  uint32_t longest_here();
  bool is_beside_word(size_t start, size_t stop) const;
  size_t space_before(size_t start) const;
  size_t space_behind(size_t stop);

  const SpecialTokens &tokens_;
  const uint8_t *text_;
  size_t size_, place_;
  size_t taken_;                              // the stop of the last match
  size_t spaces_start_ = 0, spaces_stop_ = 0; // whitespace that was looked at
  size_t block_start_ = 0, block_stop_ = 0;   // of the longest tokens at each place
  std::vector<uint32_t> longest_;
};

} // namespace bpe
