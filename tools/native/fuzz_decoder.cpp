// IDs of a byte-level vocabulary with special tokens decode to the concatenated entries. The error for an
// unknown ID has its index.
//
// planted: bpe/native/encode/decoder.cpp: `ids_.end() && *item == id` -> `ids_.end()`
#include "fuzz_known.hpp"

#include "encode/decoder.hpp"

#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const fuzz::KnownVocabulary &known = fuzz::vocabulary_of(static_cast<uint32_t>(input.below(64)));
  std::map<int64_t, std::string> entries;
  for (size_t i = 0; i < known.rules.entries.size(); ++i)
    entries[known.rules.ids[i]] = known.rules.entries[i];
  std::vector<bpe::SpecialToken> special;
  for (size_t count = input.below(4); count > 0; --count) {
    const uint32_t id = static_cast<uint32_t>(input.below(65536) << input.below(16));
    const std::string text = "<" + std::string(input.bytes(input.below(40))) + ">";
    if (entries.try_emplace(id, text).second)
      special.push_back({text, id});
  }
  const bpe::Decoder decoder(known.vocabulary, special);
  std::vector<int64_t> known_ids;
  for (const auto &[id, text] : entries)
    known_ids.push_back(id);
  std::vector<int64_t> ids;
  std::string wanted;
  size_t first_unknown = SIZE_MAX;
  while (input.left() > 0) {
    const size_t which = input.below(65536);
    ids.push_back(known_ids[which % known_ids.size()] +
                  (which >> 8 == 255 ? 1 - static_cast<int64_t>(which % 3) : 0));
    const auto found = entries.find(ids.back());
    if (found == entries.end())
      first_unknown = std::min(first_unknown, ids.size() - 1);
    else
      wanted += found->second;
  }
  try {
    const size_t bytes = decoder.size_of(ids.data(), ids.size());
    fuzz::expect(first_unknown == SIZE_MAX && bytes == wanted.size(),
                 "known ids have the size of their entries");
    std::unique_ptr<char[]> out(new char[bytes]);
    decoder.write(ids.data(), ids.size(), out.get());
    fuzz::expect(std::string_view(out.get(), bytes) == wanted, "ids decode to their entries");
  } catch (const std::invalid_argument &error) {
    fuzz::expect(first_unknown != SIZE_MAX, "known ids are decoded");
    fuzz::expect(std::string(error.what())
                     .starts_with("ids[" + std::to_string(first_unknown) +
                                  "] = " + std::to_string(ids[first_unknown]) + " "),
                 "the first unknown id is named");
  }
  return 0;
}
