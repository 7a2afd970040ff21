// Decode token IDs to bytes, including special tokens.
//
// Immutable and thread-safe. Costs two loads and a copy per token. Sparse IDs (the largest is more than four
// times their number) also need a binary search.
#pragma once

#include "text/special_tokens.hpp"
#include "vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bpe {

class Decoder {
public:
  // Copies its data from the arguments. Throws std::invalid_argument for a special token with the ID of an
  // entry with other bytes or of another special token.
  Decoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens);

  // Return the decoded size of the IDs. Throws std::invalid_argument with the first unknown ID and its index.
  size_t size_of(const int64_t *ids, size_t count) const;
  // Write exactly size_of(ids) bytes. size_of must have accepted the IDs.
  void write(const int64_t *ids, size_t count, char *out) const;

private:
  struct Place {
    uint32_t start, size; // offset in text_; size 0: unknown
  };
  Place find(uint64_t id) const;

  static constexpr size_t spare_bytes = 16;
  std::string text_;                // all bytes, and spare_bytes that may also be read
  std::vector<Place> places_;       // indexed by ID if ids_ is empty, otherwise like ids_
  std::vector<uint32_t> ids_;       // ascending
  std::optional<int64_t> empty_id_; // ID of the token that decodes to nothing
};

} // namespace bpe
