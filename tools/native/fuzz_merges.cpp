// Every variant merges many short and long pretokens at once like a naive merge.
//
// Two bytes determine the vocabulary, which is cached for other inputs with these bytes.
//
// planted: bpe/native/vocabulary/pair_table.cpp: `static_cast<uint16_t>(displacement)` -> `displacement & 1`
#include "fuzz_known.hpp"

#include "merge/long_merge.hpp"
#include "merge/merge_by_heap.hpp"
#include "simd/simd_variants.hpp"

namespace {

// Symbols of a pretoken that is not an entry.
std::vector<uint32_t> ids_of(const bpe::Vocabulary &vocabulary, const uint32_t *symbols, size_t count) {
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(vocabulary.id(symbols[i]));
  return ids;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<std::string> variants = bpe::simd_variant_names();
  static const auto scratch = std::make_unique<bpe::RankMergeScratch>();
  fuzz::Input input(data, size);
  const fuzz::KnownVocabulary &known = fuzz::vocabulary_of(static_cast<uint32_t>(input.below(65536)));
  const bpe::MergeTables tables = known.vocabulary.merge_tables();
  std::vector<fuzz::Exact> pretokens;
  while (input.left() > 0 && pretokens.size() < 512) {
    const uint8_t options = input.byte();
    std::string bytes(input.bytes(1 + options % 32));
    if (options >= 240) // too long for the lanes
      bytes = fuzz::stretched(input, bytes, 700);
    if (!bytes.empty())
      pretokens.emplace_back(bytes);
  }
  std::vector<std::vector<uint32_t>> wanted;
  bpe::HeapMerge heap;
  for (const fuzz::Exact &pretoken : pretokens) {
    wanted.push_back(known.plain.merged_bytes(pretoken.view()));
    const std::vector<uint32_t> &symbols = heap.merge(known.vocabulary, pretoken.data(), pretoken.size());
    fuzz::expect(ids_of(known.vocabulary, symbols.data(), symbols.size()) == wanted.back(),
                 "the heap merges as the plain rule");
  }
  for (const std::string &variant : variants) {
    bpe::choose_simd_variant(variant);
    const bpe::SimdVariant &chosen = bpe::simd_variant();
    std::vector<bpe::PretokenMerge> merges;
    std::vector<std::unique_ptr<uint32_t[]>> rooms;
    for (const fuzz::Exact &pretoken : pretokens) {
      rooms.emplace_back(new uint32_t[pretoken.size()]);
      merges.push_back({pretoken.data(), static_cast<uint32_t>(pretoken.size()), 0, rooms.back().get()});
    }
    const auto check = [&](size_t i, const char *what) {
      fuzz::expect(ids_of(known.vocabulary, merges[i].symbols, merges[i].count) == wanted[i], what);
    };
    chosen.merge_pretokens(tables, merges.data(), merges.size(), *scratch);
    for (size_t i = 0; i < merges.size(); ++i) {
      check(i, "pretokens are merged as the plain rule");
      chosen.merge_pretokens(tables, &merges[i], 1, *scratch);
      check(i, "a single pretoken is merged as the plain rule");
    }
  }
  return 0;
}
