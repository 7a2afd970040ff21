// Inputs for comparing variants: vocabularies of random merges, and the patterns of write_tables.py.
#pragma once

#include "encode/encoder.hpp"
#include "guarded_text.hpp"
#include "pattern_tables.hpp"
#include "pretokenize/automaton.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

struct Rules { // arguments of a Vocabulary
  const char *name;
  std::vector<std::string> entries; // by id
  std::vector<std::pair<std::string, std::string>> merges;
  bool is_rank_file;

  bpe::Vocabulary vocabulary() const { return {views(), merge_views(), true}; }
  bpe::Encoder encoder(const std::shared_ptr<const bpe::Automaton> &automaton, bool ignore_merges,
                       size_t cache_bytes) const {
    const std::vector<bpe::SpecialToken> end{{"<|end|>", static_cast<uint32_t>(entries.size())}};
    return {{views(), merge_views(), ignore_merges},
            {bpe::AddedTokens(end, end, {}), automaton, {}, {}},
            ignore_merges,
            cache_bytes};
  }

private:
  std::vector<bpe::Vocabulary::Entry> views() const {
    std::vector<bpe::Vocabulary::Entry> views;
    for (size_t id = 0; id < entries.size(); ++id)
      views.push_back({static_cast<uint32_t>(id), entries[id]});
    return views;
  }
  std::optional<bpe::Vocabulary::Merges> merge_views() const {
    if (is_rank_file)
      return std::nullopt;
    return bpe::Vocabulary::Merges(merges.begin(), merges.end());
  }
};

// Returns a vocabulary of random merges. shuffled: IDs and ranks in random order, so a merge can enable a
// merge of lower rank.
inline Rules make_rules(Random &random, const char *name, bool is_rank_file, bool shuffled) {
  Rules rules{name, {}, {}, is_rank_file};
  for (int byte = 0; byte < 256; ++byte)
    rules.entries.emplace_back(1, static_cast<char>(byte));
  std::set<std::string> known(rules.entries.begin(), rules.entries.end());
  const auto add = [&](const std::string &left, const std::string &right) {
    const std::string both = left + right;
    if (both.size() > 40 || !known.insert(both).second)
      return false;
    rules.merges.emplace_back(left, right);
    rules.entries.push_back(both);
    return true;
  };
  // Characters of one, two and three IDs, their pairs, combinations with a letter, and parts of two adjacent
  // characters.
  std::vector<std::string> characters;
  for (int i = 0; i < 100; ++i) {
    const std::string character = ideograph(random);
    const size_t first = below(random, 2); // the first two bytes merge first, or the last two
    add(character.substr(first, 1), character.substr(first + 1, 1));
    const size_t cut = first == 0 ? 2 : 1;
    if (below(random, 3) > 0 && add(character.substr(0, cut), character.substr(cut)))
      characters.push_back(character);
  }
  for (int i = 0; i < 300; ++i)
    add(characters[below(random, characters.size())], characters[below(random, characters.size())]);
  for (int i = 0; i < 60; ++i)
    add(characters[below(random, characters.size())], std::string(1, "abc"[below(random, 3)]));
  for (int i = 0; i < 30; ++i) {
    const size_t left = below(random, 2) + 1, right = below(random, 2) + 1;
    const std::string last = ideograph(random).substr(left), first = ideograph(random).substr(0, right);
    if (known.contains(last) && known.contains(first))
      add(last, first);
  }
  std::vector<std::string> parts = {"a", "b", "c", " ", "-", "\n", "e", "t", "1", "2", "3", "\xd0", "\xb6"};
  while (known.size() < 1800) {
    const std::string left = parts[below(random, parts.size())];
    const std::string right = below(random, 10) == 0 ? left : parts[below(random, parts.size())]; // runs
    if (add(left, right))
      parts.push_back(left + right);
  }
  if (shuffled) {
    std::shuffle(rules.entries.begin() + (is_rank_file ? 256 : 0), rules.entries.end(), random);
    std::shuffle(rules.merges.begin(), rules.merges.end(), random);
  }
  return rules;
}
