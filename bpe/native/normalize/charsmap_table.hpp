// The keys and replacements of a charsmap of SentencePiece (precompiled_charsmap).
//
// The charsmap: the bytes of a double array, uint32; a double array (darts-clone) of UTF-8 keys, uint32 each;
// the replacements, each ended by NUL.
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
    std::string_view text; // what stands for the key
  };

  // Throws std::invalid_argument for a charsmap that is cut short or names a replacement that is not there.
  explicit CharsmapTable(std::string_view charsmap);

  // The shortest or longest key that the text begins with; the longest ends with a character of the text, so
  // that valid text stays valid whatever the keys of a damaged table are.
  std::optional<Found> shortest(const uint8_t *text, size_t size) const;
  std::optional<Found> longest(const uint8_t *text, size_t size) const;
  // Whether the text is a key or the beginning of one.
  bool goes_on(const uint8_t *text, size_t size) const;
  // All replacements, end to end.
  std::string_view texts() const { return texts_; }

private:
  template <bool first> std::optional<Found> find(const uint8_t *text, size_t size) const;
  void check_keys() const;
  std::string_view text_at(uint32_t unit) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

} // namespace bpe
