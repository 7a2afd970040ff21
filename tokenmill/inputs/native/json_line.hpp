// One line of JSON Lines to the text of one of its fields, whole or in pieces while the line goes by.
//
// A line must be RFC 8259, strictly: no trailing comma, no control character in a string, no second value
// after the first. NaN, Infinity and -Infinity are numbers, because Python's json module writes them. Nesting
// is unlimited, numbers have any length (they are not converted), names are compared after their escapes are
// resolved. A line of white space alone is no record.
//
// A line gives the same text, or the same fault at the same place, however it is cut. What is kept between
// two pieces is where in the line they meet: the open lists and objects, a bit each. Whether the line is good
// is known at its end, so the text that was given out may turn out to be none.
//
// Cost: one pass, about as fast as memory for JSON that is mostly text. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace corpus {

// Why a line gives no text; json_fault_names has a name for each.
enum class JsonFault : uint8_t {
  none,
  cut,        // the line ends before its value does
  syntax,     // a character that cannot stand there
  control,    // a control character in a string
  escape,     // a backslash with something that is no escape
  number,     // digits that are no number
  trailing,   // something behind the value
  not_object, // the line is no object (nor a list, where the path has an index)
  missing,    // nothing has the path
  twice,      // two members have the path
  is_null,    // what has the path is no string, but this
  is_bool,
  is_number,
  is_list,
  is_object,
  surrogate, // the text holds half of a surrogate pair, which UTF-8 cannot hold
  too_long,  // the line has more bytes than are allowed; it was not looked at
};
inline constexpr const char *json_fault_names[] = {
    "none",  "cut",     "syntax",  "control",   "escape",  "number",    "trailing",  "not_object", "missing",
    "twice", "is_null", "is_bool", "is_number", "is_list", "is_object", "surrogate", "too_long"};

// The buffer that the text of `size` bytes of JSON needs: it is never longer, and is copied in blocks.
constexpr size_t json_text_room(size_t size) {
  return size + 16;
}

class JsonLine {
public:
  // path: the names from the outside in, where a list has that place the index in decimal; at least one.
  // replace_surrogates: half a pair becomes U+FFFD and is counted.
  JsonLine(std::vector<std::string> path, bool replace_surrogates);

  struct Fed {
    size_t used; // the caller gives the bytes behind, fewer than twelve, again in front of the next piece
    size_t text_bytes; // written to `out`: whole characters
  };

  // The next bytes of the line, without its LF: valid UTF-8, cut between characters. final: nothing follows;
  // all is used then. out: json_text_room(size) bytes. After a fault all is used and nothing written.
  // readable: bytes up to there may be read, of which the first is LF if there is one.
  Fed feed(const uint8_t *piece, size_t size, bool final, uint8_t *out, const uint8_t *readable);
  // Another line begins.
  void reset();

  JsonFault fault() const { return fault_; }
  uint64_t place() const { return fault_place_; } // of the byte at fault, from the line's first on
  uint64_t replaced() const { return replaced_; } // halves of surrogate pairs in the text so far
  bool is_blank() const { return state_ == State::value && !begun_; } // white space alone so far

private:
  enum class State : uint8_t {
    value,      // begins here
    first_item, // or the end of the list
    first_name, // or the end of the object
    name,       // begins here
    in_name,    // a name that may be one of the path
    colon,
    after, // a value within a list or object
    in_text,
    in_string, // any other string
    in_number,
    in_literal, // behind its last character
    line_end,   // only white space may follow
    stopped     // at a fault
  };
  // What a number may go on with.
  enum class Number : uint8_t {
    minus,
    zero,
    whole,
    point,
    fraction,
    exponent,
    exponent_sign,
    exponent_digits
  };
  // A list or object that the path leads through.
  struct Level {
    bool seen = false;
    size_t item = 0, wanted_item = SIZE_MAX;
  };

  // The open lists and objects: a bit each, or "[[[[" would take the memory of the line.
  class Nesting {
  public:
    size_t size() const { return size_; }
    bool is_object() const { return (innermost_ & 1) != 0; }
    void push(bool is_object) {
      if (size_++ % 64 == 0)
        outer_.push_back(innermost_);
      innermost_ = innermost_ << 1 | is_object;
    }
    void pop() {
      innermost_ >>= 1;
      if (--size_ % 64 == 0) {
        innermost_ = outer_.back();
        outer_.pop_back();
      }
    }
    void clear() {
      size_ = 0;
      outer_.clear();
    }

  private:
    size_t size_ = 0;
    uint64_t innermost_ = 0;
    std::vector<uint64_t> outer_;
  };

  const uint8_t *run(const uint8_t *p, uint8_t *&out);
  const uint8_t *begin_value(const uint8_t *p);
  const uint8_t *number(const uint8_t *p);
  template <bool writes> const uint8_t *string(const uint8_t *p, uint8_t *&out, bool is_text);
  const uint8_t *followed_name(const uint8_t *p, uint8_t *buffer);
  const uint8_t *code_unit(const uint8_t *p, uint32_t &unit);
  const uint8_t *escape(const uint8_t *p, uint8_t **out, bool is_text);
  void begin_name(const uint8_t *p);
  bool end_name();
  bool end_value();
  bool finish();
  const uint8_t *fail(JsonFault fault, const uint8_t *at);
  bool fail_there(JsonFault fault, uint64_t place);
  uint64_t place_of(const uint8_t *p) const { return base_ + static_cast<uint64_t>(p - piece_); }
  bool is_followed() const { return nesting_.size() == followed_ && followed_ != 0; }
  Level &level() { return levels_[followed_ - 1]; }

  const std::vector<std::string> path_;
  const bool replace_surrogates_;
  State state_ = State::value;
  Number number_ = Number::minus;
  Nesting nesting_;
  std::vector<Level> levels_; // of the outermost of them,
  size_t followed_ = 0;       // as many as the path leads through
  bool begun_ = false;        // a character that is no white space was seen
  bool wanted_ = true;        // the value that begins next is where the path leads
  bool found_ = false, is_root_followed_ = false;
  // Of the name being read, in an object that the path leads through: whether it begins as the path's does,
  // and how much of that is read.
  bool name_matches_ = false;
  size_t name_bytes_ = 0;
  uint64_t name_place_ = 0;
  JsonFault other_kind_ = JsonFault::none; // the field holds no text; told when its value has ended
  size_t other_depth_ = 0;
  uint64_t other_place_ = 0, start_place_ = 0;
  uint64_t replaced_ = 0;
  JsonFault fault_ = JsonFault::none;
  uint64_t fault_place_ = 0;
  uint64_t base_ = 0; // of the piece's first byte in the line
  const uint8_t *piece_ = nullptr, *end_ = nullptr, *readable_ = nullptr;
  bool final_ = false;  // nothing follows this piece
  bool closed_ = false; // the string that was read last
};

} // namespace corpus
