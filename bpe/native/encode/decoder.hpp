// Token ids -> bytes, special tokens included.
//
// Immutable, so any number of threads may decode. Costs two loads and a copy a token, a binary search more
// where ids are sparse (the largest more than four times their count).
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
  // Copies what it needs. Throws std::invalid_argument for a special token whose id is an entry's with other
  // bytes or another special token's.
  Decoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens);

  // How many bytes the ids stand for. Throws std::invalid_argument naming the first unknown id and its place.
  size_t size_of(const int64_t *ids, size_t count) const;
  // Writes just so many bytes. The ids must be known: size_of was asked.
  void write(const int64_t *ids, size_t count, char *out) const;

private:
  struct Place {
    uint32_t start, size; // in text_; size 0: unknown
  };
  Place find(uint64_t id) const;

  static constexpr size_t spare_bytes = 16;
  std::string text_;                // of all, and spare_bytes that may be read along
  std::vector<Place> places_;       // by id if ids_ is empty, else of ids_
  std::vector<uint32_t> ids_;       // ascending
  std::optional<int64_t> empty_id_; // of the one that decodes to nothing
};

} // namespace bpe
