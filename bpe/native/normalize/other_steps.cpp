#include "normalize/other_steps.hpp"

#include "normalize/unicode_tables.hpp"
#include "pretokenize/text_window.hpp"
#include "text/find_bytes.hpp"
#include "text/utf8.hpp"
#include "vocabulary/byte_alphabet.hpp"

#include <stdexcept>

namespace bpe {

namespace {

std::string_view view(const uint8_t *text, size_t size) {
  return {reinterpret_cast<const char *>(text), size};
}

} // namespace

ReplaceText::ReplaceText(std::string_view replaced, std::string_view by) : replaced_(replaced), by_(by) {
  if (replaced.empty())
    throw std::invalid_argument("the text to replace is empty");
}

void ReplaceText::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  for (size_t start = 0;;) {
    const size_t found = find_bytes(text, size, start, replaced_);
    out.append(text + start, found - start);
    if (found == size)
      return;
    out.append(bytes_of(by_), by_.size());
    start = found + replaced_.size();
  }
}

size_t ReplaceText::first_change(const uint8_t *text, size_t size) const {
  return find_bytes(text, size, 0, replaced_);
}

bool ReplaceText::is_of_one_character() const {
  return read_char(bytes_of(replaced_), bytes_of(replaced_) + replaced_.size()).length == replaced_.size();
}

// No occurrence of the text may cross the border.
bool ReplaceText::is_border(uint32_t code_point) const {
  uint8_t utf8[4];
  const std::string_view character(reinterpret_cast<char *>(utf8), write_utf8(code_point, utf8));
  return is_of_one_character() || replaced_.find(character) == std::string::npos;
}

size_t ReplaceText::max_growth() const {
  return std::max<size_t>(1, (by_.size() + replaced_.size() - 1) / replaced_.size());
}

void ReplaceMatches::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  const auto window = std::make_unique<TextWindow>(*automaton_);
  window->for_each_piece(text, size, text + size, [&](size_t start, size_t stop, bool is_match) {
    if (is_match)
      out.append(bytes_of(by_), by_.size());
    else
      out.append(text + start, stop - start);
  });
}

Strip::Strip(bool left, bool right) : left_(left), right_(right) {
  for_each_in(unicode::white_space, [&](uint32_t c) { is_space_.set(c, 1); });
}

std::string_view Strip::kept(std::string_view text) const {
  const uint8_t *start = bytes_of(text), *stop = start + text.size();
  while (left_ && start < stop) {
    const Char c = read_char(start, stop);
    if (!is_space_[c.code_point])
      break;
    start += c.length;
  }
  while (right_ && start < stop) {
    const uint8_t *last = stop - 1;
    while (last > start && continues_character(*last))
      --last;
    if (!is_space_[read_char(last, stop).code_point])
      break;
    stop = last;
  }
  return view(start, static_cast<size_t>(stop - start));
}

void Strip::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  const std::string_view rest = kept(view(text, size));
  out.append(bytes_of(rest), rest.size());
}

size_t Strip::first_change(const uint8_t *text, size_t size) const {
  return kept(view(text, size)).size() == size ? size : 0;
}

void Prepend::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  if (size == 0)
    return;
  out.append(bytes_of(text_), text_.size());
  out.append(text, size);
}

void Prefix::append(const uint8_t *text, size_t size, ByteBuffer &out) const {
  if (first_change(text, size) == 0 && size > 0)
    out.append(bytes_of(text_), text_.size());
  out.append(text, size);
}

size_t Prefix::first_change(const uint8_t *text, size_t size) const {
  return view(text, size).starts_with(text_) ? size : 0;
}

BytesAsCharacters::BytesAsCharacters() {
  for (size_t byte = 0; byte < 256; ++byte) {
    characters_[byte] = {};
    write_utf8(byte_alphabet.character_of[byte], characters_[byte].data());
  }
}

void BytesAsCharacters::append(const uint8_t *text, size_t size, ByteBuffer &buffer) const {
  uint8_t *out = buffer.room(2 * size);
  for (size_t i = 0; i < size; ++i) {
    const std::array<uint8_t, 2> character = characters_[text[i]];
    out[0] = character[0];
    out[1] = character[1];
    out += character[1] != 0 ? 2 : 1;
  }
  buffer.set_end(out);
}

size_t BytesAsCharacters::first_change(const uint8_t *text, size_t size) const {
  for (size_t i = 0; i < size; ++i)
    if (characters_[text[i]][1] != 0)
      return i;
  return size;
}

} // namespace bpe
