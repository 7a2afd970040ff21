// Does every SIMD variant of this machine do what the portable one does? scripts/check_neon builds and runs
// this.
//
//   check_variants TABLES [ROUNDS] [SEED]     5 rounds and seed 1 unless given; prints counts, exits 0 or 1
//
// TABLES are those of the patterns (write_tables.py). Seeded texts of sizes around the widths the
// variants work in are pretokenized, validated, merged and encoded by each variant. Merging is compared with
// merge_by_heap.hpp, which has no variants, and encoding with the text as well. Texts lie flush with pages
// that may not be read, at either end, so a read outside ends the program.
#include "encode/encoder.hpp"
#include "merge/merge_by_heap.hpp"
#include "pretokenize/text_window.hpp"
#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

using Random = std::mt19937_64;

size_t below(Random &random, size_t stop) {
  return random() % stop;
}

// A text whose last byte, or first, borders on a page that may not be read.
class GuardedText {
public:
  GuardedText(const std::string &text, bool at_end) : size_(text.size()) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t room = (text.size() + page - 1) / page * page;
    mapped_ = room + 2 * page;
    void *const place = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
      std::abort();
    start_ = static_cast<uint8_t *>(place);
    if (room > 0 && mprotect(start_ + page, room, PROT_READ | PROT_WRITE) != 0)
      std::abort();
    data_ = start_ + page + (at_end ? room - text.size() : 0);
    if (!text.empty())
      std::memcpy(data_, text.data(), text.size());
  }
  ~GuardedText() { munmap(start_, mapped_); }
  GuardedText(const GuardedText &) = delete;
  GuardedText &operator=(const GuardedText &) = delete;

  uint8_t *data() { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {reinterpret_cast<const char *>(data_), size_}; }

private:
  uint8_t *start_, *data_;
  size_t mapped_, size_;
};

void append_character(std::string &text, uint32_t c) {
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 63));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
  }
}

uint32_t any_character(Random &random) {
  for (;;) {
    constexpr uint32_t stops[] = {0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000};
    const uint32_t c = static_cast<uint32_t>(below(random, stops[below(random, std::size(stops))]));
    if (c < 0xD800 || c >= 0xE000)
      return c;
  }
}

// What patterns treat in ways of their own: contractions, the long s and the Kelvin sign that fold into them,
// spaces beyond ASCII, digits of other scripts, marks, title case, ideographs, and pieces that begin or end
// like them.
constexpr const char *nasty_pieces[] = {" ",
                                        "  ",
                                        "\t",
                                        "\n",
                                        "\r\n",
                                        " \n ",
                                        "\u00a0",
                                        "\u3000",
                                        "\u2028",
                                        "\u0085",
                                        "'s",
                                        "'LL",
                                        "'t",
                                        "'",
                                        "''",
                                        "'\u017f",
                                        "'\u212a",
                                        "1",
                                        "123",
                                        "12345",
                                        "\u0663",
                                        "\u00bd",
                                        "\u00b2",
                                        "\u01c5",
                                        "e\u0301",
                                        "\u0301",
                                        "\u00e9",
                                        "\u042f",
                                        "\u0436",
                                        "\u4e2d\u6587",
                                        "\ud55c",
                                        "\u0e01\u0e34",
                                        "\u0928\u093f",
                                        "\U0001f600",
                                        "\U0001d7d9",
                                        "\U00020000",
                                        "\u02b0",
                                        "/",
                                        "//\n",
                                        "...\r\n",
                                        "-----",
                                        "\x01",
                                        "\x7f",
                                        "A",
                                        "aB",
                                        "HTMLParser"};

std::string make_text(Random &random, size_t size) {
  const size_t kind = below(random, 6);
  const uint32_t repeated = any_character(random);
  std::string text;
  while (text.size() < size) {
    std::string piece;
    const size_t choice = kind == 5 ? below(random, 4) : kind;
    if (choice == 0) { // words
      if (below(random, 3) > 0)
        piece = " ";
      for (size_t i = below(random, below(random, 8) == 0 ? 40 : 8) + 1; i > 0; --i)
        piece += static_cast<char>((below(random, 6) == 0 ? 'A' : 'a') + below(random, 26));
    } else if (choice == 1) {
      piece = nasty_pieces[below(random, std::size(nasty_pieces))];
    } else if (choice == 2) {
      append_character(piece, any_character(random));
    } else if (choice == 3) { // few letters, so merges go deep
      for (size_t i = below(random, 30) + 1; i > 0; --i)
        piece += "abc -\n"[below(random, below(random, 4) == 0 ? 6 : 3)];
    } else { // a run
      append_character(piece, below(random, 50) == 0 ? any_character(random) : repeated);
    }
    if (text.size() + piece.size() > size)
      piece.assign(size - text.size(), ' ');
    text += piece;
  }
  return text;
}

// Around the widths of registers, blocks, groups, batches and what a cache takes.
std::vector<size_t> sizes_around_widths() {
  std::set<size_t> sizes;
  for (const size_t width :
       {0, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 320, 512, 1024, 4096, 8192, 16384})
    for (const int off : {-4, -3, -2, -1, 0, 1, 2, 3, 4})
      if (off >= 0 || width >= 4)
        sizes.insert(width + static_cast<size_t>(off));
  return {sizes.begin(), sizes.end()};
}

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
Rules make_rules(Random &random, const char *name, bool is_rank_file, bool shuffled) {
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

struct Check {
  size_t compared = 0, unequal = 0;
  // Tells of the first few.
  void expect(bool equal, const char *variant, const char *what, size_t size) {
    ++compared;
    if (!equal && ++unequal <= 10)
      std::printf("error: %s differs in %s, %zu bytes (number %zu)\n", variant, what, size, compared);
  }
};

struct Pattern {
  std::string name;
  std::shared_ptr<const bpe::Automaton> automaton;
};

// What write_tables.py writes.
std::vector<Pattern> read_tables(const char *path) {
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

std::vector<uint64_t> pretoken_ends(const bpe::Automaton &automaton, const GuardedText &text) {
  const auto window = std::make_unique<bpe::TextWindow>(automaton);
  const uint8_t *const bytes = reinterpret_cast<const uint8_t *>(text.view().data());
  window->reset(bytes, text.size(), bytes + text.size());
  std::vector<uint64_t> ends;
  for (size_t at = 0; at < text.size();) {
    window->open(bytes + at);
    const size_t certain = window->certain();
    if (certain > 0)
      window->for_each_piece([&](size_t, size_t stop) { ends.push_back(at + stop); });
    else
      ends.push_back(static_cast<uint64_t>(window->end_of_long_piece() - bytes));
    at = certain > 0 ? at + certain : ends.back();
  }
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

// The texts, the same with bytes replaced, and every beginning of a character across the borders of blocks.
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

Check check_short_merges(const std::string &variant, const Rules &rules, Random &random, size_t rounds) {
  Check check;
  bpe::choose_simd_variant(variant);
  const bpe::Vocabulary vocabulary = rules.vocabulary();
  const bpe::MergeTables tables = vocabulary.merge_tables();
  bpe::HeapMerge heap;
  for (size_t round = 0; round < rounds * 100; ++round) {
    const size_t count = round <= bpe::max_short_merges ? round : below(random, bpe::max_short_merges + 1);
    bpe::ShortMerge merges[bpe::max_short_merges] = {};
    for (size_t i = 0; i < count; ++i) {
      merges[i].size = static_cast<uint32_t>(below(random, 16) + 1);
      std::memcpy(merges[i].bytes, make_text(random, merges[i].size).data(), merges[i].size);
    }
    bpe::simd_variant().merge_short_pretokens(tables, merges, count);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<uint32_t> &wanted = heap.merge(vocabulary, merges[i].bytes, merges[i].size);
      check.expect(merges[i].count == wanted.size() &&
                       std::equal(wanted.begin(), wanted.end(), merges[i].symbols),
                   variant.c_str(), "merging short pretokens", merges[i].size);
    }
  }
  return check;
}

Check check_long_merges(const std::string &variant, const Rules &rules, Random &random, size_t rounds) {
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
      GuardedText text(make_text(random, size), true);
      std::memset(scratch.get(), static_cast<int>(below(random, 256)),
                  sizeof *scratch); // it says it holds nothing
      std::vector<uint32_t> found(size);
      found.resize(
          bpe::simd_variant().merge_long_pretoken(tables, text.data(), size, *scratch, found.data()));
      check.expect(found == heap.merge(vocabulary, text.data(), size), variant.c_str(),
                   "merge_rank_at_a_time", size);
    }
  return check;
}

// A few runs of some length; every other run one of a few letters.
std::string make_runs(Random &random, size_t size) {
  std::string text;
  const size_t letters = below(random, 4) + 1, longest = size_t{1} << (below(random, 9) + 2);
  while (text.size() < size)
    text.append(below(random, longest) + 1, "-a b"[below(random, letters)]);
  return text.substr(0, size);
}

// Many at once, of sizes around the widths of lanes and words of bits, runs and equal ones among them.
Check check_groups_of_long_merges(const std::string &variant, const Rules &rules, Random &random,
                                  size_t rounds) {
  Check check;
  bpe::choose_simd_variant(variant);
  const bpe::Vocabulary vocabulary = rules.vocabulary();
  const bpe::MergeTables tables = vocabulary.merge_tables();
  const auto scratch = std::make_unique<bpe::RankMergeScratch>();
  bpe::HeapMerge heap;
  constexpr uint32_t guard = 0xABCDEF01; // behind each room
  for (size_t round = 0; round < rounds * 40; ++round) {
    const size_t count = round < 70 ? round : below(random, 400);
    constexpr size_t longest[] = {16, 40, 70, 140, 300};
    const size_t stop = longest[below(random, std::size(longest))] + 1;
    std::deque<GuardedText> texts;
    std::vector<std::vector<uint32_t>> rooms(count);
    std::vector<bpe::LongMerge> merges(count);
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
    bpe::simd_variant().merge_long_pretokens(tables, merges.data(), count, *scratch);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<uint32_t> &wanted = heap.merge(vocabulary, texts[i].data(), merges[i].size);
      check.expect(merges[i].count == wanted.size() && rooms[i].back() == guard &&
                       std::equal(wanted.begin(), wanted.end(), rooms[i].begin()),
                   variant.c_str(), "merging long pretokens at once", merges[i].size);
    }
  }
  return check;
}

std::vector<uint32_t> encode_all(const Rules &rules, const Pattern &pattern, bool ignore_merges,
                                 const std::deque<GuardedText> &texts) {
  const bpe::Encoder encoder = rules.encoder(pattern.automaton, ignore_merges, size_t{8} << 20);
  std::vector<uint32_t> ids, row;
  for (int warm = 0; warm < 2; ++warm) // merged the first time, found in the cache the second
    for (const GuardedText &text : texts) {
      row.clear();
      encoder.encode(text.view(), encoder.added_tokens(), row);
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
  alarm(900); // a wrong mask may make a loop endless
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
    const bool is_portable =
        variant == "portable"; // is what the others are compared with; its merges are not
    variants += !is_portable;
    if (!is_portable) {
      report("pretokenizers", "", check_pretokenizers(variant, patterns, texts));
      report("UTF-8 validation", "", check_validation(variant, texts, random));
    }
    for (const Rules &rules : all_rules) {
      report("merging short pretokens", rules.name, check_short_merges(variant, rules, random, rounds));
      report("merge_rank_at_a_time", rules.name, check_long_merges(variant, rules, random, rounds));
      report("merging long pretokens at once", rules.name,
             check_groups_of_long_merges(variant, rules, random, rounds));
      if (!is_portable)
        report("encoding", rules.name, check_encoding(variant, rules, patterns, texts));
    }
  }
  std::printf("%zu variants compared with the portable one, %zu texts, seed %llu: %zu unequal\n", variants,
              texts.size(), static_cast<unsigned long long>(seed), unequal);
  return unequal == 0 && variants > 0 ? 0 : 1;
}
