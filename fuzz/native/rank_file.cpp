// The reader of rank files accepts any bytes, and the entries it returns survive writing and reading.
#include "input.hpp"

#include "vocabulary/entry_file.hpp"

namespace {

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < three.size() ? static_cast<uint8_t>(three[i]) : 0u);
    for (size_t i = 0; i < 4; ++i)
      text += i <= three.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz::Exact file({reinterpret_cast<const char *>(data), size});
  const bpe::EntryFile read = bpe::EntryFile::from_rank_file(file.view());
  std::string written;
  for (size_t i = 0; i < read.entries().size(); ++i) {
    fuzz::expect(read.entries().ids[i] <= INT32_MAX, "IDs are at most 2^31 - 1");
    const std::string word = base64(read.entries()[i]);
    written += (word.empty() ? "=" : word) + " " + std::to_string(read.entries().ids[i]) + "\n";
  }
  const bpe::EntryFile again = bpe::EntryFile::from_rank_file(written);
  fuzz::expect(again.fault().kind == bpe::Fault::none && again.entries().ids == read.entries().ids,
               "IDs survive writing and reading");
  for (size_t i = 0; i < again.entries().size(); ++i)
    fuzz::expect(again.entries()[i] == read.entries()[i], "entries survive writing and reading");
  return 0;
}
