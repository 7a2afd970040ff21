// The reader of JSON Lines returns valid texts, and accounts for each line once.
#include "input.hpp"

#include "json_lines.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<std::string> paths[] = {{"text"}, {"a", "text"}, {""}, {"t\u00e9"}};
  fuzz::Input input(data, size);
  const std::vector<std::string> &path = paths[input.below(std::size(paths))];
  const size_t max_line_bytes = input.flag() ? SIZE_MAX : input.byte();
  const fuzz::Exact lines(input.repeated_rest(3000));
  const std::unique_ptr<uint8_t[]> out(new uint8_t[lines.size()]);
  const corpus::JsonTexts found =
      corpus::json_texts(lines.data(), lines.size(), path, max_line_bytes, out.get());

  const size_t texts = found.line_starts.size(), left = found.left.size() / 3;
  fuzz::expect(texts + left + found.blank_count == found.line_count, "each line counts once");
  fuzz::expect(found.offsets.size() == texts + 1 && found.offsets.back() <= lines.size(),
               "texts are at most as long as their lines");
  for (size_t i = 0; i < texts; ++i) {
    fuzz::expect(found.offsets[i] <= found.offsets[i + 1] && found.line_numbers[i] < found.line_count,
                 "texts are in order");
    const size_t bytes = found.offsets[i + 1] - found.offsets[i];
    fuzz::expect(bpe::validate_utf8(out.get() + found.offsets[i], bytes) == bytes, "texts are UTF-8");
    const std::string_view line = lines.view().substr(found.line_starts[i]);
    fuzz::expect(line.substr(0, line.find('\n')).size() <= max_line_bytes, "long lines are left");
  }
  for (size_t i = 0; i < left; ++i)
    fuzz::expect(found.left[3 * i] <= found.left[3 * i + 1] && found.left[3 * i + 1] <= lines.size(),
                 "lines are within the input");
  return 0;
}
