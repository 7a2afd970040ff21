// Texts encode like their pretokens with a naive merge: by one of this machine's variants, without and with
// the cache, singly, as rows and as documents, with special tokens.
//
// Two bytes determine the vocabulary, which is cached for other inputs with these bytes.
//
// planted: bpe/native/encode/cut_long_pretokens.cpp: `return vocabulary_.may_join(p[-1], p[0])` -> `return
// false`
#include "fuzz_known.hpp"
#include "fuzz_patterns.hpp"
#include "plain_pieces.hpp"

#include "encode/encoder.hpp"
#include "simd/simd_variants.hpp"

namespace {

constexpr std::string_view special_text = "<|end|>", separator = "\n\n";
constexpr uint32_t special_id = 2'000'000'000;

// Recognizes the special token if `special`.
std::vector<uint32_t> plain_ids(const fuzz::KnownVocabulary &known, const bpe::Automaton &automaton,
                                std::string_view text, bool special) {
  std::vector<uint32_t> ids;
  for (size_t at = 0; at <= text.size();) {
    const size_t stop = special ? std::min(text.find(special_text, at), text.size()) : text.size();
    const std::string_view part = text.substr(at, stop - at);
    for (const std::string_view pretoken : fuzz::kept(fuzz::plain_pieces(automaton, part), part))
      for (const uint32_t id : known.plain.of_bytes(pretoken))
        ids.push_back(id);
    if (stop == text.size())
      break;
    ids.push_back(special_id);
    at = stop + special_text.size();
  }
  return ids;
}

std::vector<uint32_t> row(const bpe::EncodedRows &rows, size_t number) {
  return {rows.tokens.data() + rows.offsets[number], rows.tokens.data() + rows.offsets[number + 1]};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<std::string> variants = bpe::simd_variant_names();
  fuzz::Input input(data, size);
  const fuzz::KnownVocabulary &known = fuzz::vocabulary_of(static_cast<uint32_t>(input.below(65536)));
  const auto &automaton = fuzz::patterns()[input.below(fuzz::patterns().size())].automaton;
  bpe::choose_simd_variant(variants[input.below(variants.size())]);
  const bool special = input.flag(), small_cache = input.flag();
  const fuzz::Exact text(fuzz::text_of_rest(input, 300));
  const std::vector<bpe::SpecialToken> tokens = {{std::string(special_text), special_id}};
  const bpe::AddedTokens added(tokens, tokens, {}), none;
  const bpe::Encoder encoder(known.vocabulary, {added, automaton, {}, {}}, known.rules.ignore_merges,
                             small_cache ? 0 : size_t{1} << 20);
  const bpe::AddedTokens &chosen = special ? added : none;

  const std::vector<uint32_t> wanted = plain_ids(known, *automaton, text.view(), special);
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<uint32_t> ids;
    encoder.encode(text.view(), chosen, ids);
    fuzz::expect(ids == wanted, "ids are those of the plain rule");
  }
  const bpe::EncodedRows batch = encoder.encode_batch({text.view(), "", text.view()}, 1, chosen);
  fuzz::expect(batch.offsets.size() == 4 && row(batch, 0) == wanted && row(batch, 1).empty() &&
                   row(batch, 2) == wanted,
               "rows are encoded as texts");
  const bpe::EncodedRows documents = encoder.encode_documents(text.view(), separator, 1, chosen, true);
  size_t at = 0, number = 0;
  for (; at <= text.size(); ++number) {
    const size_t stop = std::min(text.view().find(separator, at), text.size());
    fuzz::expect(number + 1 < documents.offsets.size() &&
                     row(documents, number) ==
                         plain_ids(known, *automaton, text.view().substr(at, stop - at), special),
                 "documents are encoded as texts");
    if (stop == text.size())
      break;
    at = stop + separator.size();
  }
  fuzz::expect(number + 2 == documents.offsets.size(), "a row for each document");
  return 0;
}
