// The texts of a field in JSON Lines are those that a reader finds which makes objects of the lines.
//
// planted: tokenmill/inputs/native/json_lines.cpp: `size == wanted.size()` -> `size <= wanted.size()`
#include "plain_json.hpp"

#include "json_lines.hpp"

namespace {

using corpus::JsonFault;

const std::vector<std::string> paths[] = {{"text"}, {"a", "text"}, {"a", "0"},  {"0", "text"},
                                          {"1"},    {""},          {"t\u00e9"}, {"a", "1", "0"}};

std::string replaced_halves(std::string_view text, uint64_t &count) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bpe::Char c = bpe::read_char(bpe::bytes_of(text) + at, bpe::bytes_of(text) + text.size());
    const bool is_half = c.code_point >= 0xD800 && c.code_point < 0xE000;
    out += is_half ? "\uFFFD" : std::string(text.substr(at, c.length));
    count += is_half;
    at += c.length;
  }
  return out;
}

// What the path leads to, or why there is none.
const fuzz::Json *follow(const fuzz::Json &line, const std::vector<std::string> &path, JsonFault &fault) {
  const fuzz::Json *value = &line;
  for (size_t depth = 0; depth < path.size(); ++depth) {
    const std::string &name = path[depth];
    const fuzz::Json *next = nullptr;
    const bool is_index = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos &&
                          (name == "0" || name[0] != '0');
    if (depth == 0 && !(value->kind == fuzz::Json::object || (value->kind == fuzz::Json::list && is_index))) {
      fault = JsonFault::not_object;
      return nullptr;
    }
    for (size_t i = 0; i < value->names.size(); ++i) {
      if (value->names[i] == name && next) {
        fault = JsonFault::twice;
        return nullptr;
      }
      next = value->names[i] == name ? &value->items[i] : next;
    }
    if (value->kind == fuzz::Json::list && is_index && std::stoull(name) < value->items.size())
      next = &value->items[std::stoull(name)];
    if (!next) {
      fault = JsonFault::missing;
      return nullptr;
    }
    value = next;
  }
  return value;
}

bool is_of_syntax(JsonFault fault) {
  return fault >= JsonFault::cut && fault <= JsonFault::trailing;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const std::vector<std::string> &path = paths[input.below(std::size(paths))];
  const bool replace = input.flag();
  const fuzz::Exact lines(fuzz::text_of_rest(input));
  std::unique_ptr<uint8_t[]> out(new uint8_t[corpus::json_text_room(lines.size())]);
  const corpus::JsonTexts found =
      corpus::json_texts(lines.data(), lines.size(), path, replace, SIZE_MAX, out.get());
  size_t text_number = 0, bad_number = 0;
  uint64_t halves = 0;
  for (size_t start = 0; start < lines.size();) {
    const size_t stop = std::min(lines.view().find('\n', start), lines.size());
    const std::string_view line = lines.view().substr(start, stop - start);
    const size_t line_start = start;
    start = stop + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    const bool good = text_number < found.line_starts.size() && found.line_starts[text_number] == line_start;
    const std::optional<fuzz::Json> value = fuzz::JsonReader(line, " \t\r").read();
    std::string_view text;
    JsonFault fault = JsonFault::none;
    if (good) {
      text = {reinterpret_cast<const char *>(out.get()) + found.offsets[text_number],
              found.offsets[text_number + 1] - found.offsets[text_number]};
      ++text_number;
      fuzz::expect(value.has_value(), "a line that gives a text is JSON");
      const fuzz::Json *const field = follow(*value, path, fault);
      uint64_t own_halves = 0;
      fuzz::expect(field && field->kind == fuzz::Json::text &&
                       replaced_halves(field->bytes, own_halves) == text,
                   "the text is that of the field");
      fuzz::expect(replace || own_halves == 0, "half a pair is a fault");
      halves += own_halves;
    } else {
      fuzz::expect(bad_number < found.bad.size() && found.bad[bad_number].start == line_start &&
                       found.bad[bad_number].stop == stop,
                   "a line that gives none is a bad one");
      fault = found.bad[bad_number].fault;
      fuzz::expect(found.bad[bad_number++].offset - line_start <= line.size(),
                   "the fault is within the line");
      if (value) {
        fuzz::expect(!is_of_syntax(fault), "a line that is JSON has no fault of syntax");
        JsonFault wanted = JsonFault::none;
        const fuzz::Json *const field = follow(*value, path, wanted);
        uint64_t own_halves = 0;
        const bool has_text = field && field->kind == fuzz::Json::text &&
                              (replaced_halves(field->bytes, own_halves), own_halves == 0 || replace);
        fuzz::expect(!has_text, "a field that has a text gives it");
      }
    }
  }
  fuzz::expect(text_number == found.line_starts.size() && bad_number == found.bad.size() &&
                   found.replaced == halves,
               "all is of some line");
  return 0;
}
