// Token ids -> text where entries are text: what bpe/decoders.py calls its core rule.
//
// Immutable, so any number of threads may decode.
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
  std::vector<std::pair<std::string, std::string>> replaced; // in each entry, one after the other
  std::string stripped; // goes from the beginning of what is decoded, strip_count times at most
  size_t strip_count;
};

class TextDecoder {
public:
  TextDecoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens,
              const TextDecoding &rule);

  // The bytes of the ids. valid: bytes of neighbouring entries of bytes that are no UTF-8 together are U+FFFD
  // each. Throws std::invalid_argument naming the first unknown id and its place.
  std::string decode(const int64_t *ids, size_t count, bool valid) const;

private:
  static constexpr int16_t no_byte = -1;

  std::vector<uint32_t> ids_; // ascending
  // Of each of them.
  std::vector<uint64_t> ends_; // in text_
  std::vector<int16_t> bytes_; // if it is an entry of a byte
  std::string text_;
  std::string stripped_;
  size_t strip_count_;
};

} // namespace bpe
