// The texts of one field out of JSON Lines: a record a line, cut at LF alone, every line checked to the end.
//
// json_line.hpp says what a line must be. A line that does not give its text is a fault with a place; the
// other lines do not notice.
#pragma once

#include "json_line.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace corpus {

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

// `lines` is valid UTF-8; the last line need not end in LF. path, replace_surrogates: as of JsonLine. out:
// json_text_room(size) bytes.
JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     bool replace_surrogates, size_t max_line_bytes, uint8_t *out);

} // namespace corpus
