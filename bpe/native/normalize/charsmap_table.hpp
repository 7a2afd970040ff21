// The keys and replacements of a charsmap of SentencePiece (precompiled_charsmap).
//
// Layout: size in bytes of the double array as uint32; a double array (darts-clone) of UTF-8 keys, uint32
// units; the replacements, each terminated by NUL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bpe {

class CharsmapTable {
public:
  struct Found {
    size_t key_bytes;
    std::string_view text; // the replacement of the key
  };

  // Throws std::invalid_argument for a truncated charsmap or a missing replacement.
  explicit CharsmapTable(std::string_view charsmap);

  // Returns the shortest or longest key at the start of the text. The longest ends at a character boundary,
  // so that valid text stays valid even with a damaged table.
  std::optional<Found> shortest(const uint8_t *text, size_t size) const;
  std::optional<Found> longest(const uint8_t *text, size_t size) const;
  // Return whether the text is a prefix of a key.
  bool goes_on(const uint8_t *text, size_t size) const;
  // All replacements, concatenated.
  std::string_view texts() const { return texts_; }

private:
  template <bool first> std::optional<Found> find(const uint8_t *text, size_t size) const;
  void check_keys() const;
  std::string_view text_at(uint32_t unit) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

} // namespace bpe
