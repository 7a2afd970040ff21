// Each SIMD variant merges pretokens like a naive merge, without a cache and from the cache.
#include "input.hpp"

#include "encode/encoder.hpp"
#include "simd/simd_variants.hpp"

#include <map>
#include <random>

namespace {

// A byte-level vocabulary of random merges, with the naive merge.
struct Rules {
  std::vector<std::string> entries; // by ID
  std::vector<std::pair<std::string, std::string>> merges;
  std::map<std::pair<std::string, std::string>, size_t> rank_of;
  std::map<std::string, uint32_t> id_of;

  explicit Rules(uint32_t seed) {
    std::mt19937 random(seed);
    for (unsigned byte = 0; byte < 256; ++byte)
      add(std::string(1, static_cast<char>(byte)));
    std::vector<std::string> parts{"a", "b", "c", " ", "-", "\n", "e", "1", "\xe4", "\xb8", "\xad", "\xd0"};
    for (int i = 0; i < 180; ++i) {
      const std::string left = parts[random() % parts.size()], right = parts[random() % parts.size()];
      if (left.size() + right.size() > 40 || rank_of.contains({left, right}))
        continue;
      rank_of[{left, right}] = merges.size();
      merges.emplace_back(left, right);
      if (add(left + right))
        parts.push_back(left + right);
    }
  }

  bool add(const std::string &entry) {
    if (!id_of.try_emplace(entry, static_cast<uint32_t>(entries.size())).second)
      return false;
    entries.push_back(entry);
    return true;
  }

  bpe::Vocabulary vocabulary() const {
    std::vector<bpe::Vocabulary::Entry> views;
    for (uint32_t id = 0; id < entries.size(); ++id)
      views.push_back({id, entries[id]});
    return {views, bpe::Vocabulary::Merges(merges.begin(), merges.end()), false};
  }

  std::vector<uint32_t> merged(std::string_view pretoken) const {
    std::vector<std::string> symbols;
    for (const char byte : pretoken)
      symbols.emplace_back(1, byte);
    for (;;) {
      size_t best_rank = SIZE_MAX, best = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto found = rank_of.find({symbols[i], symbols[i + 1]});
        if (found != rank_of.end() && found->second < best_rank) {
          best_rank = found->second;
          best = i;
        }
      }
      if (best_rank == SIZE_MAX)
        break;
      symbols[best] += symbols[best + 1];
      symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    std::vector<uint32_t> ids;
    for (const std::string &symbol : symbols)
      ids.push_back(id_of.at(symbol));
    return ids;
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct Known {
    explicit Known(uint32_t seed) : rules(seed) {
      for (const std::string &variant : bpe::simd_variant_names())
        for (const size_t cache_bytes : {size_t{0}, size_t{1} << 20}) {
          bpe::choose_simd_variant(variant);
          encoders.push_back(std::make_unique<const bpe::Encoder>(rules.vocabulary(), bpe::FileComponents(),
                                                                  false, cache_bytes));
        }
    }
    const Rules rules;
    std::vector<std::unique_ptr<const bpe::Encoder>> encoders;
  };
  static std::map<uint32_t, std::unique_ptr<const Known>> known;
  fuzz::Input input(data, size);
  const uint32_t seed = input.byte() % 16;
  std::unique_ptr<const Known> &chosen = known[seed];
  if (!chosen)
    chosen = std::make_unique<const Known>(seed);
  std::vector<uint8_t> sizes(1 + input.below(40));
  for (uint8_t &each : sizes)
    each = input.byte();
  const fuzz::Exact text(fuzz::valid_text(input.repeated_rest(1000)));

  std::vector<uint64_t> ends; // sizes above 240 make long pretokens
  std::vector<uint32_t> expected;
  for (size_t i = 0, at = 0; at < text.size(); ++i) {
    const size_t wanted = sizes[i % sizes.size()];
    const size_t stop = std::min(text.size(), at + 1 + (wanted > 240 ? 2 * wanted : wanted % 40));
    for (const uint32_t id : chosen->rules.merged(text.view().substr(at, stop - at)))
      expected.push_back(id);
    ends.push_back(at = stop);
  }
  for (const auto &encoder : chosen->encoders)
    for (int pass = 0; pass < 2; ++pass) { // the second pass finds pretokens in the cache
      const bpe::TokenBuffer ids =
          encoder->encode_pretokens(text.view(), ends.data(), ends.size(), false).tokens;
      fuzz::expect(std::equal(ids.data(), ids.data() + ids.size(), expected.begin(), expected.end()),
                   "pretokens merge by rank");
    }
  return 0;
}
