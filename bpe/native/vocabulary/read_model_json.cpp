// Scanner for model.vocab and model.merges of a tokenizer.json.
//
//   for each member of the document:  skip it, except "model"
//   for each member of the model:     skip it, except "vocab" and "merges"
//   vocab:   { string : ID , ... }               -> entries
//   merges:  [ [string, string] | "a b" , ... ]  -> merge parts
//
// Skipped values are only scanned for strings and brackets: Python parses them from the outline and reports
// their errors.
#include "text/utf8.hpp"
#include "vocabulary/byte_alphabet.hpp"
#include "vocabulary/entry_file.hpp"

#include <algorithm>

namespace bpe {

namespace model_json {

inline bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Reads JSON from left to right. After a call that returns false, the scanner is at the error.
class Scanner {
public:
  explicit Scanner(std::string_view text) : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  size_t offset() const { return static_cast<size_t>(at_ - begin_); }
  void go_to(size_t offset) { at_ = begin_ + offset; }
  size_t next_offset() { // of the next character other than white space
    while (at_ != end_ && is_space(*at_))
      ++at_;
    return offset();
  }
  bool accept(char c) {
    next_offset();
    if (at_ == end_ || *at_ != c)
      return false;
    ++at_;
    return true;
  }

  // Append the text of a string.
  bool string(std::string &out) {
    if (!accept('"'))
      return false;
    for (;;) {
      const char *const plain = at_;
      while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<uint8_t>(*at_) >= 0x20)
        ++at_;
      out.append(plain, at_);
      if (at_ == end_ || static_cast<uint8_t>(*at_) < 0x20)
        return false;
      if (*at_++ == '"')
        return true;
      if (!escape(out))
        return false;
    }
  }

  // An integer in [0, 2^31 - 1].
  bool id(uint32_t &value) {
    next_offset();
    const char *const start = at_;
    uint64_t number = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - start < 11)
      number = number * 10 + static_cast<uint64_t>(*at_++ - '0');
    if (at_ == start || (*start == '0' && at_ - start > 1) || number > INT32_MAX)
      return false;
    value = static_cast<uint32_t>(number);
    return at_ != end_ && *at_ != '.' && *at_ != 'e' && *at_ != 'E';
  }

  bool skip_value() {
    next_offset();
    size_t depth = 0;
    do {
      if (at_ == end_)
        return false;
      const char c = *at_++;
      if (c == '"') {
        if (!skip_string())
          return false;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0)
          return false;
        --depth;
      } else if (depth == 0) {
        while (at_ != end_ && *at_ != ',' && *at_ != '}' && *at_ != ']' && !is_space(*at_))
          ++at_;
      }
    } while (depth > 0);
    return true;
  }

private:
  bool skip_string() { // after the opening quote
    for (; at_ != end_; ++at_) {
      if (*at_ == '\\') {
        if (++at_ == end_)
          return false;
      } else if (*at_ == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }

  bool hex4(uint32_t &value) {
    value = 0;
    if (end_ - at_ < 4)
      return false;
    for (int i = 0; i < 4; ++i) {
      const char c = *at_++;
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0)
        return false;
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    return true;
  }

  bool escape(std::string &out) { // after the backslash
    static constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    if (at_ == end_)
      return false;
    if (const size_t known = names.find(*at_); known != std::string_view::npos) {
      ++at_;
      out += characters[known];
      return true;
    }
    uint32_t unit, low;
    if (*at_++ != 'u' || !hex4(unit) || (unit >= 0xDC00 && unit < 0xE000))
      return false;
    if (unit >= 0xD800 && unit < 0xE000) { // the first half of a surrogate pair
      if (end_ - at_ < 6 || *at_++ != '\\' || *at_++ != 'u' || !hex4(low) || low < 0xDC00 || low >= 0xE000)
        return false;
      unit = 0x10000 + ((unit - 0xD800) << 10 | (low - 0xDC00));
    }
    uint8_t bytes[4];
    out.append(reinterpret_cast<const char *>(bytes), write_utf8(unit, bytes));
    return true;
  }

  const char *const begin_;
  const char *at_;
  const char *const end_;
};

// Append the bytes that characters of the byte alphabet spell, or return false for another character.
inline bool append_spelled(std::string &out, std::string_view characters) {
  const uint8_t *at = bytes_of(characters);
  for (const uint8_t *const end = at + characters.size(); at != end;) {
    const Char c = read_char(at, end);
    if (c.code_point >= ByteAlphabet::end || byte_alphabet.byte_of[c.code_point] < 0)
      return false;
    out += static_cast<char>(byte_alphabet.byte_of[c.code_point]);
    at += c.length;
  }
  return true;
}

} // namespace model_json

// Reads one document into an EntryFile. After a malformed item, the rest of its value is skipped.
class ModelReader {
public:
  ModelReader(std::string_view document, EntryFile &file) : scanner_(document), file_(file) {}

  void read() {
    members([&](const std::string &name) { return name == "model" ? model() : scanner_.skip_value(); });
  }

private:
  template <class Member> bool members(const Member &member) { // of an object; stops reading after it
    if (!scanner_.accept('{'))
      return false;
    std::string name;
    do {
      name.clear();
      if (!scanner_.string(name) || !scanner_.accept(':') || !member(name))
        return false;
    } while (scanner_.accept(','));
    return scanner_.accept('}');
  }

  bool model() {
    scanner_.next_offset();
    return members([&](const std::string &name) {
      if (name == "vocab" && file_.vocab_.stop == 0)
        return value(file_.vocab_, [&] { return vocab(); });
      if (name == "merges" && file_.merges_.stop == 0)
        return value(file_.merges_, [&] { return merges(); });
      return scanner_.skip_value(); // Python reports the duplicate
    });
  }

  template <class Read> bool value(EntryFile::Span &span, const Read &read) {
    const Fault before = file_.fault_;
    const size_t start = scanner_.next_offset();
    if (!read()) {
      const size_t error = scanner_.offset();
      scanner_.go_to(start);
      if (!scanner_.skip_value() || file_.fault_.kind == Fault::none) {
        file_.fault_ = {Fault::json, 0, error, error, {}};
        return false;
      }
    }
    span = {start, scanner_.offset()};
    if (before.kind != Fault::none)
      file_.fault_ = before;
    return true;
  }

  // Record that the value at `start` is malformed, if it is a complete value.
  bool fail(Fault::Kind kind, size_t start, size_t index = 0, std::string_view name = {}) {
    const size_t error = scanner_.offset();
    scanner_.go_to(start);
    if (scanner_.skip_value())
      file_.fault_ = {kind, index, start, scanner_.offset(), std::string(name)};
    else
      scanner_.go_to(error);
    return false;
  }

  bool vocab() {
    if (const size_t start = scanner_.next_offset(); !scanner_.accept('{'))
      return fail(Fault::vocab, start);
    if (scanner_.accept('}'))
      return true;
    EntryList &entries = file_.entries_;
    do {
      const size_t before = entries.bytes.size();
      if (const size_t start = scanner_.next_offset(); !scanner_.string(entries.bytes))
        return fail(Fault::key, start);
      if (!scanner_.accept(':'))
        return false;
      uint32_t id;
      if (const size_t start = scanner_.next_offset(); !scanner_.id(id))
        return fail(Fault::id, start, 0, std::string_view(entries.bytes).substr(before));
      if (entries.bytes.size() == before)
        file_.texts_.emplace_back("", id);
      else
        entries.add(id);
    } while (scanner_.accept(','));
    return scanner_.accept('}');
  }

  bool merges() {
    file_.has_merges_ = true;
    if (const size_t start = scanner_.next_offset(); !scanner_.accept('['))
      return fail(Fault::merges, start);
    if (scanner_.accept(']'))
      return true;
    do {
      const size_t start = scanner_.next_offset(), index = file_.merge_ends_.size() / 2;
      uint64_t left_end = 0;
      if (!(scanner_.accept('[') ? merge_pair(left_end) : merge_line(left_end)))
        return fail(Fault::merge, start, index);
      file_.merge_ends_.push_back(left_end);
      file_.merge_ends_.push_back(file_.merge_bytes_.size());
    } while (scanner_.accept(','));
    return scanner_.accept(']');
  }

  bool merge_pair(uint64_t &left_end) {
    std::string &bytes = file_.merge_bytes_;
    if (!scanner_.string(bytes) || !scanner_.accept(','))
      return false;
    left_end = bytes.size();
    return scanner_.string(bytes) && scanner_.accept(']');
  }

  bool merge_line(uint64_t &left_end) { // "left right", with one space
    std::string &bytes = file_.merge_bytes_;
    const size_t start = bytes.size();
    if (!scanner_.string(bytes))
      return false;
    left_end = bytes.find(' ', start);
    if (left_end == std::string::npos || left_end == start || left_end + 1 == bytes.size() ||
        bytes.find(' ', left_end + 1) != std::string::npos)
      return false;
    bytes.erase(left_end, 1);
    return true;
  }

  model_json::Scanner scanner_;
  EntryFile &file_;
};

EntryFile EntryFile::from_model_json(std::string_view document) {
  EntryFile file;
  const size_t valid = validate_utf8(bytes_of(document), document.size());
  if (valid < document.size())
    file.fault_ = {Fault::utf8, 0, valid, valid, {}};
  else
    ModelReader(document, file).read();
  return file;
}

std::string EntryFile::outline(std::string_view document) const {
  struct Part {
    Span span;
    std::string_view stand_in;
  } parts[] = {{vocab_, "{}"}, {merges_, "[]"}};
  if (parts[1].span.start < parts[0].span.start)
    std::swap(parts[0], parts[1]);
  std::string out;
  size_t from = 0;
  for (const auto &[span, stand_in] : parts) {
    if (span.stop == 0)
      continue;
    const std::string_view value = document.substr(span.start, span.stop - span.start);
    out.append(document.substr(from, span.start - from));
    out.append(static_cast<size_t>(std::count(value.begin(), value.end(), '\n')), '\n').append(stand_in);
    from = span.stop;
  }
  return out.append(document.substr(from));
}

std::optional<size_t> EntryFile::spell_bytes() {
  EntryList spelled;
  spelled.bytes.reserve(entries_.bytes.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const size_t before = spelled.bytes.size();
    if (model_json::append_spelled(spelled.bytes, entries_[i])) {
      spelled.add(entries_.ids[i]);
    } else {
      spelled.bytes.resize(before);
      texts_.emplace_back(entries_[i], entries_.ids[i]);
    }
  }
  std::string bytes;
  bytes.reserve(merge_bytes_.size());
  std::vector<uint64_t> ends;
  ends.reserve(merge_ends_.size());
  for (size_t i = 0; i < merge_ends_.size(); ++i) {
    if (!model_json::append_spelled(bytes, merge_part(i)))
      return i;
    ends.push_back(bytes.size());
  }
  entries_ = std::move(spelled);
  merge_bytes_ = std::move(bytes);
  merge_ends_ = std::move(ends);
  return std::nullopt;
}

} // namespace bpe
