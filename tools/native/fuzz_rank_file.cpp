// The reader of rank files agrees with a naive reader for any bytes, including the line of the first fault.
//
// planted: bpe/native/vocabulary/read_rank_file.cpp: `rank > INT32_MAX` -> `rank > UINT32_MAX`
#include "fuzz_input.hpp"

#include "vocabulary/entry_file.hpp"

#include <optional>

namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::string> decoded(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0)
    return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bits, bytes;
  for (const char digit : text.substr(0, text.size() - padding)) {
    const size_t value = digits.find(digit);
    if (value == std::string_view::npos)
      return std::nullopt;
    for (int bit = 5; bit >= 0; --bit)
      bits += value >> bit & 1 ? '1' : '0';
  }
  for (size_t at = 0; at + 8 <= bits.size(); at += 8)
    bytes += static_cast<char>(std::stoi(bits.substr(at, 8), nullptr, 2));
  return bytes;
}

std::vector<std::string> words_of(const std::string &line) {
  std::vector<std::string> words(1);
  for (const char c : line)
    if (std::strchr(" \t\r\v\f", c) != nullptr && c != '\0')
      words.emplace_back();
    else
      words.back() += c;
  std::erase(words, "");
  return words;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view file(reinterpret_cast<const char *>(data), size);
  const bpe::EntryFile read = bpe::EntryFile::from_rank_file(file);
  const bpe::Fault &fault = read.fault();
  const bpe::EntryList &found = read.entries();
  size_t entry = 0, index = 0;
  for (size_t at = 0; at < size; ++index) {
    const size_t stop = std::min(file.find('\n', at), size);
    const std::vector<std::string> words = words_of(std::string(file.substr(at, stop - at)));
    at = stop + 1;
    if (words.empty())
      continue;
    if (words[0] == "=")
      return 0; // the empty entry has no bytes to compare
    const std::optional<std::string> bytes = decoded(words[0]);
    const bool is_number = words.size() == 2 && words[1].size() <= 11 &&
                           words[1].find_first_not_of("0123456789") == std::string::npos;
    if (!bytes || !is_number || std::stoull(words[1]) > INT32_MAX) {
      fuzz::expect(fault.kind == bpe::Fault::line && fault.index == index, "the fault is told at its line");
      fuzz::expect(found.size() == entry, "entries end before the fault");
      return 0;
    }
    fuzz::expect(entry < found.size() && found[entry] == *bytes && found.ids[entry] == std::stoull(words[1]),
                 "a line is its entry");
    ++entry;
  }
  fuzz::expect(fault.kind == bpe::Fault::none && found.size() == entry, "a good file has no fault");
  return 0;
}
