// Special tokens in a text: leftmost first, of those at one place the longest, not overlapping.
//
// Places where none can start are passed over by their first two bytes: where those of all tokens are at most
// four different pairs ("<|", "</"), 64 places at a time on x86-64 (3 GB/s, a table of all pairs 0.4). A
// single special token is searched as find_bytes does. Immutable, so any number of threads may search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bpe {

struct SpecialToken {
  std::string text;
  uint32_t value; // an id, or whatever the caller wants back
};

class SpecialTokens {
public:
  struct Match {
    size_t start, stop; // start == size: none is left
    uint32_t value;     // what was given with the token
  };

  // Throws std::invalid_argument for an empty token or one given twice.
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  const std::vector<SpecialToken> &tokens() const { return tokens_; }
  // The next match in text[start, size).
  Match find(const uint8_t *text, size_t size, size_t start) const;
  // Whether a token begins before `place` and ends behind it: if none does, the parts before and behind it
  // may be searched apart.
  bool stands_across(const uint8_t *text, size_t size, size_t place) const;

private:
  size_t next_start(const uint8_t *text, size_t size, size_t place) const;

  static constexpr size_t max_pairs = 4;
  std::vector<SpecialToken> tokens_;
  size_t longest_ = 1;                  // bytes of a token
  std::vector<uint32_t> longest_first_; // indices by first byte, then falling length
  uint32_t first_byte_starts_[257];     // of each first byte's run in longest_first_
  std::vector<uint8_t> can_start_;      // by the first two bytes, little-endian
  size_t pair_count_ = 0;               // of first two bytes; 0: more than max_pairs, or a token of one byte
  uint8_t pairs_[max_pairs][2];
};

} // namespace bpe
