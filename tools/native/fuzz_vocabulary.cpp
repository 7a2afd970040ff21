// Small random vocabularies merge by their rules, and survive writing and reading as a tokenizer.json.
//
// planted: bpe/native/vocabulary/model_text.cpp: `at_ += 2` -> `at_ += 3`
#include "fuzz_rules.hpp"

#include "merge/merge_by_heap.hpp"
#include "vocabulary/entry_file.hpp"
#include "vocabulary/model_text.hpp"

namespace {

template <class Writer> std::string written(Writer writer, size_t piece_bytes) {
  std::string all, piece;
  while (piece.clear(), writer.next(piece, piece_bytes))
    all += piece;
  return all;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const fuzz::Rules rules = fuzz::byte_rules(input, 60);
  const fuzz::PlainMerge plain(rules);
  const bool as_pairs = input.flag();
  const size_t piece_bytes = 2 + input.below(3000);
  const bpe::Vocabulary vocabulary = rules.vocabulary();
  const std::string vocab = written(bpe::VocabText(vocabulary, {}), piece_bytes);
  const std::string merges = written(bpe::MergesText(vocabulary, as_pairs), piece_bytes);
  const std::string document = "{\"model\":{\"vocab\":" + vocab + ",\"merges\":" + merges + "}}";
  bpe::EntryFile model = bpe::EntryFile::from_model_json(document);
  fuzz::expect(model.fault().kind == bpe::Fault::none && !model.spell_bytes() && model.texts().empty(),
               "what is written is read");
  std::map<uint32_t, std::string> entries;
  for (size_t i = 0; i < rules.entries.size(); ++i)
    entries[rules.ids[i]] = rules.entries[i];
  fuzz::expect(model.entries().size() == entries.size(), "all entries are written");
  for (size_t i = 0; i < model.entries().size(); ++i)
    fuzz::expect(entries[model.entries().ids[i]] == model.entries()[i], "an entry is written as it is");
  if (!rules.is_rank_file) {
    std::map<std::pair<std::string, std::string>, size_t> last; // the last rank of a duplicate pair counts
    for (size_t i = 0; i < rules.merges.size(); ++i)
      last[rules.merges[i]] = i;
    size_t count = 0;
    for (size_t i = 0; i < rules.merges.size(); ++i) {
      if (last[rules.merges[i]] != i)
        continue;
      fuzz::expect(count < model.merge_count() && model.merge_part(2 * count) == rules.merges[i].first &&
                       model.merge_part(2 * count + 1) == rules.merges[i].second,
                   "merges are written in their order");
      ++count;
    }
    fuzz::expect(model.merge_count() == count, "no merge is made up");
  }

  bpe::HeapMerge heap;
  const fuzz::Exact text(input.rest());
  for (const bpe::Vocabulary *const each : {&vocabulary, &again}) {
    if (text.size() == 0)
      break;
    std::vector<uint32_t> ids;
    for (const uint32_t symbol : heap.merge(*each, text.data(), text.size()))
      ids.push_back(each->id(symbol));
    fuzz::expect(ids == plain.merged_bytes(text.view()), "bytes are merged as the rules say");
  }
  return 0;
}
