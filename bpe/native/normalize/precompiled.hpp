// SentencePiece's charsmap as Hugging Face tokenizers applies it: Precompiled.
//
// A grapheme cluster below six bytes is replaced by the text of the shortest key that it starts with. In
// other clusters, each character is replaced by the text of the shortest key that it starts with.
#pragma once

#include "normalize/charsmap_table.hpp"
#include "normalize/page_table.hpp"
#include "normalize/step.hpp"
#include "normalize/unicode_tables.hpp"

#include <optional>
#include <string_view>

namespace bpe {

class Precompiled final : public Step {
public:
  // Throws std::invalid_argument for a truncated charsmap or a missing replacement.
  explicit Precompiled(std::string_view charsmap);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t code_point) const override;
  size_t max_growth() const override { return max_growth_; }
  // Whether the text can be cut between the two.
  bool is_border_between(uint32_t before, uint32_t behind) const;

private:
  std::optional<std::string_view> replacement(const uint8_t *key, size_t size) const;
  const uint8_t *cluster_stop(const uint8_t *p, const uint8_t *stop) const;
  bool stands_alone(const uint8_t *p, Char c, const uint8_t *stop) const;
  const uint8_t *skip_same_ascii(const uint8_t *p, const uint8_t *stop) const;
  unicode::ClusterClass class_of(uint32_t code_point) const {
    return static_cast<unicode::ClusterClass>(characters_[code_point] & 31);
  }

  CharsmapTable table_;
  PageTable<uint32_t> characters_; // class | changes_bit
  static constexpr uint32_t changes_bit = 32;
  bool same_ascii_[256] = {}; // by byte: stays if ASCII follows
  size_t max_growth_ = 1;
};

} // namespace bpe
