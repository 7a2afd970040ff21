// The texts of one field out of JSON Lines: a record a line, cut at LF alone, every line checked to the end.
//
// What a line must be is RFC 8259, strictly: no NaN, no trailing comma, no control character in a string, no
// second value behind the first. Nesting is unlimited, numbers have any length (they are not converted),
// names are compared after their escapes are resolved. A line of white space alone is no record. A line that
// does not give its text is a fault with a place; the other lines do not notice.
//
// Cost: one pass, about 2 GB/s of JSON that is mostly text. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bpe {

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

struct JsonTexts {
  struct Bad {
    uint64_t start, stop; // of the line, without its LF
    uint64_t place;       // of the byte at fault; start where a whole line is
    JsonFault fault;
  };
  size_t text_bytes = 0;
  std::vector<uint64_t> offsets{0};  // text i is [offsets[i], offsets[i + 1]) of the output
  std::vector<uint64_t> line_starts; // of text i's line
  std::vector<Bad> bad;
  uint64_t line_count = 0, blank_count = 0, replaced = 0;
};

// The room `out` needs for `size` bytes of lines: a text is never longer than its JSON.
constexpr size_t json_texts_room(size_t size) {
  return size + 16;
}

// `lines` is valid UTF-8; the last line need not end in LF. path: the names from the outside in, where a list
// has that place the index in decimal; at least one. replace_surrogates: half a pair becomes U+FFFD and is
// counted.
JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     bool replace_surrogates, size_t max_line_bytes, uint8_t *out);

} // namespace bpe
