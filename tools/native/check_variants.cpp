// Compares every SIMD variant of this machine with the portable one. scripts/check_neon builds and runs this.
//
//   check_variants TABLES [ROUNDS] [SEED]     default: 5 rounds, seed 1; prints counts, exits 0 or 1
//
// TABLES is the output of write_tables.py. Each variant pretokenizes, validates, merges and encodes seeded
// texts and searches them for special tokens. Sizes are around the widths of the variants. References are a
// search at every offset, merge_by_heap.hpp (which has no variants), and the decoded text. Texts touch an
// inaccessible page at either end, so a read out of bounds crashes.
#include "guarded_text.hpp"
#include "merge/merge_by_heap.hpp"
#include "pretokenize/text_window.hpp"
#include "rules_and_patterns.hpp"
#include "simd/simd_variants.hpp"
#include "text/special_tokens.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Check {
  size_t compared = 0, unequal = 0;
  // Prints the first few differences.
  void expect(bool equal, const char *variant, const char *what, size_t size) {
    ++compared;
    if (!equal && ++unequal <= 10)
      std::printf("error: %s differs in %s, %zu bytes (number %zu)\n", variant, what, size, compared);
  }
};

std::vector<uint64_t> pretoken_ends(const bpe::Automaton &automaton, const GuardedText &text) {
  const auto window = std::make_unique<bpe::TextWindow>(automaton);
  const uint8_t *const bytes = reinterpret_cast<const uint8_t *>(text.view().data());
  std::vector<uint64_t> ends;
  window->for_each_piece(bytes, text.size(), bytes + text.size(),
                         [&](size_t, size_t stop, bool) { ends.push_back(stop); });
  return ends;
}

Check check_pretokenizers(const std::string &variant, const std::vector<Pattern> &patterns,
                          const std::deque<GuardedText> &texts) {
  Check check;
  for (const GuardedText &text : texts)
    for (const Pattern &pattern : patterns) {
      bpe::choose_simd_variant("portable");
      const auto wanted = pretoken_ends(*pattern.automaton, text);
      bpe::choose_simd_variant(variant);
      const auto found = pretoken_ends(*pattern.automaton, text);
      const bool whole = text.size() == 0 ? found.empty() : !found.empty() && found.back() == text.size();
      check.expect(found == wanted && whole, variant.c_str(), pattern.name.c_str(), text.size());
    }
  return check;
}

void compare_validation(Check &check, const std::string &variant, const uint8_t *text, size_t size) {
  bpe::choose_simd_variant("portable");
  const size_t wanted = bpe::validate_utf8(text, size);
  bpe::choose_simd_variant(variant);
  check.expect(bpe::validate_utf8(text, size) == wanted, variant.c_str(), "validate_utf8", size);
}

// Checks the texts, copies with replaced bytes, and every prefix of a character across block boundaries.
Check check_validation(const std::string &variant, const std::deque<GuardedText> &texts, Random &random) {
  Check check;
  for (const GuardedText &text : texts) {
    std::string bytes(text.view());
    for (int faults = 0; faults < 4; ++faults) {
      GuardedText copy(bytes, faults % 2 == 0);
      compare_validation(check, variant, copy.data(), copy.size());
      if (!bytes.empty())
        bytes[below(random, bytes.size())] = static_cast<char>(below(random, 256));
    }
  }
  GuardedText text(std::string(210, 'x'), true);
  constexpr uint8_t edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xED, 0xFF};
  size_t turn = 0;
  for (unsigned first = 0x78; first < 0x100; ++first)
    for (unsigned second = 0; second < 0x100; ++second)
      for (const uint8_t third : edges) {
        constexpr size_t places[] = {62, 63, 61, 78, 79, 77, 95, 130, 206};
        uint8_t *const at = text.data() + places[turn % std::size(places)];
        const uint8_t four[] = {static_cast<uint8_t>(first), static_cast<uint8_t>(second), third,
                                edges[turn / 9 % std::size(edges)]};
        ++turn;
        std::memcpy(at, four, 4);
        compare_validation(check, variant, text.data(), text.size());
        std::memset(at, 'x', 4);
      }
  return check;
}

using Found = std::vector<std::pair<size_t, size_t>>; // offsets and tokens

Found search_each_place(const std::vector<std::string> &tokens, std::string_view text) {
  Found found;
  for (size_t place = 0; place < text.size();) {
    size_t longest = tokens.size();
    for (size_t token = 0; token < tokens.size(); ++token)
      if (text.substr(place).starts_with(tokens[token]) &&
          (longest == tokens.size() || tokens[token].size() > tokens[longest].size()))
        longest = token;
    if (longest < tokens.size())
      found.emplace_back(place, longest);
    place += longest < tokens.size() ? tokens[longest].size() : 1;
  }
  return found;
}

// Tokens are pieces of the text, so they occur. They share a first byte or have different ones.
Check check_special_tokens(const std::string &variant, const std::deque<GuardedText> &texts, Random &random) {
  Check check;
  bpe::choose_simd_variant(variant);
  for (const GuardedText &text : texts) {
    const std::string_view view = text.view();
    std::set<std::string> distinct{"<|end|>"};
    for (size_t left = below(random, 30); left > 0 && !view.empty(); --left)
      distinct.emplace(view.substr(below(random, view.size()), 1 + below(random, 6)));
    const std::vector<std::string> tokens(distinct.begin(), distinct.end());
    std::vector<bpe::SpecialToken> values;
    for (size_t token = 0; token < tokens.size(); ++token)
      values.push_back({tokens[token], static_cast<uint32_t>(token)});
    const bpe::SpecialTokens special(std::move(values));
    bpe::SpecialTokens::Search search(special, bpe::bytes_of(view), view.size());
    Found found;
    for (bpe::SpecialTokens::Match match; (match = search.next()).value != bpe::no_special;)
      found.emplace_back(match.start, match.value);
    check.expect(found == search_each_place(tokens, view), variant.c_str(), "special tokens", text.size());
  }
  return check;
}

// Returns a few runs. Every other run has only a few distinct letters.
std::string make_runs(Random &random, size_t size) {
  std::string text;
  const size_t letters = below(random, 4) + 1, longest = size_t{1} << (below(random, 9) + 2);
  while (text.size() < size)
    text.append(below(random, longest) + 1, "-a b"[below(random, letters)]);
  return text.substr(0, size);
}

Check check_single_merges(const std::string &variant, const Rules &rules, Random &random, size_t rounds) {
  Check check;
  bpe::choose_simd_variant(variant);
  const bpe::Vocabulary vocabulary = rules.vocabulary();
  const bpe::MergeTables tables = vocabulary.merge_tables();
  const auto scratch = std::make_unique<bpe::RankMergeScratch>();
  bpe::HeapMerge heap;
  std::vector<size_t> sizes;
  for (size_t size = 1; size <= 200; ++size)
    sizes.push_back(size);
  for (const size_t width : {256, 512, 1024, 2048, 4032})
    for (size_t size = width - 3; size <= width + 3; ++size)
      sizes.push_back(size);
  for (size_t size = bpe::max_rank_merge_bytes - 3; size <= bpe::max_rank_merge_bytes; ++size)
    sizes.push_back(size);
  for (size_t round = 0; round < rounds; ++round)
    for (const size_t size : sizes) {
      GuardedText text(below(random, 2) == 0 ? make_text(random, size) : make_runs(random, size), true);
      std::memset(scratch.get(), static_cast<int>(below(random, 256)),
                  sizeof *scratch); // it says it holds nothing
      std::vector<uint32_t> found(size);
      bpe::PretokenMerge merge{text.data(), static_cast<uint32_t>(size), 0, found.data()};
      bpe::simd_variant().merge_pretokens(tables, &merge, 1, *scratch);
      found.resize(merge.count);
      check.expect(found == heap.merge(vocabulary, text.data(), size), variant.c_str(),
                   "merge_rank_at_a_time", size);
    }
  return check;
}

// Merges many at once, with sizes around the widths of lanes and bit words, including runs and duplicates.
Check check_merges(const std::string &variant, const Rules &rules, Random &random, size_t rounds) {
  Check check;
  bpe::choose_simd_variant(variant);
  const bpe::Vocabulary vocabulary = rules.vocabulary();
  const bpe::MergeTables tables = vocabulary.merge_tables();
  const auto scratch = std::make_unique<bpe::RankMergeScratch>();
  bpe::HeapMerge heap;
  constexpr uint32_t guard = 0xABCDEF01; // after each buffer
  for (size_t round = 0; round < rounds * 40; ++round) {
    const size_t count = round < 70 ? round : below(random, 400);
    constexpr size_t longest[] = {16, 40, 70, 140, 300};
    const size_t stop = longest[below(random, std::size(longest))] + 1;
    std::deque<GuardedText> texts;
    std::vector<std::vector<uint32_t>> rooms(count);
    std::vector<bpe::PretokenMerge> merges(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t size =
          below(random, 50) == 0 ? below(random, bpe::max_rank_merge_bytes) + 1 : below(random, stop - 1) + 1;
      std::string text = make_text(random, size);
      const size_t kind = below(random, 8);
      if (kind == 0 || (kind < 5 && round % 2 == 0))
        text = make_runs(random, size);
      else if (kind == 1 && i > 0)
        text = texts.back().view();
      texts.emplace_back(text, below(random, 2) == 0);
      rooms[i].assign(text.size() + 1, guard);
      merges[i] = {texts.back().data(), static_cast<uint32_t>(text.size()), guard, rooms[i].data()};
    }
    std::memset(scratch.get(), static_cast<int>(below(random, 256)), sizeof *scratch);
    bpe::simd_variant().merge_pretokens(tables, merges.data(), count, *scratch);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<uint32_t> &wanted = heap.merge(vocabulary, texts[i].data(), merges[i].size);
      check.expect(merges[i].count == wanted.size() && rooms[i].back() == guard &&
                       std::equal(wanted.begin(), wanted.end(), rooms[i].begin()),
                   variant.c_str(), "merging pretokens at once", merges[i].size);
    }
  }
  return check;
}

std::vector<uint32_t> encode_all(const Rules &rules, const Pattern &pattern, bool ignore_merges,
                                 const std::deque<GuardedText> &texts) {
  const bpe::Encoder encoder = rules.encoder(pattern.automaton, ignore_merges, size_t{8} << 20);
  std::vector<uint32_t> ids, row;
  for (int warm = 0; warm < 2; ++warm) // first pass: merged; second pass: cached
    for (const GuardedText &text : texts) {
      row.clear();
      encoder.encode(text.view(), encoder.components().added_tokens, row);
      std::string decoded;
      for (const uint32_t id : row)
        decoded += id < rules.entries.size() ? rules.entries[id] : "<|end|>";
      ids.insert(ids.end(), row.begin(), row.end());
      ids.push_back(decoded == text.view() ? UINT32_MAX
                                           : UINT32_MAX - 1); // where a row ends, and whether it is sound
    }
  return ids;
}

Check check_encoding(const std::string &variant, const Rules &rules, const std::vector<Pattern> &patterns,
                     const std::deque<GuardedText> &texts) {
  Check check;
  for (const Pattern &pattern : patterns)
    for (const bool ignore_merges : {false, true}) {
      bpe::choose_simd_variant("portable");
      const auto wanted = encode_all(rules, pattern, ignore_merges, texts);
      bpe::choose_simd_variant(variant);
      const auto found = encode_all(rules, pattern, ignore_merges, texts);
      check.expect(found == wanted, variant.c_str(), pattern.name.c_str(), texts.size());
      check.expect(std::count(found.begin(), found.end(), UINT32_MAX - 1) == 0, variant.c_str(), "decoding",
                   0);
    }
  return check;
}

} // namespace

int main(int argc, char **argv) {
  const size_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 5;
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const std::vector<Pattern> patterns = read_tables(argc > 1 ? argv[1] : "");
  if (rounds == 0 || patterns.empty() || argc > 4) {
    std::fprintf(stderr, "usage: check_variants TABLES [ROUNDS] [SEED], ROUNDS at least 1\n");
    return 2;
  }
  alarm(900); // a wrong mask can cause an endless loop
  Random random(seed);
  std::deque<GuardedText> texts;
  const std::vector<size_t> sizes = sizes_around_widths();
  for (size_t round = 0; round < rounds; ++round)
    for (const size_t size : sizes)
      texts.emplace_back(make_text(random, size), (round + size) % 4 != 0);
  const Rules all_rules[] = {make_rules(random, "listed merges", false, false),
                             make_rules(random, "listed merges, shuffled", false, true),
                             make_rules(random, "rank file", true, false),
                             make_rules(random, "rank file, shuffled", true, true)};

  size_t unequal = 0, variants = 0;
  for (const std::string &variant : bpe::simd_variant_names()) {
    const auto report = [&](const char *what, const char *rules, const Check &check) {
      std::printf("%s: %s%s%s: %zu compared, %zu unequal\n", variant.c_str(), what, *rules ? ", " : "", rules,
                  check.compared, check.unequal);
      std::fflush(stdout);
      unequal += check.unequal;
    };
    const bool is_portable = variant == "portable"; // the reference for the others, except for merges
    variants += !is_portable;
    if (!is_portable) {
      report("pretokenizers", "", check_pretokenizers(variant, patterns, texts));
      report("UTF-8 validation", "", check_validation(variant, texts, random));
    }
    report("special tokens", "", check_special_tokens(variant, texts, random));
    for (const Rules &rules : all_rules) {
      report("merge_rank_at_a_time", rules.name, check_single_merges(variant, rules, random, rounds));
      report("merging pretokens at once", rules.name, check_merges(variant, rules, random, rounds));
      if (!is_portable)
        report("encoding", rules.name, check_encoding(variant, rules, patterns, texts));
    }
  }
  std::printf("%zu variants compared with the portable one, %zu texts, seed %llu: %zu unequal\n", variants,
              texts.size(), static_cast<unsigned long long>(seed), unequal);
  return unequal == 0 && variants > 0 ? 0 : 1;
}
