// Normalizers of a few lines: a replaced text, stripped white space, bytes as characters.
#pragma once

#include "normalize/page_table.hpp"
#include "normalize/step.hpp"

#include <array>
#include <string>
#include <string_view>

namespace bpe {

// Each occurrence of a text, leftmost first, becomes another.
class ReplaceText final : public Step {
public:
  // Throws std::invalid_argument for an empty one.
  ReplaceText(std::string_view replaced, std::string_view by);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t code_point) const override;
  size_t max_growth() const override;
  bool is_of_one_character() const; // the text that is replaced

private:
  const std::string replaced_, by_;
};

// White space at the beginning or the end of the text goes. The text can't be cut.
class Strip final : public Step {
public:
  Strip(bool left, bool right);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t) const override { return false; }
  size_t max_growth() const override { return 1; }

private:
  std::string_view kept(std::string_view text) const;

  const bool left_, right_;
  PageTable<uint8_t> is_space_;
};

// A text that is not empty gets something in front. The text can't be cut, unless it is the first of a
// sequence.
class Prepend final : public Step {
public:
  explicit Prepend(std::string_view text) : text_(text) {}

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *, size_t size) const override { return text_.empty() ? size : 0; }
  bool is_border(uint32_t) const override { return false; }
  size_t max_growth() const override { return 1 + text_.size(); }

private:
  const std::string text_;
};

// Each byte becomes the character that stands for it in the byte alphabet of GPT-2.
class BytesAsCharacters final : public Step {
public:
  BytesAsCharacters();

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t) const override { return true; }
  size_t max_growth() const override { return 2; }

private:
  std::array<std::array<uint8_t, 2>, 256> characters_; // of one byte those below 0x80
};

} // namespace bpe
