// The text of one field from each line of JSON Lines. Lines end in LF only, and every line is parsed to its
// end.
//
// A line must be RFC 8259, strictly: no trailing comma, no control character in a string, nothing after the
// value. NaN, Infinity and -Infinity are numbers, because Python's json module writes them. Nesting is
// unlimited, numbers have any length (they are not converted), and names are compared after their escapes are
// resolved. A line of white space is blank, which is not a fault. A bad line does not affect the others.
//
// Cost: one pass, close to memory speed for JSON that is mostly text. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace corpus {

// Why a line has no text. json_fault_names has the names that Python uses.
enum class JsonFault : uint8_t {
  none,
  cut,        // the line ends inside its value
  syntax,     // unexpected character
  control,    // control character in a string
  escape,     // invalid escape sequence
  number,     // invalid number
  trailing,   // data after the value
  not_object, // the line is not an object (or list, where the path has an index)
  missing,    // the path does not exist
  twice,      // two members have the path
  is_null,    // the value at the path is not a string but this
  is_bool,
  is_number,
  is_list,
  is_object,
  surrogate, // the text has an unpaired surrogate, which UTF-8 cannot encode
  too_long,  // the line has more than max_line_bytes and was not parsed
};
inline constexpr const char *json_fault_names[] = {
    "none",  "cut",     "syntax",  "control",   "escape",  "number",    "trailing",  "not_object", "missing",
    "twice", "is_null", "is_bool", "is_number", "is_list", "is_object", "surrogate", "too_long"};

struct JsonTexts {
  struct Bad {
    uint64_t start, stop; // the line without its LF
    uint64_t offset;      // the byte at fault; `start` if the whole line is
    JsonFault fault;
  };
  size_t text_bytes = 0;
  std::vector<uint64_t> offsets{0};  // text i is [offsets[i], offsets[i + 1]) of the output
  std::vector<uint64_t> line_starts; // of the line of text i
  std::vector<Bad> bad;
  uint64_t line_count = 0, blank_count = 0;
  uint64_t replaced = 0; // unpaired surrogates that became U+FFFD
};

// Size of the output buffer for `size` bytes of lines: texts are never longer, but are copied in blocks.
constexpr size_t json_text_room(size_t size) {
  return size + 16;
}

// lines: valid UTF-8; the last line may lack its LF.
// path: names from the outermost object inwards, at least one; for a list, the index in decimal.
// replace_surrogates: replace unpaired surrogates in texts with U+FFFD instead of reporting a fault.
// out: json_text_room(size) bytes.
JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     bool replace_surrogates, size_t max_line_bytes, uint8_t *out);

} // namespace corpus
