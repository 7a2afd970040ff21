#include "json_array.hpp"

namespace corpus {

namespace {

constexpr uint8_t byte_order_mark[] = {0xEF, 0xBB, 0xBF};

bool is_space(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

} // namespace

size_t JsonArray::rewrite(uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i, ++offset_) {
    if (state_ == State::no_array)
      return size;
    uint8_t &c = bytes[i];
    if (in_string_) {
      if (c == '\n')
        c = '\r';
      else if (!escaped_ && c == '"')
        in_string_ = false;
      escaped_ = !escaped_ && c == '\\';
      continue;
    }
    if (state_ != State::inside) {
      if (state_ == State::before && offset_ < sizeof byte_order_mark && c == byte_order_mark[offset_])
        continue;
      if (state_ == State::before && c == '[') {
        state_ = State::inside;
        c = ' ';
      } else if (!is_space(c)) {
        if (state_ == State::closed)
          return i;
        state_ = State::no_array;
      } else if (state_ == State::closed) {
        c = ' ';
      }
      continue;
    }
    if (is_space(c)) {
      c = c == '\n' ? ' ' : c;
      continue;
    }
    if (depth_ == 0 && (c == ',' || c == ']' || c == '}')) {
      const bool needs_value = c == ',' || after_comma_;
      if (c == '}' || (needs_value && !has_value_))
        return i;
      state_ = c == ']' ? State::closed : state_;
      after_comma_ = c == ',';
      has_value_ = false;
      c = after_comma_ ? '\n' : ' ';
      continue;
    }
    has_value_ = true;
    in_string_ = c == '"';
    depth_ += c == '[' || c == '{';
    depth_ -= c == ']' || c == '}';
  }
  return size;
}

} // namespace corpus
