// tokenizer.json without an object an entry: a walk to model.vocab and model.merges, and their plain grammar.
#include "text/utf8.hpp"
#include "vocabulary/byte_alphabet.hpp"
#include "vocabulary/entry_list.hpp"

namespace bpe {

namespace {

constexpr uint32_t no_character = UINT32_MAX;

void append_utf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 63));
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

// Reads JSON from left to right. Every call that returns false leaves the reader of no further use.
class Scanner {
public:
  Scanner(std::string_view text, Spelling spelling)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), is_text_(spelling == Spelling::text) {}

  size_t place() const { return static_cast<size_t>(at_ - begin_); }
  void go_to(size_t place) { at_ = begin_ + place; }
  bool take(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c)
      return false;
    ++at_;
    return true;
  }
  // The place of the next character that is no space.
  size_t start_of_value() {
    skip_space();
    return place();
  }

  // A string in the byte alphabet, its bytes appended to `out`. One with other characters appends nothing to
  // `out` but its text to `text`, which is cleared first. Where entries are text, the text as it is.
  bool entry(std::string &out, std::string &text, bool &in_alphabet) {
    if (!take('"'))
      return false;
    if (is_text_) {
      in_alphabet = true;
      return append_string(out);
    }
    const char *const start = at_;
    const size_t before = out.size();
    for (uint32_t c; (c = character()) != '"' || escaped_;) {
      if (c == no_character)
        return false;
      if (c >= ByteAlphabet::end || byte_alphabet.byte_of[c] < 0) {
        out.resize(before);
        in_alphabet = false;
        at_ = start;
        return whole_string(text);
      }
      out += static_cast<char>(byte_alphabet.byte_of[c]);
    }
    in_alphabet = true;
    return true;
  }

  // "left right", spelled in the same way.
  bool merge_line(std::string &out, uint64_t &left_end) {
    if (!take('"'))
      return false;
    const size_t before = out.size();
    size_t spaces = 0;
    for (uint32_t c; (c = character()) != '"' || escaped_;) {
      if (c == ' ' && ++spaces == 1) {
        left_end = out.size();
        continue;
      }
      if (is_text_) {
        if (c == no_character)
          return false;
        append_utf8(out, c);
        continue;
      }
      if (c >= ByteAlphabet::end || byte_alphabet.byte_of[c] < 0)
        return false;
      out += static_cast<char>(byte_alphabet.byte_of[c]);
    }
    return spaces == 1 && left_end > before && out.size() > left_end;
  }

  // A whole number up to 2^31 - 1 as JSON writes it.
  bool id(uint32_t &value) {
    skip_space();
    const char *const start = at_;
    uint64_t number = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - start < 11)
      number = number * 10 + static_cast<uint64_t>(*at_++ - '0');
    if (at_ == start || (*start == '0' && at_ - start > 1) || number > INT32_MAX)
      return false;
    value = static_cast<uint32_t>(number);
    return at_ != end_ && *at_ != '.' && *at_ != 'e' && *at_ != 'E';
  }

  bool whole_string(std::string &text) { // behind the opening quote
    text.clear();
    return append_string(text);
  }
  bool append_string(std::string &text) {
    for (uint32_t c; (c = character()) != '"' || escaped_;) {
      if (c == no_character)
        return false;
      append_utf8(text, c);
    }
    return true;
  }

  // Passes over a value of any kind, looking at strings and brackets only.
  bool skip_value() {
    skip_space();
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
        while (at_ != end_ && *at_ != ',' && *at_ != '}' && *at_ != ']' && *at_ != ' ' && *at_ != '\n' &&
               *at_ != '\r' && *at_ != '\t')
          ++at_;
      }
    } while (depth > 0);
    return true;
  }

private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t'))
      ++at_;
  }
  bool skip_string() { // behind the opening quote
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

  // The next character of a string, or no_character; a '"' that is not escaped_ ends it.
  uint32_t character() {
    escaped_ = false;
    if (at_ == end_)
      return no_character;
    const uint8_t lead = static_cast<uint8_t>(*at_);
    if (lead >= 0x80) {
      const Char c =
          read_char(reinterpret_cast<const uint8_t *>(at_), reinterpret_cast<const uint8_t *>(end_));
      at_ += c.length;
      return c.code_point;
    }
    ++at_;
    if (lead != '\\')
      return lead < 0x20 ? no_character : lead;
    escaped_ = true;
    if (at_ == end_)
      return no_character;
    switch (*at_++) {
    case '"':
      return '"';
    case '\\':
      return '\\';
    case '/':
      return '/';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'u':
      break;
    default:
      return no_character;
    }
    uint32_t unit, low;
    if (!hex4(unit) || (unit >= 0xDC00 && unit < 0xE000))
      return no_character;
    if (unit < 0xD800 || unit >= 0xE000)
      return unit;
    if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u')
      return no_character;
    at_ += 2;
    if (!hex4(low) || low < 0xDC00 || low >= 0xE000)
      return no_character;
    return 0x10000 + ((unit - 0xD800) << 10 | (low - 0xDC00));
  }

  const char *const begin_;
  const char *at_;
  const char *const end_;
  const bool is_text_;
  bool escaped_ = false;
};

// Both give the place of a fault and false.
bool read_vocab(Scanner &scanner, ModelJson &model) {
  model.fault = {Fault::vocab, Fault::whole};
  if (!scanner.take('{'))
    return false;
  model.fault.index = 0;
  EntryList &entries = model.entries;
  std::string text;
  if (!scanner.take('}')) {
    do {
      bool in_alphabet;
      uint32_t id;
      if (!scanner.entry(entries.bytes, text, in_alphabet) || !scanner.take(':') || !scanner.id(id))
        return false;
      ++model.fault.index;
      if (!in_alphabet) {
        model.texts.emplace_back(text, id);
      } else if (entries.bytes.size() == (entries.ends.empty() ? 0 : entries.ends.back())) {
        model.texts.emplace_back("", id);
      } else {
        entries.ids.push_back(id);
        entries.ends.push_back(entries.bytes.size());
      }
    } while (scanner.take(','));
    if (!scanner.take('}'))
      return false;
  }
  model.fault = {};
  return true;
}

bool read_merges(Scanner &scanner, ModelJson &model) {
  model.fault = {Fault::merges, Fault::whole};
  if (!scanner.take('['))
    return false;
  model.fault.index = 0;
  std::string text;
  if (!scanner.take(']')) {
    do {
      uint64_t left_end = 0;
      if (scanner.take('[')) {
        bool left_known, right_known;
        if (!scanner.entry(model.merge_bytes, text, left_known))
          return false;
        left_end = model.merge_bytes.size();
        if (!scanner.take(',') || !scanner.entry(model.merge_bytes, text, right_known) ||
            !scanner.take(']') || !left_known || !right_known)
          return false;
      } else if (!scanner.merge_line(model.merge_bytes, left_end)) {
        return false;
      }
      ++model.fault.index;
      model.merge_ends.push_back(left_end);
      model.merge_ends.push_back(model.merge_bytes.size());
    } while (scanner.take(','));
    if (!scanner.take(']'))
      return false;
  }
  model.fault = {};
  return true;
}

// A JSON object member by member: member(key) reads the value.
template <class Member> bool read_object(Scanner &scanner, const Member &member) {
  std::string key;
  if (!scanner.take('{'))
    return false;
  do {
    if (!scanner.take('"') || !scanner.whole_string(key) || !scanner.take(':') || !member(key))
      return false;
  } while (scanner.take(','));
  return scanner.take('}');
}

} // namespace

std::optional<ModelJson> read_model_json(std::string_view document, Spelling spelling) {
  if (validate_utf8(reinterpret_cast<const uint8_t *>(document.data()), document.size()) < document.size())
    return std::nullopt;
  Scanner scanner(document, spelling);
  ModelJson model{};
  bool vocab_seen = false, merges_seen = false;
  const auto part = [&](bool &seen, size_t &start, size_t &stop, auto read) {
    start = scanner.start_of_value();
    const Fault before = model.fault;
    bool good = !seen && spelling != Spelling::unread && read(scanner, model);
    if (!good && !seen) { // what comes behind it is looked at all the same
      scanner.go_to(start);
      good = scanner.skip_value();
    }
    if (before.place != Fault::none)
      model.fault = before;
    seen = true;
    stop = scanner.place();
    return good;
  };
  const bool good = read_object(scanner, [&](const std::string &outer) {
    if (outer != "model")
      return scanner.skip_value();
    return read_object(scanner, [&](const std::string &inner) {
      if (inner == "vocab")
        return part(vocab_seen, model.vocab_start, model.vocab_stop, read_vocab);
      if (inner == "merges")
        return part(merges_seen, model.merges_start, model.merges_stop, read_merges);
      return scanner.skip_value();
    });
  });
  if (!good || !vocab_seen || !merges_seen)
    return std::nullopt;
  return model;
}

std::string outline(std::string_view document, const ModelJson &model) {
  struct Part {
    size_t start, stop;
    std::string_view stand_in;
  };
  Part parts[] = {{model.vocab_start, model.vocab_stop, "{}"}, {model.merges_start, model.merges_stop, "[]"}};
  if (parts[1].start < parts[0].start)
    std::swap(parts[0], parts[1]);
  std::string out;
  size_t from = 0;
  for (const Part &part : parts) {
    out.append(document.substr(from, part.start - from)).append(part.stand_in);
    from = part.stop;
  }
  out.append(document.substr(from));
  return out;
}

} // namespace bpe
