#include "text/json_lines.hpp"
#include "text/json_scan.hpp"

namespace bpe {

namespace {

// One line; gives up at the first fault. Functions return whether to go on.
class Line : public JsonScanner {
public:
  Line(const uint8_t *start, const uint8_t *end, const uint8_t *readable, bool replace_surrogates)
      : JsonScanner(replace_surrogates), readable_(readable) {
    p_ = start;
    end_ = end;
  }

  const uint8_t *out() const { return out_; } // the end of the text

  bool take(const std::vector<std::string> &path, uint8_t *out, std::vector<uint8_t> &nesting,
            std::string &name) {
    path_ = &path;
    out_ = out;
    nesting_ = &nesting;
    name_ = &name;
    space();
    const uint8_t *const start = p_;
    if (p_ == end_ || (*p_ != '{' && (*p_ != '[' || json_index_of(path[0]) == SIZE_MAX)))
      // First see whether it is JSON at all: that is the better thing to say.
      return value() && (space(), p_ == end_ || fail(JsonFault::trailing, p_)) &&
             fail(JsonFault::not_object, start);
    if (!follow(0))
      return false;
    space();
    if (p_ != end_)
      return fail(JsonFault::trailing, p_);
    return found_ || fail(JsonFault::missing, start);
  }

private:
  bool expect(uint8_t c) {
    space();
    if (p_ == end_ || *p_ != c)
      return fail(JsonFault::syntax, p_);
    ++p_;
    return true;
  }

  bool digits() {
    const uint8_t *const start = p_;
    while (p_ < end_ && is_json_digit(*p_))
      ++p_;
    return p_ > start || fail(JsonFault::number, p_);
  }

  bool number() {
    if (*p_ == '-')
      ++p_;
    if (p_ < end_ && *p_ == '0') {
      ++p_;
      if (p_ < end_ && is_json_digit(*p_))
        return fail(JsonFault::number, p_);
    } else if (!digits()) {
      return false;
    }
    if (p_ < end_ && *p_ == '.' && (++p_, !digits()))
      return false;
    if (p_ < end_ && (*p_ | 0x20) == 'e') {
      ++p_;
      if (p_ < end_ && (*p_ == '+' || *p_ == '-'))
        ++p_;
      return digits();
    }
    return true;
  }

  // A string at p_, behind its quote, to `out` unless that is null; p_ comes behind the closing quote.
  bool string(uint8_t *&out, bool is_text) {
    for (;;) {
      plain_blocks(readable_, out);
      if (p_ >= end_)
        return fail(JsonFault::cut, end_);
      const uint8_t c = *p_++;
      if (c == '"')
        return true;
      if (c == '\\') {
        if (!escape(out, is_text))
          return false;
      } else if (c < 0x20) {
        return fail(JsonFault::control, p_ - 1);
      } else if (out) {
        *out++ = c;
      }
    }
  }

  bool skip_string() {
    uint8_t *nowhere = nullptr;
    return string(nowhere, false);
  }

  // A value of any kind, checked and passed over. Open lists and objects are kept in nesting_, not on the
  // stack.
  bool value() {
    nesting_->clear();
    for (;;) { // at the start of a value
      space();
      if (p_ == end_)
        return fail(JsonFault::cut, p_);
      const uint8_t c = *p_;
      if (c == '{' || c == '[') {
        ++p_;
        space();
        if (p_ < end_ && *p_ == c + 2) { // "{}" and "[]" are two apart in ASCII
          ++p_;
        } else {
          nesting_->push_back(c);
          if (c == '{' && !name())
            return false;
          continue;
        }
      } else if (!scalar(c)) {
        return false;
      }
      for (;;) { // behind a value
        if (nesting_->empty())
          return true;
        space();
        if (p_ == end_)
          return fail(JsonFault::cut, p_);
        const uint8_t open = nesting_->back();
        if (*p_ == ',') {
          ++p_;
          if (open == '{' && !name())
            return false;
          break;
        }
        if (*p_ != open + 2)
          return fail(JsonFault::syntax, p_);
        ++p_;
        nesting_->pop_back();
      }
    }
  }

  bool scalar(uint8_t c) {
    if (c == '"')
      return ++p_, skip_string();
    if (c == '-' || is_json_digit(c))
      return number();
    if (c == 't')
      return literal("true");
    if (c == 'f')
      return literal("false");
    if (c == 'n')
      return literal("null");
    return fail(JsonFault::syntax, p_);
  }

  bool name() { return expect('"') && skip_string() && expect(':'); }

  // A name, and whether it is `wanted`.
  bool name(const std::string &wanted, bool &is_wanted) {
    if (!expect('"'))
      return false;
    // Nearly always it is written without escapes: compared where it stands.
    const uint8_t *const start = p_;
    if (!skip_string())
      return false;
    const size_t size = static_cast<size_t>(p_ - 1 - start);
    is_wanted = size == wanted.size() && std::memcmp(start, wanted.data(), size) == 0;
    if (!is_wanted && std::memchr(start, '\\', size)) {
      name_->resize(size + json_block);
      uint8_t *const unescaped = reinterpret_cast<uint8_t *>(name_->data());
      uint8_t *stop = unescaped;
      const uint8_t *const behind = p_;
      p_ = start;
      if (!string(stop, false))
        return false;
      p_ = behind;
      const size_t length = static_cast<size_t>(stop - unescaped);
      is_wanted = length == wanted.size() && std::memcmp(unescaped, wanted.data(), length) == 0;
    }
    return expect(':');
  }

  // The value at p_ has the first `depth` names of the path.
  bool follow(size_t depth) {
    space();
    if (p_ == end_)
      return fail(JsonFault::cut, p_);
    if (depth == path_->size())
      return text();
    const std::string &wanted = (*path_)[depth];
    const uint8_t open = *p_;
    const size_t index = open == '[' ? json_index_of(wanted) : SIZE_MAX;
    if (open != '{' && index == SIZE_MAX)
      return value();
    ++p_;
    space();
    if (p_ < end_ && *p_ == open + 2)
      return ++p_, true;
    bool seen = false;
    for (size_t i = 0;; ++i) {
      space();
      const uint8_t *const start = p_;
      bool is_wanted = i == index;
      if (open == '{' && !name(wanted, is_wanted))
        return false;
      if (is_wanted && seen)
        return fail(JsonFault::twice, start);
      seen |= is_wanted;
      if (is_wanted ? !follow(depth + 1) : !value())
        return false;
      space();
      if (p_ == end_)
        return fail(JsonFault::cut, p_);
      if (*p_ == open + 2)
        return ++p_, true;
      if (*p_ != ',')
        return fail(JsonFault::syntax, p_);
      ++p_;
    }
  }

  bool text() {
    const uint8_t c = *p_;
    if (c == '"') {
      ++p_;
      found_ = true;
      return string(out_, true);
    }
    const uint8_t *const start = p_;
    if (!value())
      return false;
    return fail(c == 'n'               ? JsonFault::is_null
                : c == 't' || c == 'f' ? JsonFault::is_bool
                : c == '['             ? JsonFault::is_list
                : c == '{'             ? JsonFault::is_object
                                       : JsonFault::is_number,
                start);
  }

  const uint8_t *const readable_;
  const std::vector<std::string> *path_ = nullptr;
  uint8_t *out_ = nullptr;
  std::vector<uint8_t> *nesting_ = nullptr;
  std::string *name_ = nullptr;
  bool found_ = false;
};

bool is_blank(const uint8_t *start, const uint8_t *end) {
  return std::all_of(start, end, [](uint8_t c) { return c == ' ' || c == '\t' || c == '\r'; });
}

} // namespace

JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     bool replace_surrogates, size_t max_line_bytes, uint8_t *out) {
  JsonTexts texts;
  std::vector<uint8_t> nesting;
  std::string name;
  const uint8_t *const end = lines + size;
  for (const uint8_t *start = lines; start < end;) {
    const void *const found = std::memchr(start, '\n', static_cast<size_t>(end - start));
    const uint8_t *const stop = found ? static_cast<const uint8_t *>(found) : end;
    ++texts.line_count;
    if (is_blank(start, stop)) {
      ++texts.blank_count;
    } else if (static_cast<size_t>(stop - start) > max_line_bytes) {
      const auto place = static_cast<uint64_t>(start - lines);
      texts.bad.push_back({place, static_cast<uint64_t>(stop - lines), place, JsonFault::too_long});
    } else {
      Line line(start, stop, end, replace_surrogates);
      if (line.take(path, out + texts.text_bytes, nesting, name)) {
        texts.text_bytes = static_cast<size_t>(line.out() - out);
        texts.offsets.push_back(texts.text_bytes);
        texts.line_starts.push_back(static_cast<uint64_t>(start - lines));
        texts.replaced += line.replaced();
      } else {
        texts.bad.push_back({static_cast<uint64_t>(start - lines), static_cast<uint64_t>(stop - lines),
                             static_cast<uint64_t>(line.place() - lines), line.fault()});
      }
    }
    start = stop + 1;
  }
  return texts;
}

} // namespace bpe
