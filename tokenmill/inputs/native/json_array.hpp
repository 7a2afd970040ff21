// A file that is one JSON array of records, rewritten as JSON Lines of the same length.
//
//   [\n  {"text": "a"},\n  {"text": "b"}\n]   ->     {"text": "a"}\n   {"text": "b"}  (spaces for the rest)
//
// The comma between two records becomes the LF that ends a line, and the brackets of the array and the LFs
// outside of strings become spaces. So every byte keeps its offset, and each record is checked as a line is.
// An LF inside of a string, which JSON does not allow, becomes a CR, which it does not allow either.
//
// Cost: one pass, constant memory. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace corpus {

class JsonArray {
public:
  // Rewrites the next bytes of the file in place. Returns the offset in `bytes` of the first byte that cannot
  // follow the bytes before it, or `size`. Leaves a file alone that is no array.
  size_t rewrite(uint8_t *bytes, size_t size);

  bool is_array() const { return state_ == State::inside || state_ == State::closed; }
  bool is_cut() const { return state_ == State::inside; } // the closing bracket is missing so far

private:
  enum class State : uint8_t { before, inside, closed, no_array };

  State state_ = State::before;
  uint64_t offset_ = 0; // in the file, of the next byte
  size_t depth_ = 0;    // open lists and objects inside of the array
  bool in_string_ = false, escaped_ = false;
  bool has_value_ = false, after_comma_ = false; // since the array or the last comma between records began
};

} // namespace corpus
