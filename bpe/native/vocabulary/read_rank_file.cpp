// Reader of tiktoken's rank files: one line `base64(bytes) rank` per entry.
#include "vocabulary/entry_file.hpp"

#include <algorithm>
#include <array>

namespace bpe {

namespace {

constexpr uint8_t no_digit = 64;
constexpr auto digit_of = [] {
  std::array<uint8_t, 256> table{};
  table.fill(no_digit);
  const char *const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (uint8_t i = 0; i < 64; ++i)
    table[static_cast<uint8_t>(digits[i])] = i;
  return table;
}();

// Append the bytes of complete groups of four digits, where the last may be padded, or return false for other
// text. Drops the unused bits of a padded group, like Python's strict decoder.
bool append_base64(std::string &out, std::string_view digits) {
  if (digits.empty() || digits.size() % 4 != 0)
    return false;
  size_t padding = 0;
  while (padding < 2 && digits[digits.size() - 1 - padding] == '=')
    ++padding;
  const size_t count = digits.size() - padding;
  uint32_t group = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t digit = digit_of[static_cast<uint8_t>(digits[i])];
    if (digit == no_digit)
      return false;
    group = group << 6 | digit;
    if (i % 4 == 3)
      for (int shift = 16; shift >= 0; shift -= 8)
        out += static_cast<char>(group >> shift);
  }
  if (padding == 1) {
    out += static_cast<char>(group >> 10);
    out += static_cast<char>(group >> 2);
  } else if (padding == 2) {
    out += static_cast<char>(group >> 4);
  }
  return true;
}

} // namespace

EntryFile EntryFile::from_rank_file(std::string_view data) {
  constexpr std::string_view blanks = " \t\r\v\f";
  EntryFile file;
  EntryList &entries = file.entries_;
  entries.bytes.reserve(data.size());
  for (size_t at = 0, index = 0; at < data.size(); ++index) {
    const size_t start = at, stop = std::min(data.find('\n', at), data.size());
    std::string_view line = data.substr(at, stop - at);
    at = stop + 1;
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    if (line.empty())
      continue;
    file.fault_ = {Fault::line, index, start, stop, {}};
    const size_t space = line.find_first_of(blanks);
    const bool is_empty = line.substr(0, space) == "=" && file.texts_.empty();
    if (space == std::string_view::npos ||
        (!is_empty && !append_base64(entries.bytes, line.substr(0, space))))
      return file;
    line.remove_prefix(std::min(line.find_first_not_of(blanks, space), line.size()));
    uint64_t rank = 0;
    size_t digits = 0;
    for (; digits < line.size() && line[digits] >= '0' && line[digits] <= '9' && digits < 11; ++digits)
      rank = rank * 10 + static_cast<uint64_t>(line[digits] - '0');
    if (digits == 0 || rank > INT32_MAX || line.find_first_not_of(blanks, digits) != std::string_view::npos)
      return file;
    file.fault_ = {};
    if (is_empty)
      file.texts_.emplace_back("", static_cast<uint32_t>(rank));
    else
      entries.add(static_cast<uint32_t>(rank));
  }
  return file;
}

} // namespace bpe
