// Decode token IDs to text for text entries. Implements the CoreRule of bpe/decoders.py.
//
// Immutable and thread-safe.
#pragma once

#include "text/special_tokens.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bpe {

struct TextDecoding {
  std::vector<std::pair<std::string, std::string>> replaced; // in each entry, in order
  std::string stripped; // removed from the start of the decoded text, at most strip_count times
  size_t strip_count;
};

class TextDecoder {
public:
  TextDecoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens,
              const TextDecoding &rule);

  // Decode IDs to bytes. valid: adjacent byte entries that are not valid UTF-8 together become U+FFFD each.
  // Throws std::invalid_argument with the first unknown ID and its index.
  std::string decode(const int64_t *ids, size_t count, bool valid) const;

private:
  static constexpr int16_t no_byte = -1;

  std::vector<uint32_t> ids_; // ascending
  // For each ID.
  std::vector<uint64_t> ends_; // in text_
  std::vector<int16_t> bytes_; // value of a byte entry
  std::string text_;
  std::string stripped_;
  size_t strip_count_;
};

} // namespace bpe
