#include "json_lines.hpp"

#include <algorithm>
#include <cstring>

namespace corpus {

namespace {

bool is_blank(const uint8_t *start, const uint8_t *stop) {
  return std::all_of(start, stop, [](uint8_t c) { return c == ' ' || c == '\t' || c == '\r'; });
}

} // namespace

JsonTexts json_texts(const uint8_t *lines, size_t size, const std::vector<std::string> &path,
                     bool replace_surrogates, size_t max_line_bytes, uint8_t *out) {
  JsonTexts texts;
  JsonLine line(path, replace_surrogates);
  const uint8_t *const end = lines + size;
  for (const uint8_t *start = lines; start < end;) {
    const void *const found = std::memchr(start, '\n', static_cast<size_t>(end - start));
    const uint8_t *const stop = found ? static_cast<const uint8_t *>(found) : end;
    const size_t line_bytes = static_cast<size_t>(stop - start);
    const uint64_t place = static_cast<uint64_t>(start - lines);
    ++texts.line_count;
    line.reset();
    if (line_bytes > max_line_bytes) {
      if (is_blank(start, stop))
        ++texts.blank_count;
      else
        texts.bad.push_back({place, place + line_bytes, place, JsonFault::too_long});
    } else {
      const JsonLine::Fed fed = line.feed(start, line_bytes, true, out + texts.text_bytes, end);
      if (line.is_blank()) {
        ++texts.blank_count;
      } else if (line.fault() == JsonFault::none) {
        texts.text_bytes += fed.text_bytes;
        texts.offsets.push_back(texts.text_bytes);
        texts.line_starts.push_back(place);
        texts.replaced += line.replaced();
      } else {
        texts.bad.push_back({place, place + line_bytes, place + line.place(), line.fault()});
      }
    }
    start = stop + 1;
  }
  return texts;
}

} // namespace corpus
