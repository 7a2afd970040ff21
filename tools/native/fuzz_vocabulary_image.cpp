// An image with bytes changed is refused, or makes a vocabulary that encodes within its memory.
//
// planted: bpe/native/vocabulary/pair_table.cpp: `slot >> 43 < symbol_count` -> `slot >> 43 < UINT32_MAX`
#include "fuzz_known.hpp"

#include "common/image.hpp"
#include "encode/encoder.hpp"

#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const fuzz::KnownVocabulary &known = fuzz::vocabulary_of(static_cast<uint32_t>(input.below(32)));
  bpe::ImageWriter written;
  known.vocabulary.write(written);
  std::string image = std::move(written.bytes);
  for (size_t count = input.below(6); count > 0; --count) {
    const size_t place = input.below(65536) % image.size();
    const std::string_view bytes = input.bytes(1 + input.below(8));
    if (count % 3 == 0)
      image.resize(place);
    else
      std::copy_n(bytes.begin(), std::min(bytes.size(), image.size() - place),
                  image.begin() + static_cast<ptrdiff_t>(place));
    if (image.empty())
      break;
  }
  const fuzz::Exact bytes(image);
  try {
    bpe::ImageReader reader(bytes.view());
    bpe::Vocabulary vocabulary(reader);
    const bpe::Encoder encoder(std::move(vocabulary), {}, known.rules.ignore_merges, 1 << 16);
    const fuzz::Exact text(fuzz::valid_text(input.rest()));
    std::vector<uint64_t> ends;
    for (size_t end = 1; end <= text.size(); end += 1 + end / 2)
      ends.push_back(end);
    encoder.encode_pretokens(text.view(), ends.data(), ends.size());
  } catch (const std::invalid_argument &) { // as said
  }
  return 0;
}
