// Strict reader of JSON (RFC 8259) that builds objects, as the reference for the core's scanners.
#pragma once

#include "fuzz_input.hpp"

#include <optional>

namespace fuzz {

struct Json {
  enum Kind { null, boolean, number, text, list, object } kind = null;
  std::string bytes;              // of a text; a lone surrogate is encoded in three bytes
  std::vector<Json> items;        // of a list, or the values of an object
  std::vector<std::string> names; // of the values
  size_t start = 0, stop = 0;     // span in the document
};

class JsonReader {
public:
  // spaces: characters that are allowed between values.
  JsonReader(std::string_view document, std::string_view spaces) : document_(document), spaces_(spaces) {}

  std::optional<Json> read() {
    Json value;
    if (!read_value(value))
      return std::nullopt;
    skip();
    return at_ == document_.size() ? std::optional(std::move(value)) : std::nullopt;
  }

private:
  void skip() { at_ = std::min(document_.find_first_not_of(spaces_, at_), document_.size()); }
  bool take(std::string_view word) {
    if (!document_.substr(at_).starts_with(word))
      return false;
    at_ += word.size();
    return true;
  }
  size_t digits() {
    const size_t start = at_;
    at_ = std::min(document_.find_first_not_of("0123456789", at_), document_.size());
    return at_ - start;
  }

  bool read_value(Json &value) {
    skip();
    value.start = at_;
    const bool good = read_kind(value);
    value.stop = at_;
    return good;
  }

  bool read_kind(Json &value) {
    if (take("null"))
      return true;
    if (take("true") || take("false")) {
      value.kind = Json::boolean;
      return true;
    }
    if (take("\"")) {
      value.kind = Json::text;
      return read_string(value.bytes);
    }
    if (take("[")) {
      value.kind = Json::list;
      return read_list(value);
    }
    if (take("{")) {
      value.kind = Json::object;
      return read_object(value);
    }
    value.kind = Json::number;
    return read_number();
  }

  bool read_number() {
    take("-");
    if (!take("0") && digits() == 0)
      return false;
    if (take(".") && digits() == 0)
      return false;
    if (take("e") || take("E")) {
      if (!take("+"))
        take("-");
      return digits() > 0;
    }
    return true;
  }

  bool read_list(Json &value) {
    skip();
    if (take("]"))
      return true;
    do {
      if (!read_value(value.items.emplace_back()))
        return false;
      skip();
    } while (take(","));
    return take("]");
  }

  bool read_object(Json &value) {
    skip();
    if (take("}"))
      return true;
    do {
      skip();
      if (!take("\"") || !read_string(value.names.emplace_back()))
        return false;
      skip();
      if (!take(":") || !read_value(value.items.emplace_back()))
        return false;
      skip();
    } while (take(","));
    return take("}");
  }

  std::optional<uint32_t> read_unit() {
    if (!take("\\u"))
      return std::nullopt;
    const std::string_view four = document_.substr(at_, 4);
    if (four.size() < 4 || four.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      return std::nullopt;
    at_ += 4;
    return static_cast<uint32_t>(std::stoul(std::string(four), nullptr, 16));
  }

  bool read_string(std::string &out) {
    while (at_ < document_.size()) {
      const char c = document_[at_];
      if (c == '"')
        return ++at_, true;
      if (static_cast<uint8_t>(c) < 0x20)
        return false;
      if (c != '\\') {
        out += c;
        ++at_;
        continue;
      }
      constexpr std::string_view codes = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
      const size_t code =
          at_ + 1 < document_.size() ? codes.find(document_[at_ + 1]) : std::string_view::npos;
      if (code != std::string_view::npos) {
        out += characters[code];
        at_ += 2;
        continue;
      }
      std::optional<uint32_t> unit = read_unit();
      if (!unit)
        return false;
      if (*unit >> 10 == 0xD800 >> 10) {
        const size_t behind = at_;
        const std::optional<uint32_t> low = read_unit();
        if (low && *low >> 10 == 0xDC00 >> 10)
          unit = 0x10000 + ((*unit & 0x3FF) << 10 | (*low & 0x3FF));
        else
          at_ = behind;
      }
      uint8_t bytes[4];
      out.append(reinterpret_cast<const char *>(bytes), bpe::write_utf8(*unit, bytes));
    }
    return false;
  }

  const std::string_view document_, spaces_;
  size_t at_ = 0;
};

} // namespace fuzz
