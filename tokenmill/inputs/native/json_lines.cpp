// A line is validated from left to right:
//
//   on the path: object = { name : value , ... }, where the value of the name on the path
//                is the next object, or the text
//   elsewhere:   any value, without recursion, so nesting cannot exhaust the stack
//
// Then the text is copied to the output, and its escapes are decoded.
#include "json_lines.hpp"

#include "common/byte_vector.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace corpus {

namespace {

constexpr ptrdiff_t block = 16;
constexpr std::string_view escape_codes = "\"\\/bfnrt", escaped_characters = "\"\\/\b\f\n\r\t";

const uint8_t *skip_space(const uint8_t *p, const uint8_t *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
    ++p;
  return p;
}

bool is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

bool is_hex_digit(uint8_t c) {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

// The number of bytes, up to 16, before the first quote, backslash or control character.
ptrdiff_t plain_bytes(const uint8_t *p) {
  using bpe::ByteVector;
  const ByteVector bytes = bpe::load_bytes(p);
  const uint32_t mask =
      bpe::mask_of(ByteVector(bytes == '"') | ByteVector(bytes == '\\') | ByteVector(bytes < 0x20));
  return mask == 0 ? block : std::countr_zero(mask);
}

class Line {
public:
  // readable: end of the buffer; up to 16 bytes after a line are read, but not beyond the buffer.
  Line(const std::vector<std::string> &path, const uint8_t *readable) : path_(path), readable_(readable) {}

  // Validates the line [start, stop) and finds its text. False if the line is left to the caller.
  bool parse(const uint8_t *start, const uint8_t *stop) {
    end_ = stop;
    const uint8_t *p = skip_space(start, stop);
    return *p == '{' && (p = object(p + 1, 0)) && skip_space(p, stop) == stop;
  }

  std::string_view text() const { return text_; }

private:
  // Each function takes the position of its first byte and returns the position after its last, or null.
  const uint8_t *object(const uint8_t *p, size_t level); // after its bracket
  const uint8_t *value(const uint8_t *p);
  const uint8_t *name(const uint8_t *p, std::string_view &name); // with the colon
  const uint8_t *string(const uint8_t *p, std::string_view &text);
  const uint8_t *number(const uint8_t *p);
  const uint8_t *digits(const uint8_t *p) {
    const uint8_t *const first = p;
    while (p < end_ && is_digit(*p))
      ++p;
    return p == first ? nullptr : p;
  }
  bool is_at(const uint8_t *p, char c) const { return p < end_ && *p == static_cast<uint8_t>(c); }

  const std::vector<std::string> &path_;
  const uint8_t *const readable_;
  const uint8_t *end_ = nullptr;
  std::vector<bool> open_; // whether each open container is an object. One bit each, for "[[[["
  std::string_view text_;
};

const uint8_t *Line::object(const uint8_t *p, size_t level) {
  bool has_member = false;
  for (;;) {
    std::string_view found;
    if (!(p = name(skip_space(p, end_), found)) || found.find('\\') != found.npos)
      return nullptr; // an escaped name may be on the path
    p = skip_space(p, end_);
    if (found != path_[level]) {
      p = value(p);
    } else if (has_member) {
      return nullptr;
    } else {
      has_member = true;
      if (level + 1 == path_.size())
        p = string(p, text_);
      else
        p = is_at(p, '{') ? object(p + 1, level + 1) : nullptr;
    }
    if (!p || (p = skip_space(p, end_)) == end_)
      return nullptr;
    if (*p == '}')
      return has_member ? p + 1 : nullptr;
    if (*p++ != ',')
      return nullptr;
  }
}

const uint8_t *Line::value(const uint8_t *p) {
  std::string_view ignored;
  open_.clear();
  for (;;) {
    if ((p = skip_space(p, end_)) == end_)
      return nullptr;
    bool is_empty = false;
    if (*p == '{' || *p == '[') {
      open_.push_back(*p == '{');
      p = skip_space(p + 1, end_);
      is_empty = is_at(p, open_.back() ? '}' : ']');
      if (!is_empty && open_.back())
        p = name(p, ignored);
      if (!p)
        return nullptr;
      if (!is_empty)
        continue;
    } else if (!(p = *p == '"' ? string(p, ignored) : number(p))) {
      return nullptr;
    }
    // A value has ended, or its container is empty.
    while (!open_.empty() && is_at(p = skip_space(p, end_), open_.back() ? '}' : ']')) {
      ++p;
      open_.pop_back();
    }
    if (open_.empty())
      return p;
    if (!is_at(p, ','))
      return nullptr;
    ++p;
    if (open_.back() && !(p = name(skip_space(p, end_), ignored)))
      return nullptr;
  }
}

const uint8_t *Line::name(const uint8_t *p, std::string_view &name) {
  if (!(p = string(p, name)))
    return nullptr;
  p = skip_space(p, end_);
  return is_at(p, ':') ? p + 1 : nullptr;
}

// A number or a literal: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
const uint8_t *Line::number(const uint8_t *p) {
  const std::string_view rest(reinterpret_cast<const char *>(p), static_cast<size_t>(end_ - p));
  for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity", "-Infinity"})
    if (rest.starts_with(word))
      return p + word.size();
  p += *p == '-';
  const uint8_t *const first = p;
  if (!(p = digits(p)) || (*first == '0' && p - first > 1))
    return nullptr;
  if (is_at(p, '.') && !(p = digits(p + 1)))
    return nullptr;
  if (p < end_ && (*p | 0x20) == 'e') {
    ++p;
    p = digits(p + (is_at(p, '+') || is_at(p, '-')));
  }
  return p;
}

// text: between the quotes, with its escapes, which are valid.
const uint8_t *Line::string(const uint8_t *p, std::string_view &text) {
  if (!is_at(p, '"'))
    return nullptr;
  const uint8_t *const start = ++p;
  for (;;) {
    while (readable_ - p >= block && *p != '\\') { // escapes often follow each other
      const ptrdiff_t plain = plain_bytes(p);
      p += plain;
      if (plain < block)
        break;
    }
    if (p >= end_ || *p < 0x20)
      return nullptr;
    if (*p == '"') {
      text = {reinterpret_cast<const char *>(start), static_cast<size_t>(p - start)};
      return p + 1;
    }
    if (*p++ != '\\')
      continue;
    if (p < end_ && *p == 'u' && end_ - p >= 5 && std::all_of(p + 1, p + 5, is_hex_digit))
      p += 5;
    else if (p < end_ && escape_codes.find(static_cast<char>(*p)) != escape_codes.npos)
      ++p;
    else
      return nullptr;
  }
}

uint32_t code_unit(const char *digits) {
  uint32_t unit = 0;
  for (int i = 0; i < 4; ++i) {
    const auto c = static_cast<uint8_t>(digits[i]);
    unit = unit << 4 | static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return unit;
}

// Copies a valid text with its escapes decoded. Returns the end of the copy, or null at an unpaired
// surrogate.
uint8_t *decode(std::string_view text, uint8_t *out) {
  for (;;) {
    const size_t plain = text.starts_with('\\') ? 0 : std::min(text.find('\\'), text.size());
    std::memcpy(out, text.data(), plain);
    out += plain;
    if (plain == text.size())
      return out;
    const char code = text[plain + 1];
    text.remove_prefix(plain + 2);
    if (code != 'u') {
      *out++ = static_cast<uint8_t>(escaped_characters[escape_codes.find(code)]);
      continue;
    }
    uint32_t character = code_unit(text.data());
    text.remove_prefix(4);
    if (character >= 0xD800 && character < 0xDC00 && text.starts_with("\\u")) {
      const uint32_t low = code_unit(text.data() + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
        text.remove_prefix(6);
      }
    }
    if (character >= 0xD800 && character < 0xE000)
      return nullptr;
    out += bpe::write_utf8(character, out);
  }
}

} // namespace

JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     size_t max_line_bytes, uint8_t *out) {
  JsonTexts texts;
  const uint8_t *const end = lines + size;
  const bool is_valid = bpe::validate_utf8(lines, size) == size;
  Line line(path, end);
  for (const uint8_t *start = lines; start < end;) {
    const void *const found = std::memchr(start, '\n', static_cast<size_t>(end - start));
    const uint8_t *const stop = found ? static_cast<const uint8_t *>(found) : end;
    const auto line_bytes = static_cast<size_t>(stop - start);
    const uint64_t number = texts.line_count++;
    uint8_t *text_end = nullptr;
    if (line_bytes <= max_line_bytes && skip_space(start, stop) == stop) {
      ++texts.blank_count;
    } else if (line_bytes <= max_line_bytes &&
               (is_valid || bpe::validate_utf8(start, line_bytes) == line_bytes) && line.parse(start, stop) &&
               (text_end = decode(line.text(), out + texts.text_bytes))) {
      texts.text_bytes = static_cast<size_t>(text_end - out);
      texts.offsets.push_back(texts.text_bytes);
      texts.line_starts.push_back(static_cast<uint64_t>(start - lines));
      texts.line_numbers.push_back(number);
    } else {
      texts.left.insert(texts.left.end(),
                        {static_cast<uint64_t>(start - lines), static_cast<uint64_t>(stop - lines), number});
    }
    start = stop + 1;
  }
  return texts;
}

} // namespace corpus
