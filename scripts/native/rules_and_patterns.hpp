// What the variants are compared on: vocabularies of random merges, and the patterns of write_tables.py.
#pragma once

#include "encode/encoder.hpp"
#include "guarded_text.hpp"
#include "pretokenize/automaton.hpp"

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

struct Rules { // what a Vocabulary is made from
  const char *name;
  std::vector<std::string> entries; // by id
  std::vector<std::pair<std::string, std::string>> merges;
  bool is_rank_file;

  bpe::Vocabulary vocabulary() const { return {views(), merge_views(), true}; }
  bpe::Encoder encoder(const std::shared_ptr<const bpe::Automaton> &automaton, bool ignore_merges,
                       size_t cache_bytes) const {
    const std::vector<bpe::SpecialToken> end{{"<|end|>", static_cast<uint32_t>(entries.size())}};
    return {views(), merge_views(), bpe::AddedTokens(end, end, {}), automaton, ignore_merges, cache_bytes};
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

// A vocabulary of random merges. shuffled: ids and ranks in no order, so a merge may make one of a lower rank
// possible.
inline Rules make_rules(Random &random, const char *name, bool is_rank_file, bool shuffled) {
  Rules rules{name, {}, {}, is_rank_file};
  for (int byte = 0; byte < 256; ++byte)
    rules.entries.emplace_back(1, static_cast<char>(byte));
  std::vector<std::string> parts = {"a", "b", "c", " ",    "-",    "\n",   "e",    "t",
                                    "1", "2", "3", "\xe4", "\xb8", "\xad", "\xd0", "\xb6"};
  std::set<std::string> known(rules.entries.begin(), rules.entries.end());
  while (known.size() < 1200) {
    const std::string left = parts[below(random, parts.size())];
    const std::string right = below(random, 10) == 0 ? left : parts[below(random, parts.size())]; // runs
    const std::string both = left + right;
    if (both.size() > 40 || !known.insert(both).second)
      continue;
    rules.merges.emplace_back(left, right);
    rules.entries.push_back(both);
    parts.push_back(both);
  }
  if (shuffled) {
    std::shuffle(rules.entries.begin() + (is_rank_file ? 256 : 0), rules.entries.end(), random);
    std::shuffle(rules.merges.begin(), rules.merges.end(), random);
  }
  return rules;
}

struct Pattern {
  std::string name;
  std::shared_ptr<const bpe::Automaton> automaton;
};

// What write_tables.py writes.
inline std::vector<Pattern> read_tables(const char *path) {
  std::ifstream file(path);
  const auto number = [&] {
    unsigned value = 0;
    file >> value;
    return value;
  };
  const auto each = [&](const auto &take) {
    for (unsigned left = number(); left > 0 && file; --left)
      take();
  };
  const auto start = [&] {
    const auto age = static_cast<uint8_t>(number()), reg = static_cast<uint8_t>(number());
    return bpe::Automaton::Start{age, reg, static_cast<uint8_t>(number())};
  };
  std::vector<Pattern> patterns;
  for (std::string name; file >> name;) {
    auto made = std::make_shared<bpe::Automaton>();
    each([&] { made->then.push_back(static_cast<uint8_t>(number())); });
    made->initial = static_cast<uint8_t>(number());
    for (unsigned *end : {&made->before_end, &made->both_end, &made->here_end, &made->silent_end})
      *end = number();
    made->drops = false;
    const auto add_starts = [&](bpe::Automaton::Actions &actions) {
      each([&] {
        actions.starts[actions.start_count++] = start();
        made->drops |= actions.starts[actions.start_count - 1].drops != 0;
      });
    };
    each([&] {
      bpe::Automaton::Actions &actions = made->actions.emplace_back();
      add_starts(actions);
      each([&] {
        const auto reg = static_cast<uint8_t>(number());
        actions.moves[actions.move_count++] = {reg, start()};
      });
    });
    each([&] { add_starts(made->at_end.emplace_back()); });
    for (size_t state = 0; state < made->at_end.size(); ++state) {
      bpe::Automaton::Start &oldest = made->oldest_pending.emplace_back();
      oldest = {0, bpe::Automaton::nothing, 0};
      each([&] { oldest = start(); });
    }
    std::vector<uint8_t> runs, pages;
    each([&] { runs.push_back(static_cast<uint8_t>(number())); });
    made->has_runs =
        runs.size() * bpe::Automaton::row == made->then.size() && runs.size() <= sizeof made->runs;
    std::fill(std::begin(made->runs), std::end(made->runs), 0);
    if (made->has_runs)
      std::copy(runs.begin(), runs.end(), made->runs);
    made->cuts.resize(made->then.size()); // texts are not cut here
    each([&] { made->classes.page_of.push_back(static_cast<uint16_t>(number())); });
    each([&] { pages.push_back(static_cast<uint8_t>(number())); });
    made->classes.pages.resize(pages.size() / 64);
    for (size_t page = 0; page < made->classes.pages.size(); ++page)
      std::copy_n(pages.data() + 64 * page, 64, made->classes.pages[page].begin());
    made->complete(made->then.size() / bpe::Automaton::row);
    patterns.push_back({name, std::move(made)});
  }
  return patterns;
}
