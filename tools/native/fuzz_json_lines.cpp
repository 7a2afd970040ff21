// The texts of a field in JSON Lines equal the result of a reader that parses each line into objects.
//
// planted: tokenmill/inputs/native/json_lines.cpp: `return has_member ? p + 1 : nullptr;` -> `return p + 1;`
#include "plain_json.hpp"

#include "json_lines.hpp"

namespace {

const std::vector<std::string> paths[] = {{"text"}, {"a", "text"}, {"a", "0"}, {""}, {"t\u00e9"}};

bool has_surrogate(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const bpe::Char c = bpe::read_char(bpe::bytes_of(text) + at, bpe::bytes_of(text) + text.size());
    if (c.code_point >= 0xD800 && c.code_point < 0xE000)
      return true;
    at += c.length;
  }
  return false;
}

// Returns the text at a path of objects, or null.
const fuzz::Json *follow(const fuzz::Json &line, const std::vector<std::string> &path) {
  const fuzz::Json *value = &line;
  for (const std::string &name : path) {
    if (value->kind != fuzz::Json::object || std::count(value->names.begin(), value->names.end(), name) != 1)
      return nullptr;
    const auto found = std::find(value->names.begin(), value->names.end(), name);
    value = &value->items[static_cast<size_t>(found - value->names.begin())];
  }
  return value->kind == fuzz::Json::text && !has_surrogate(value->bytes) ? value : nullptr;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const std::vector<std::string> &path = paths[input.below(std::size(paths))];
  const fuzz::Exact lines(fuzz::text_of_rest(input));
  std::unique_ptr<uint8_t[]> out(new uint8_t[lines.size()]);
  const corpus::JsonTexts found = corpus::json_texts(lines.data(), lines.size(), path, SIZE_MAX, out.get());
  size_t texts = 0, left = 0, blank = 0, number = 0;
  for (size_t start = 0; start < lines.size(); ++number) {
    const size_t stop = std::min(lines.view().find('\n', start), lines.size());
    const std::string_view line = lines.view().substr(start, stop - start);
    const size_t line_start = start;
    start = stop + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      ++blank;
      continue;
    }
    const std::optional<fuzz::Json> value = fuzz::JsonReader(line, " \t\r").read();
    const fuzz::Json *const text = value ? follow(*value, path) : nullptr;
    if (texts < found.line_starts.size() && found.line_starts[texts] == line_start) {
      const std::string_view got(reinterpret_cast<const char *>(out.get()) + found.offsets[texts],
                                 found.offsets[texts + 1] - found.offsets[texts]);
      fuzz::expect(text && text->bytes == got, "the text is that of the field");
      fuzz::expect(found.line_numbers[texts++] == number, "lines are numbered");
    } else {
      fuzz::expect(left + 3 <= found.left.size() && found.left[left] == line_start &&
                       found.left[left + 1] == stop && found.left[left + 2] == number,
                   "a line that gives no text is left");
      left += 3;
      fuzz::expect(!text || line.find('\\') != line.npos, "a usual line gives its text");
    }
  }
  fuzz::expect(texts == found.line_starts.size() && left == found.left.size() && blank == found.blank_count &&
                   number == found.line_count,
               "all is of some line");
  return 0;
}
