// Charsmaps of random bytes, and nearly valid ones: rejected, or applied within bounds, as in SentencePiece
// and in Hugging Face tokenizers.
#include "input.hpp"

#include "normalize/charsmap.hpp"
#include "normalize/precompiled.hpp"

#include <stdexcept>

namespace {

// Builds a double array with some transitions and leaves.
std::string read_charsmap(fuzz::Input &input) {
  const size_t count = 1 + input.below(600);
  std::vector<uint32_t> units(count);
  units[0] = static_cast<uint32_t>(input.below(4)) << 18; // offset of a block of 256
  for (size_t edges = input.below(24); edges > 0; --edges) {
    const size_t place = input.below(65536) % count;
    const uint32_t next = static_cast<uint32_t>(input.below(65536) % count);
    const uint32_t label = input.flag() ? static_cast<uint32_t>(place & 0xFF) : uint32_t{input.byte()};
    units[place] = label | uint32_t{input.flag()} << 8 | (static_cast<uint32_t>(place) ^ next) << 10;
    if (input.flag())
      units[next] = 1u << 31 | static_cast<uint32_t>(input.below(30));
  }
  const uint32_t bytes = static_cast<uint32_t>(4 * count);
  std::string charsmap(reinterpret_cast<const char *>(&bytes), 4);
  charsmap.append(reinterpret_cast<const char *>(units.data()), 4 * count);
  return charsmap + std::string("a\0\0\xC3\xA9 x\0bc\0\xE4\xB8\xAD\0  \0", 18);
}

template <class Step> void apply(std::string_view charsmap, const fuzz::Exact &text) {
  std::unique_ptr<const Step> step;
  try {
    step = std::make_unique<const Step>(charsmap);
  } catch (const std::invalid_argument &) {
    return;
  }
  const size_t same = step->first_change(text.data(), text.size());
  fuzz::expect(same <= text.size(), "the first change is within the text");
  bpe::ByteBuffer whole, rest;
  step->append(text.data(), text.size(), whole);
  rest.append(text.data(), same);
  step->append(text.data() + same, text.size() - same, rest);
  fuzz::expect(whole.size() == rest.size() &&
                   std::equal(whole.data(), whole.data() + whole.size(), rest.data()),
               "text before the first change stays");
  fuzz::expect(bpe::validate_utf8(whole.data(), whole.size()) == whole.size(), "the output is UTF-8");
  fuzz::expect(whole.size() <= text.size() * step->max_growth(), "the output grows by max_growth at most");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t options = input.byte();
  const bool as_bytes = options % 4 == 0;
  const size_t text_bytes = input.below(64);
  const fuzz::Exact text(fuzz::valid_text(input.bytes(text_bytes)));
  const fuzz::Exact charsmap(as_bytes ? std::string(input.rest()) : read_charsmap(input));
  apply<bpe::Charsmap>(charsmap.view(), text);
  if (options / 4 % 16 == 0) // its constructor looks up each code point
    apply<bpe::Precompiled>(charsmap.view(), text);
  return 0;
}
