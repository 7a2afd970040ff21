// Token ids -> bytes, special tokens included.
//
// Immutable, so any number of threads may decode. Costs a load and a copy a token, a binary search more where
// ids are sparse (the largest more than four times their count).
#pragma once

#include "special_tokens.hpp"
#include "vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bpe {

class Decoder {
public:
  // The vocabulary must outlive the decoder. Throws std::invalid_argument for a special token whose id is an
  // entry's with other bytes or another special token's.
  Decoder(const Vocabulary &vocabulary, const std::vector<SpecialToken> &special_tokens);

  // False if the id is no entry's and no special token's.
  bool find(uint64_t id, std::string_view &bytes) const;
  // Throws std::invalid_argument naming the first unknown id and its place.
  std::string decode(const int64_t *ids, size_t count) const;

private:
  struct Item {
    uint32_t id;
    std::string_view bytes;
  };
  std::vector<std::string> special_texts_;
  std::vector<Item> items_;             // by id
  std::vector<std::string_view> dense_; // by id, data null: unknown; empty if ids are sparse
};

} // namespace bpe
