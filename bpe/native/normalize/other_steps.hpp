// Small normalizers: replacing text, stripping white space, adding a prefix, the byte alphabet.
#pragma once

#include "normalize/page_table.hpp"
#include "normalize/step.hpp"
#include "pretokenize/automaton.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace bpe {

// Replaces each occurrence of a text, leftmost first.
class ReplaceText final : public Step {
public:
  // Throws std::invalid_argument for an empty text.
  ReplaceText(std::string_view replaced, std::string_view by);

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t code_point) const override;
  size_t max_growth() const override;
  bool is_of_one_character() const; // whether the replaced text is one character

private:
  const std::string replaced_, by_;
};

// Replaces each piece that an automaton drops.
class ReplaceMatches final : public Step {
public:
  ReplaceMatches(std::shared_ptr<const Automaton> automaton, std::string_view by)
      : automaton_(std::move(automaton)), by_(by) {}

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *, size_t size) const override { return size > 0 ? 0 : size; }
  bool is_border(uint32_t) const override { return false; }
  size_t max_growth() const override { return 1 + by_.size(); }

private:
  const std::shared_ptr<const Automaton> automaton_;
  const std::string by_;
};

// Removes white space at the start or the end of the text, which cannot be cut.
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

// Adds a prefix to a non-empty text. The text can only be cut if this is the first step.
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

// Adds a prefix to a non-empty text that does not start with it.
class Prefix final : public Step {
public:
  explicit Prefix(std::string_view text) : text_(text) {}

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t) const override { return false; }
  size_t max_growth() const override { return 1 + text_.size(); }

private:
  const std::string text_;
};

// Replaces each byte by its character in the byte alphabet of GPT-2.
class BytesAsCharacters final : public Step {
public:
  BytesAsCharacters();

  void append(const uint8_t *text, size_t size, ByteBuffer &out) const override;
  size_t first_change(const uint8_t *text, size_t size) const override;
  bool is_border(uint32_t) const override { return true; }
  size_t max_growth() const override { return 2; }

private:
  std::array<std::array<uint8_t, 2>, 256> characters_; // one byte if below 0x80
};

} // namespace bpe
