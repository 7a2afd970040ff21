// Each line goes through one loop without recursion, so nesting cannot exhaust the stack:
//
//   value: a scalar is skipped (or copied to `out`, if the path ends here) -> end
//          { or [ is pushed; -> name, value or close
//   end:   , -> name or value;   } or ] -> close;   end of the line if nothing is open
//   close: pop -> end
//
// The path is followed alongside: the outermost `followed` open containers are on the path.
#include "json_lines.hpp"

#include "common/byte_vector.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace corpus {

namespace {

constexpr ptrdiff_t block = 16;

const uint8_t *skip_space(const uint8_t *p, const uint8_t *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
    ++p;
  return p;
}

bool is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

const uint8_t *skip_digits(const uint8_t *p, const uint8_t *end) {
  while (p < end && is_digit(*p))
    ++p;
  return p;
}

int hex_digit(uint8_t c) {
  if (is_digit(c))
    return c - '0';
  const uint8_t letter = c | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// The number of bytes, up to 16, before the first quote, backslash or control character.
ptrdiff_t plain_bytes(const uint8_t *p) {
  using bpe::ByteVector;
  const ByteVector bytes = bpe::load_bytes(p);
  const uint32_t mask =
      bpe::mask_of(ByteVector(bytes == '"') | ByteVector(bytes == '\\') | ByteVector(bytes < 0x20));
  return mask == 0 ? block : std::countr_zero(mask);
}

// An index as in RFC 6901: decimal, without leading zeros. SIZE_MAX if `name` is not an index.
size_t index_of(const std::string &name) {
  const bool all_digits = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (name.empty() || name.size() > 18 || (name[0] == '0' && name.size() > 1) || !all_digits)
    return SIZE_MAX;
  return std::stoull(name);
}

class Line {
public:
  // readable: end of the buffer; up to 16 bytes after a line are read, but not beyond the buffer.
  Line(const std::vector<std::string> &path, bool replace_surrogates, const uint8_t *readable)
      : path_(path), replace_surrogates_(replace_surrogates), readable_(readable), levels_(path.size()) {}

  // Parses the line [start, stop), without its LF, and moves `out` past its text. False at a fault.
  bool parse(const uint8_t *start, const uint8_t *stop, uint8_t *&out);

  JsonFault fault() const { return fault_; }
  const uint8_t *fault_at() const { return fault_at_; }
  uint64_t replaced() const { return replaced_; }

private:
  // An open container on the path.
  struct Level {
    bool has_member = false; // the member that the path names was found
    size_t item = 0, wanted_item = SIZE_MAX;
  };

  // Each function below takes a position in the line and returns the position it parsed to, or null at a
  // fault.
  const uint8_t *scalar(const uint8_t *p);
  const uint8_t *number(const uint8_t *p);
  template <bool writes> const uint8_t *string(const uint8_t *p, uint8_t *&out, bool is_text);
  const uint8_t *escape(const uint8_t *p, uint8_t *&out, bool is_text);
  const uint8_t *code_unit(const uint8_t *p, uint32_t &unit);
  const uint8_t *name(const uint8_t *p, uint8_t *out);
  const uint8_t *fail(JsonFault fault, const uint8_t *at) {
    fault_ = at >= end_ ? JsonFault::cut : fault;
    fault_at_ = std::min(at, end_);
    return nullptr;
  }

  bool is_followed() const { return open_.size() == followed_ && followed_ != 0; }
  Level &level() { return levels_[followed_ - 1]; }

  const std::vector<std::string> &path_;
  const bool replace_surrogates_;
  const uint8_t *const readable_;
  const uint8_t *end_ = nullptr;
  std::vector<bool> open_; // the open containers: whether each is an object. One bit each, for "[[[["
  std::vector<Level> levels_;
  size_t followed_ = 0;
  bool is_wanted_ = false; // the next value is where the path leads
  JsonFault fault_ = JsonFault::none;
  const uint8_t *fault_at_ = nullptr;
  uint64_t replaced_ = 0;
};

bool Line::parse(const uint8_t *start, const uint8_t *stop, uint8_t *&out) {
  end_ = stop;
  open_.clear();
  followed_ = 0;
  fault_ = JsonFault::none;
  replaced_ = 0;
  is_wanted_ = true;
  bool has_text = false, is_root_followed = false;
  // A value at the path that is not a string is a fault, reported when the value has ended without another
  // fault.
  JsonFault other_kind = JsonFault::none;
  const uint8_t *other_at = nullptr;
  size_t other_depth = 0;
  const uint8_t *const root = skip_space(start, stop);
  const uint8_t *p = root;

value:
  if ((p = skip_space(p, stop)) == stop)
    return fail(JsonFault::cut, p);
  if (is_wanted_ && open_.size() == path_.size()) {
    is_wanted_ = false;
    if (*p == '"') {
      has_text = true;
      if (!(p = string<true>(p + 1, out, true)))
        return false;
      goto end;
    }
    other_kind = *p == 'n'                ? JsonFault::is_null
                 : *p == 't' || *p == 'f' ? JsonFault::is_bool
                 : *p == '['              ? JsonFault::is_list
                 : *p == '{'              ? JsonFault::is_object
                                          : JsonFault::is_number;
    other_depth = open_.size();
    other_at = p;
  }
  if (*p == '{' || *p == '[') {
    const bool is_object = *p == '{';
    const size_t item = is_wanted_ && !is_object ? index_of(path_[open_.size()]) : SIZE_MAX;
    open_.push_back(is_object);
    if (is_wanted_ && (is_object || item != SIZE_MAX)) {
      is_root_followed = true;
      levels_[followed_++] = {false, 0, item};
    }
    is_wanted_ = item == 0;
    if ((p = skip_space(p + 1, stop)) == stop)
      return fail(JsonFault::cut, p);
    if (*p == (is_object ? '}' : ']'))
      goto close;
    if (is_object)
      goto name;
    goto value;
  }
  is_wanted_ = false;
  if (!(p = scalar(p)))
    return false;
  goto end;

name:
  if (!(p = name(p, out)))
    return false;
  goto value;

close:
  ++p;
  open_.pop_back();
  followed_ = std::min(followed_, open_.size());

end:
  if (other_kind != JsonFault::none && open_.size() == other_depth)
    return fail(other_kind, other_at);
  p = skip_space(p, stop);
  if (open_.empty()) {
    if (p != stop)
      return fail(JsonFault::trailing, p);
    if (!is_root_followed)
      return fail(JsonFault::not_object, root);
    return has_text || fail(JsonFault::missing, root);
  }
  if (p < stop && *p == (open_.back() ? '}' : ']'))
    goto close;
  if (p == stop || *p != ',')
    return fail(JsonFault::syntax, p);
  p = skip_space(p + 1, stop);
  if (open_.back())
    goto name;
  is_wanted_ = is_followed() && ++level().item == level().wanted_item;
  goto value;
}

// A name and its colon. is_wanted_: the path has this name. out: scratch space.
const uint8_t *Line::name(const uint8_t *p, uint8_t *out) {
  const uint8_t *const start = p + 1;
  is_wanted_ = false;
  if (p == end_ || *p != '"')
    return fail(JsonFault::syntax, p);
  bool matches = false;
  if (!is_followed()) {
    p = string<false>(start, out, false);
  } else {
    uint8_t *stop = out;
    p = string<true>(start, stop, false);
    const std::string &wanted = path_[followed_ - 1];
    const size_t size = static_cast<size_t>(stop - out);
    // Without escapes the name can be compared in the line, which is faster than comparing the copy.
    matches = p && size == wanted.size() &&
              std::memcmp(wanted.data(), p - start == stop - out + 1 ? start : out, size) == 0;
  }
  if (!p)
    return nullptr;
  if ((p = skip_space(p, end_)) == end_ || *p != ':')
    return fail(JsonFault::syntax, p);
  if (!matches)
    return p + 1;
  if (level().has_member)
    return fail(JsonFault::twice, start - 1);
  is_wanted_ = level().has_member = true;
  return p + 1;
}

// A string, a number or a literal.
const uint8_t *Line::scalar(const uint8_t *p) {
  uint8_t *nowhere = nullptr;
  if (*p == '"')
    return string<false>(p + 1, nowhere, false);
  if (is_digit(*p) || (*p == '-' && (end_ - p < 2 || p[1] != 'I')))
    return number(p);
  for (const char *word : {"true", "false", "null", "NaN", "Infinity", "-Infinity"}) {
    if (*p != static_cast<uint8_t>(*word))
      continue;
    for (; *word; ++word, ++p)
      if (p == end_ || *p != static_cast<uint8_t>(*word))
        return fail(JsonFault::syntax, p);
    return p;
  }
  return fail(JsonFault::syntax, p);
}

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
const uint8_t *Line::number(const uint8_t *p) {
  p += *p == '-';
  if (p == end_ || !is_digit(*p))
    return fail(JsonFault::number, p);
  const bool is_zero = *p == '0';
  const uint8_t *const first = p;
  p = skip_digits(p, end_);
  if (is_zero && p - first > 1)
    return fail(JsonFault::number, first + 1);
  if (p < end_ && *p == '.') {
    if (++p == end_ || !is_digit(*p))
      return fail(JsonFault::number, p);
    p = skip_digits(p, end_);
  }
  if (p < end_ && (*p | 0x20) == 'e') {
    ++p;
    p += p < end_ && (*p == '+' || *p == '-');
    if (p == end_ || !is_digit(*p))
      return fail(JsonFault::number, p);
    p = skip_digits(p, end_);
  }
  return p;
}

// A string from after its opening quote to after its closing quote, copied to `out` if `writes`. Whole blocks
// are copied, hence json_text_room.
template <bool writes> inline const uint8_t *Line::string(const uint8_t *p, uint8_t *&out, bool is_text) {
  const uint8_t *const end = end_, *const readable = readable_;
  uint8_t *to = out;
  for (;;) {
    while (readable - p >= block) {
      const ptrdiff_t plain = plain_bytes(p);
      if constexpr (writes) {
        std::memcpy(to, p, block);
        to += plain;
      }
      p += plain;
      if (plain < block)
        break;
    }
    if (p >= end)
      return fail(JsonFault::cut, end);
    const uint8_t c = *p;
    if (c == '"')
      break;
    if (c == '\\') {
      uint8_t character[4], *stop = character;
      if (!(p = escape(p, writes ? to : stop, is_text)))
        return nullptr;
      continue;
    }
    if (c < 0x20)
      return fail(JsonFault::control, p);
    if constexpr (writes)
      *to++ = c;
    ++p;
  }
  if constexpr (writes)
    out = to;
  return p + 1;
}

// An escape sequence from its backslash on, decoded to `out`.
const uint8_t *Line::escape(const uint8_t *p, uint8_t *&out, bool is_text) {
  const uint8_t *const start = p++;
  if (p == end_)
    return fail(JsonFault::cut, p);
  static constexpr char codes[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
  const uint8_t c = *p++;
  if (c != 'u') {
    const void *const known = std::memchr(codes, c, sizeof codes - 1);
    if (!known)
      return fail(JsonFault::escape, start);
    *out++ = static_cast<uint8_t>(characters[static_cast<const char *>(known) - codes]);
    return p;
  }
  uint32_t code, low;
  if (!(p = code_unit(p, code)))
    return nullptr;
  if (code >= 0xD800 && code < 0xDC00 && end_ - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const uint8_t *const next = code_unit(p + 2, low);
    if (!next)
      return nullptr;
    if (low >= 0xDC00 && low < 0xE000) { // otherwise the second escape is decoded on its own
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      p = next;
    }
  }
  if (code >= 0xD800 && code < 0xE000 && is_text) {
    if (!replace_surrogates_)
      return fail(JsonFault::surrogate, start);
    code = 0xFFFD;
    ++replaced_;
  }
  out += bpe::write_utf8(code, out); // an unpaired surrogate in a name becomes bytes that no path has
  return p;
}

// The four hexadecimal digits after \u.
const uint8_t *Line::code_unit(const uint8_t *p, uint32_t &unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++p) {
    const int digit = p < end_ ? hex_digit(*p) : -1;
    if (digit < 0)
      return fail(JsonFault::escape, p);
    unit = unit << 4 | static_cast<uint32_t>(digit);
  }
  return p;
}

} // namespace

JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     bool replace_surrogates, size_t max_line_bytes, uint8_t *out) {
  JsonTexts texts;
  const uint8_t *const end = lines + size;
  Line line(path, replace_surrogates, end);
  for (const uint8_t *start = lines; start < end;) {
    const void *const found = std::memchr(start, '\n', static_cast<size_t>(end - start));
    const uint8_t *const stop = found ? static_cast<const uint8_t *>(found) : end;
    const auto offset_of = [lines](const uint8_t *p) { return static_cast<uint64_t>(p - lines); };
    ++texts.line_count;
    if (skip_space(start, stop) == stop) {
      ++texts.blank_count;
    } else if (static_cast<size_t>(stop - start) > max_line_bytes) {
      texts.bad.push_back({offset_of(start), offset_of(stop), offset_of(start), JsonFault::too_long});
    } else if (uint8_t *text_end = out + texts.text_bytes; line.parse(start, stop, text_end)) {
      texts.text_bytes = static_cast<size_t>(text_end - out);
      texts.offsets.push_back(texts.text_bytes);
      texts.line_starts.push_back(offset_of(start));
      texts.replaced += line.replaced();
    } else {
      texts.bad.push_back({offset_of(start), offset_of(stop), offset_of(line.fault_at()), line.fault()});
    }
    start = stop + 1;
  }
  return texts;
}

} // namespace corpus
