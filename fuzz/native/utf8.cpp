// Every variant validates UTF-8 like a naive reader of code points. Characters in any bytes survive reading
// and writing.
#include "input.hpp"

#include "simd/simd_variants.hpp"

namespace {

size_t first_fault(const uint8_t *text, size_t size) {
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  for (size_t at = 0; at < size;) {
    const uint8_t lead = text[at];
    const size_t length = lead < 0x80       ? 1
                          : lead >> 5 == 6  ? 2
                          : lead >> 4 == 14 ? 3
                          : lead >> 3 == 30 ? 4
                                            : 0;
    if (length == 0 || size - at < length)
      return at;
    uint32_t code_point = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i) {
      if (text[at + i] >> 6 != 2)
        return at;
      code_point = code_point << 6 | (text[at + i] & 63u);
    }
    if (code_point < least[length] || code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000))
      return at;
    at += length;
  }
  return size;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<std::string> variants = bpe::simd_variant_names();
  fuzz::Input input(data, size);
  const size_t before = input.byte();
  const fuzz::Exact text(std::string(before, 'x') + input.repeated_rest(300));
  const size_t expected = first_fault(text.data(), text.size());
  for (const std::string &variant : variants) {
    bpe::choose_simd_variant(variant);
    fuzz::expect(bpe::validate_utf8(text.data(), text.size()) == expected,
                 "validate_utf8 finds the first fault");
  }
  for (const uint8_t *p = text.data(); p < text.stop();) {
    const bpe::Char c = bpe::read_char(p, text.stop());
    fuzz::expect(c.length >= 1 && c.length <= static_cast<size_t>(text.stop() - p) &&
                     c.code_point <= 0x10FFFF,
                 "read_char stays within the text");
    uint8_t written[4];
    if (static_cast<size_t>(p - text.data()) < expected)
      fuzz::expect(bpe::write_utf8(c.code_point, written) == c.length &&
                       std::memcmp(written, p, c.length) == 0,
                   "write_utf8 is the inverse of read_char");
    p += c.length;
  }
  return 0;
}
