// The trainer agrees with a full recount of all pairs for each merge, with both tie-break rules.
//
// planted: bpe/native/train/trainer.cpp: `std::max<uint64_t>(1, options` -> `std::max<uint64_t>(2, options`
#include "fuzz_input.hpp"

#include "train/trainer.hpp"

#include <map>
#include <set>
#include <utility>

namespace {

using Pair = std::pair<uint32_t, uint32_t>;

std::vector<bpe::Merge> plain_merges(std::vector<std::vector<uint32_t>> pretokens,
                                     const std::vector<uint64_t> &counts,
                                     const bpe::TrainingOptions &options) {
  std::vector<std::string> entries = options.first_entries;
  std::set<std::string> taken(entries.begin(), entries.end());
  taken.insert(options.reserved.begin(), options.reserved.end());
  std::vector<bpe::Merge> merges;
  while (merges.size() < options.new_entries) {
    std::map<Pair, uint64_t> pairs;
    for (size_t i = 0; i < pretokens.size(); ++i)
      for (size_t k = 0; k + 1 < pretokens[i].size(); ++k)
        pairs[{pretokens[i][k], pretokens[i][k + 1]}] += counts[i];
    const Pair *best = nullptr;
    uint64_t most = 0;
    for (const auto &[pair, count] : pairs) {
      const std::string product = entries[pair.first] + entries[pair.second];
      if (count < std::max<uint64_t>(1, options.min_frequency) || taken.contains(product) ||
          (options.max_token_bytes > 0 && product.size() > options.max_token_bytes))
        continue;
      const bool wins_tie = best && options.tie_break == bpe::TieBreak::lexicographic &&
                            std::pair(entries[pair.first], entries[pair.second]) >
                                std::pair(entries[best->first], entries[best->second]);
      if (!best || count > most ||
          (count == most && wins_tie)) { // pairs ascend, so the first of equal IDs wins
        best = &pair;
        most = count;
      }
    }
    if (!best)
      break;
    const Pair merged = *best;
    merges.push_back({merged.first, merged.second, most});
    const uint32_t id = static_cast<uint32_t>(entries.size());
    entries.push_back(entries[merged.first] + entries[merged.second]);
    taken.insert(entries.back());
    for (std::vector<uint32_t> &pretoken : pretokens)
      for (size_t k = 0; k + 1 < pretoken.size(); ++k)
        if (Pair(pretoken[k], pretoken[k + 1]) == merged) {
          pretoken[k] = id;
          pretoken.erase(pretoken.begin() + static_cast<ptrdiff_t>(k) + 1);
        }
  }
  return merges;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  bpe::TrainingOptions options{};
  options.new_entries = input.below(30);
  options.tie_break = input.flag() ? bpe::TieBreak::huggingface : bpe::TieBreak::lexicographic;
  options.min_frequency = input.below(4);
  options.max_token_bytes = input.below(3) == 0 ? 1 + input.below(8) : 0;
  options.threads = 1;
  options.first_pairs = 1 + input.below(20);
  options.max_tracked_pairs = input.below(3) == 0 ? 1 + input.below(40) : 0;
  options.wide = input.flag();
  for (unsigned byte = 0; byte < 256; ++byte)
    options.first_entries.emplace_back(1, static_cast<char>(byte));
  if (input.flag())
    options.reserved.emplace_back(std::string(input.bytes(2 + input.below(2))));
  if (!options.reserved.empty() && options.reserved[0].size() < 2)
    options.reserved.clear();
  std::string bytes;
  std::vector<uint64_t> ends, counts;
  std::vector<std::vector<uint32_t>> pretokens;
  while (input.left() > 0) {
    const uint8_t head = input.byte();
    std::vector<uint32_t> &pretoken = pretokens.emplace_back();
    for (size_t left = head % 24; left > 0 && input.left() > 0; --left) {
      const uint8_t byte = input.byte();
      pretoken.push_back(head & 128 ? byte : byte % 4 + 'a'); // few letters, for deep merges
      bytes += static_cast<char>(pretoken.back());
    }
    ends.push_back(bytes.size());
    counts.push_back(head / 24 % 5);
  }
  const std::vector<bpe::Merge> found = bpe::train_merges(
      {bpe::bytes_of(bytes), nullptr, ends.data(), counts.data(), ends.size()}, options, [](uint64_t) {});
  const std::vector<bpe::Merge> wanted = plain_merges(std::move(pretokens), counts, options);
  fuzz::expect(std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(),
                          [](const bpe::Merge &a, const bpe::Merge &b) {
                            return a.left == b.left && a.right == b.right && a.count == b.count;
                          }),
               "merges are those of plain counting");
  return 0;
}
