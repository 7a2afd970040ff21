// Find special tokens in a text: the leftmost match first, the longest of those at one offset, no overlaps.
//
//     offset = the next one where the first two bytes of a token occur
//     match = the longest token at offset, or continue after it
//     next to a word and single_word: continue after the match; lstrip, rstrip: extend it over whitespace
//
// 1. Flags are as in Hugging Face's added tokens. A rejected token still hides the tokens it overlaps.
//    Whitespace included in a match may contain tokens, which are found too.
// 2. The search takes linear time for any tokens: long tokens are matched at all offsets of a block at once.
//
// Immutable and thread-safe.
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
  uint32_t value; // an ID or any value that the caller chooses, except no_special
  bool lstrip = false, rstrip = false, single_word = false;
};

inline constexpr uint32_t no_special = UINT32_MAX;

class SpecialTokens {
public:
  // The text between two matches is ordinary text. If two tokens include the same whitespace, a match can end
  // before the previous one and be empty. It then counts as no token.
  struct Match {
    size_t start, stop; // the size of the text if there is no match
    uint32_t value;     // value of the token, or no_special
  };
  class Search;

  SpecialTokens() : SpecialTokens(std::vector<SpecialToken>()) {}
  // Throws std::invalid_argument for an empty or duplicate token.
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  bool empty() const { return tokens_.empty(); }
  const std::vector<SpecialToken> &tokens() const { return tokens_; }
  // Return whether no token has flags, so that each is found by its bytes alone.
  bool plain() const { return !looks_around_; }
  // Return the first match in text[start, size).
  Match find(const uint8_t *text, size_t size, size_t start) const;
  // Return whether a token starts before `place` and ends after it, or inspects text across it. If none does,
  // the text before and after `place` may be searched separately.
  bool stands_across(const uint8_t *text, size_t size, size_t place) const;
  // Number of bytes after an offset that decide the matches there.
  size_t reach() const { return longest_ + (looks_around_ ? most_spaces + 4 : 0); }

private:
  size_t next_start(const uint8_t *text, size_t size, size_t place) const;

  // Up to this length, walking the trie at each offset is faster than matching at all offsets at once.
  static constexpr size_t short_bytes = 128;
  static constexpr size_t most_spaces = 1 << 10; // inspected on each side of a token
  std::vector<SpecialToken> tokens_;
  TokenTrie trie_;            // reversed if a token is longer than short_bytes
  size_t longest_ = 1;        // length of the longest token
  bool looks_around_ = false; // whether a token depends on the text around it
  FirstTwoBytes first_two_;
};

// Iterates over the matches in a text.
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
  size_t taken_;                              // end of the last match
  size_t spaces_start_ = 0, spaces_stop_ = 0; // whitespace already scanned
  size_t block_start_ = 0, block_stop_ = 0;   // block for which the longest tokens are known
  std::vector<uint32_t> longest_;
};

} // namespace bpe
