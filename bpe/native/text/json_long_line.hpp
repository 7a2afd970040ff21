// One line of JSON Lines that is too long to be held: its text in pieces, while the line goes by.
//
// The same lines are good, with the same text, and bad with the same fault and place, as by json_texts: the
// rules are there. What is kept between two pieces is where in the line they meet: the open lists and
// objects, a byte each, and of an escape that is cut its first bytes. Whether the line is good is known at
// its end, so the text that was given out may turn out to be none.
//
// Cost: as json_texts, one pass.
#pragma once

#include "text/json_lines.hpp"
#include "text/json_scan.hpp"

namespace bpe {

class JsonLongLine : private JsonScanner {
public:
  JsonLongLine(std::vector<std::string> path, bool replace_surrogates);

  struct Fed {
    size_t used; // the caller gives the bytes behind, fewer than twelve, again in front of the next piece
    size_t text_bytes; // written to `out`: whole characters
  };

  // The next bytes of the line, without its LF: valid UTF-8, cut between characters. final: nothing follows;
  // all is used then. out: json_texts_room(size) bytes. After a fault all is used and nothing written.
  Fed feed(const uint8_t *piece, size_t size, bool final, uint8_t *out);

  JsonFault fault() const { return fault_there_ != JsonFault::none ? fault_there_ : JsonScanner::fault(); }
  using JsonScanner::replaced; // halves of surrogate pairs in the text so far
  // Of the byte at fault, from the line's first on.
  uint64_t place() const { return fault_place_; }
  // White space alone so far.
  bool is_blank() const { return state_ == State::value && !begun_; }

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
    line_end, // only white space may follow
    stopped   // at a fault
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

  bool run(bool final, uint8_t *&out);
  bool begin_value();
  bool number();
  bool string(bool final, uint8_t *&out, bool is_text, bool &closed);
  bool name(bool final, uint8_t *room, bool &closed);
  bool end_value();
  void end_container();
  bool finish();
  bool fail_there(JsonFault fault, uint64_t place);
  bool is_followed() const { return !nesting_.empty() && nesting_.size() == levels_.size(); }

  const std::vector<std::string> path_;
  State state_ = State::value;
  Number number_ = Number::minus;
  std::vector<bool> nesting_; // the open lists (false) and objects; a bit each, or "[[[[" would cost the line
  std::vector<Level> levels_; // of the first of them, as far as the path leads through them
  bool begun_ = false;        // a character that is no white space was seen
  bool wanted_ = true;        // the value that begins next is where the path leads
  bool found_ = false, is_root_followed_ = false;
  std::string name_;
  uint64_t name_place_ = 0;
  JsonFault other_kind_ = JsonFault::none; // the field holds no text; told when its value has ended
  size_t other_depth_ = 0;
  uint64_t other_place_ = 0, start_place_ = 0;
  uint64_t base_ = 0; // of the piece's first byte in the line
  const uint8_t *piece_ = nullptr;
  JsonFault fault_there_ = JsonFault::none; // with a place that may lie in an earlier piece
  uint64_t fault_place_ = 0;
};

} // namespace bpe
