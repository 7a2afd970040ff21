// Small vocabularies from an input, and a naive merge of strings.
#pragma once

#include "fuzz_input.hpp"

#include "vocabulary/vocabulary.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace fuzz {

struct Rules {
  std::vector<std::string> entries;
  std::vector<uint32_t> ids; // of these
  std::vector<std::pair<std::string, std::string>> merges;
  bool is_rank_file = false, ignore_merges = false;
  std::optional<bpe::TextRules> text;

  std::vector<bpe::Vocabulary::Entry> entry_views() const {
    std::vector<bpe::Vocabulary::Entry> views;
    for (size_t i = 0; i < entries.size(); ++i)
      views.push_back({ids[i], entries[i]});
    return views;
  }
  std::optional<bpe::Vocabulary::Merges> merge_views() const {
    if (is_rank_file)
      return std::nullopt;
    return bpe::Vocabulary::Merges(merges.begin(), merges.end());
  }
  bpe::Vocabulary vocabulary() const { return {entry_views(), merge_views(), ignore_merges, text}; }
};

// Adds entries joined from `parts` and from each other, and their merges. Some merges are missing, duplicate
// or out of order.
inline void add_joined(Rules &rules, Input &input, std::vector<std::string> parts, size_t most,
                       std::string_view prefix = "") {
  std::set<std::string> known(rules.entries.begin(), rules.entries.end());
  const uint8_t options = input.byte();
  for (size_t count = input.below(most); count > 0; --count) {
    const std::string left = parts[input.below(parts.size())], right = parts[input.below(parts.size())];
    const std::string product = left + (right.starts_with(prefix) ? right.substr(prefix.size()) : right);
    if (product.size() > 40)
      continue;
    if (!prefix.empty() && !right.starts_with(prefix))
      continue;
    const bool is_new = known.insert(product).second;
    if (is_new) {
      rules.entries.push_back(product);
      parts.push_back(product);
    }
    if (!is_new || count % 8 != 0 || (options & 1) == 0) // otherwise no merge produces it
      rules.merges.emplace_back(left, right);
  }
  if (options & 2)
    std::reverse(rules.merges.begin(), rules.merges.end());
  const uint32_t stride = 1 + options / 4 % 3, first = options / 16 % 4 == 3 ? 1u << 30 : options / 16 % 4;
  for (size_t i = 0; i < rules.entries.size(); ++i)
    rules.ids.push_back(first + stride * static_cast<uint32_t>(i));
  if (options & 128) // products before their parts
    std::reverse(rules.ids.begin() + static_cast<ptrdiff_t>(rules.ids.size() / 2), rules.ids.end());
}

// Returns all 256 bytes and some joined entries.
inline Rules byte_rules(Input &input, size_t most) {
  Rules rules;
  const uint8_t options = input.byte();
  rules.is_rank_file = (options & 1) != 0;
  rules.ignore_merges = (options & 2) != 0;
  for (unsigned byte = 0; byte < 256; ++byte)
    rules.entries.emplace_back(1, static_cast<char>(byte));
  add_joined(
      rules, input,
      {"a", "b", "c", " ", "-", "\n", "e", "t", "1", "2", "\xe4", "\xb8", "\xad", "\xd0", "\xb6", "\x81"},
      most);
  return rules;
}

// Naive merge of one pretoken from its initial symbols, given as entries.
class PlainMerge {
public:
  explicit PlainMerge(const Rules &rules) : rules_(rules) {
    for (size_t i = 0; i < rules.entries.size(); ++i)
      id_of_[rules.entries[i]] = rules.ids[i];
    for (size_t rank = 0; rank < rules.merges.size(); ++rank) // the last rank of a duplicate pair counts
      rank_of_[rules.merges[rank]] = rank;
  }

  std::optional<uint32_t> id_of(const std::string &entry) const {
    const auto found = id_of_.find(entry);
    return found == id_of_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<std::string> merged(std::vector<std::string> symbols) const {
    for (;;) {
      size_t best_rank = SIZE_MAX, best = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i)
        if (const size_t rank = rank_of(symbols[i], symbols[i + 1]); rank < best_rank) {
          best_rank = rank;
          best = i;
        }
      if (best_rank == SIZE_MAX)
        return symbols;
      symbols[best] = joined(symbols[best], symbols[best + 1]);
      symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
  }

  std::vector<uint32_t> of_bytes(std::string_view pretoken) const {
    if (rules_.is_rank_file || rules_.ignore_merges)
      if (const auto whole = id_of(std::string(pretoken)))
        return {*whole};
    return merged_bytes(pretoken);
  }

  // Ignores an entry that equals the pretoken.
  std::vector<uint32_t> merged_bytes(std::string_view pretoken) const {
    std::vector<std::string> symbols;
    for (const char byte : pretoken)
      symbols.emplace_back(1, byte);
    std::vector<uint32_t> ids;
    for (const std::string &symbol : merged(std::move(symbols)))
      ids.push_back(*id_of(symbol));
    return ids;
  }

private:
  std::string joined(const std::string &left, const std::string &right) const {
    const size_t prefix = rules_.text ? rules_.text->prefix.size() : 0;
    return left + right.substr(std::min(prefix, right.size()));
  }
  size_t rank_of(const std::string &left, const std::string &right) const {
    if (rules_.is_rank_file) {
      const auto product = id_of(left + right);
      return product ? *product : SIZE_MAX;
    }
    const auto found = rank_of_.find({left, right});
    return found == rank_of_.end() ? SIZE_MAX : found->second;
  }

  const Rules &rules_;
  std::map<std::string, uint32_t> id_of_;
  std::map<std::pair<std::string, std::string>, size_t> rank_of_;
};

} // namespace fuzz
