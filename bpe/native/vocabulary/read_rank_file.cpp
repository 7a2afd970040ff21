// tiktoken's rank file: a line `base64(bytes) rank` an entry.
#include "vocabulary/entry_list.hpp"

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

// Appends the bytes of whole groups of four digits, the last one padded; false for anything else. Bits that
// padding leaves over are dropped, as Python's strict reader does.
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

std::optional<EntryList> read_rank_file(std::string_view data) {
  EntryList entries;
  entries.bytes.reserve(data.size());
  size_t at = 0;
  while (at < data.size()) {
    if (data[at] == '\n') {
      ++at;
      continue;
    }
    const size_t space = data.find(' ', at);
    if (space == std::string_view::npos || !append_base64(entries.bytes, data.substr(at, space - at)))
      return std::nullopt;
    at = space + 1;
    const size_t start = at;
    uint64_t rank = 0;
    while (at < data.size() && data[at] >= '0' && data[at] <= '9' && at - start < 11)
      rank = rank * 10 + static_cast<uint64_t>(data[at++] - '0');
    if (at == start || rank > INT32_MAX || (at < data.size() && data[at] != '\n'))
      return std::nullopt;
    entries.ids.push_back(static_cast<uint32_t>(rank));
    entries.ends.push_back(entries.bytes.size());
  }
  return entries;
}

} // namespace bpe
