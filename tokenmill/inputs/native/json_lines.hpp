// The text of one field from each line of JSON Lines. Lines end in LF only.
//
// A line gives its text if it is valid UTF-8 and strict RFC 8259 to its end, and the path leads through
// objects to one string without unpaired surrogates. NaN, Infinity and -Infinity are numbers, because
// Python's json module writes them. Nesting is unlimited, and numbers have any length (they are not
// converted). All other lines are left to the caller, which finds the fault or the text.
//
// Cost: one pass, close to memory speed for JSON that is mostly text. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace corpus {

struct JsonTexts {
  size_t text_bytes = 0;
  std::vector<uint64_t> offsets{0};                // text i is [offsets[i], offsets[i + 1]) of the output
  std::vector<uint64_t> line_starts, line_numbers; // of the line of text i
  std::vector<uint64_t>
      left; // start, stop without the LF, and number of each line that is left to the caller
  uint64_t line_count = 0, blank_count = 0;
};

// lines: the last line may lack its LF.
// path: names from the outermost object inwards, at least one.
// max_line_bytes: longer lines are left to the caller.
// out: `size` bytes.
JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     size_t max_line_bytes, uint8_t *out);

} // namespace corpus
