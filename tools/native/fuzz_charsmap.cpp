// Charsmaps of random bytes, and valid ones with changed bytes: rejected, or applied to valid text within
// bounds, by the rules of SentencePiece and of Hugging Face tokenizers.
//
// planted: bpe/native/normalize/charsmap_table.cpp: `!first && i + 1 < size` -> `!first && i + 2 < size`
#include "fuzz_input.hpp"

#include "normalize/charsmap.hpp"
#include "normalize/precompiled.hpp"

#include <memory>
#include <stdexcept>

namespace {

// Builds a double array with some transitions and leaves, close to a valid one.
std::string read_charsmap(fuzz::Input &input) {
  const size_t count = 1 + input.below(600);
  std::vector<uint32_t> units(count);
  units[0] = static_cast<uint32_t>(input.below(4)) << 18; // to a block of 256
  for (size_t edges = input.below(24); edges > 0; --edges) {
    const size_t place = input.below(65536) % count;
    const uint32_t next = static_cast<uint32_t>(input.below(65536) % count);
    const uint32_t label =
        input.flag() ? static_cast<uint32_t>(place & 0xFF) : static_cast<uint32_t>(input.byte());
    units[place] =
        label | static_cast<uint32_t>(input.flag()) << 8 | (static_cast<uint32_t>(place) ^ next) << 10;
    if (input.flag())
      units[next] = 1u << 31 | static_cast<uint32_t>(input.below(30));
  }
  const uint32_t bytes = static_cast<uint32_t>(4 * count);
  std::string charsmap(reinterpret_cast<const char *>(&bytes), 4);
  charsmap.append(reinterpret_cast<const char *>(units.data()), 4 * count);
  return charsmap + std::string("a\0\0\xC3\xA9 x\0bc\0\xE4\xB8\xAD\0  \0", 18);
}

template <class Rule> void apply(std::string_view charsmap, const fuzz::Exact &text) {
  std::unique_ptr<const Rule> rule;
  try {
    rule = std::make_unique<const Rule>(charsmap);
  } catch (const std::invalid_argument &) { // as said
    return;
  }
  const size_t same = rule->first_change(text.data(), text.size());
  fuzz::expect(same <= text.size(), "a change is within the text");
  bpe::ByteBuffer whole, rest;
  rule->append(text.data(), text.size(), whole);
  rest.append(text.data(), same);
  rule->append(text.data() + same, text.size() - same, rest);
  const auto view = [](const bpe::ByteBuffer &buffer) {
    return std::string_view(reinterpret_cast<const char *>(buffer.data()), buffer.size());
  };
  fuzz::expect(view(whole) == view(rest), "what is before the first change stays as it is");
  fuzz::expect(bpe::validate_utf8(whole.data(), whole.size()) == whole.size(), "valid text comes out");
  fuzz::expect(whole.size() <= text.size() * rule->max_growth(), "it grows as is said at most");
}

// Compares with SentencePiece's rule, with a lookup at each offset.
void check_longest(std::string_view charsmap, const fuzz::Exact &text) {
  try {
    const bpe::CharsmapTable table(charsmap);
    std::string wanted;
    for (const uint8_t *p = text.data(); p < text.stop();) {
      const size_t left = static_cast<size_t>(text.stop() - p);
      const auto found = table.longest(p, left);
      const size_t size = found ? found->key_bytes : bpe::read_char(p, text.stop()).length;
      wanted += found ? found->text : std::string_view(reinterpret_cast<const char *>(p), size);
      p += size;
    }
    bpe::ByteBuffer out;
    bpe::Charsmap(charsmap).append(text.data(), text.size(), out);
    fuzz::expect(std::string_view(reinterpret_cast<const char *>(out.data()), out.size()) == wanted,
                 "at each place the longest key gives way to its text");
  } catch (const std::invalid_argument &) { // as said
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t options = input.byte();
  const bool any_bytes = options % 4 == 0;
  const size_t text_bytes = input.below(64);
  const fuzz::Exact text(fuzz::valid_text(input.bytes(text_bytes)));
  const fuzz::Exact charsmap(any_bytes ? std::string(input.rest()) : read_charsmap(input));
  apply<bpe::Charsmap>(charsmap.view(), text);
  check_longest(charsmap.view(), text);
  if (options / 4 % 16 == 0) // which looks at each code point first
    apply<bpe::Precompiled>(charsmap.view(), text);
  return 0;
}
