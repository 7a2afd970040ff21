// Decode token IDs to bytes, including special tokens.
//
// Immutable and thread-safe. Bytes cost two loads and a copy per token. Sparse IDs (the largest is more than
// four times their number) also need a binary search.
#pragma once

#include "text/special_tokens.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe {

// The CoreRule of bpe/decoders.py, for text entries.
struct TextDecoding {
  std::vector<std::pair<std::string, std::string>> replaced; // in each entry, in order
  std::string stripped; // removed from the start of the decoded text, at most strip_count times
  size_t strip_count = 0;
  std::vector<SpecialToken> special_tokens; // with the texts that they decode to
};

class Decoder {
public:
  // Copies its data from the arguments. Throws std::invalid_argument for a special token with the ID of an
  // entry with other bytes or of another special token. rule: replaces the special tokens, which then replace
  // entries.
  Decoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens,
          const std::optional<TextDecoding> &rule);

  // Return the decoded size of the IDs. Throws std::invalid_argument with the first unknown ID and its index.
  size_t size_of(const int64_t *ids, size_t count) const;
  // Write the bytes to `out`, which has size_of(ids) bytes and ends at `stop`. size_of must have accepted the
  // IDs.
  void write(const int64_t *ids, size_t count, char *out, const char *stop) const;

  bool has_rule() const { return rule_.has_value(); } // call decode_text() instead of the two above
  // Return the text of the IDs by the rule. valid: adjacent byte entries that are not valid UTF-8 together
  // become U+FFFD each. Throws like size_of().
  std::string decode_text(const int64_t *ids, size_t count, bool valid) const;

private:
  struct Place {
    uint32_t start, size; // offset in text_
  };
  static constexpr Place unknown{UINT32_MAX, 0};
  static constexpr size_t spare_bytes = 16;

  void add(uint32_t id, std::string_view text);
  size_t index_of(int64_t id) const;

  std::string text_;          // all bytes, and spare_bytes that may also be read
  std::vector<Place> places_; // indexed by ID if ids_ is empty, otherwise like ids_; the last one is unknown
  std::vector<uint32_t> ids_; // ascending
  std::vector<bool> is_byte_; // like places_ if there is a rule: whether the entry spells a byte
  std::optional<TextDecoding> rule_;
};

} // namespace bpe
