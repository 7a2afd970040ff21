// Counts over several texts equal a map of the pretokens of the naive splitter, also with a cut at last_cut.
//
// planted: bpe/native/train/run_sorter.cpp: `(word & 0xFF) << 8 | (word >> 8 & 0xFF)` -> `word & 0xFFFF`
#include "fuzz_patterns.hpp"
#include "plain_pieces.hpp"

#include "train/pretoken_counts.hpp"

#include <map>

namespace {

using Counts = std::map<std::string, uint64_t>;

constexpr std::string_view special = "<|end|>";

void count_plainly(const bpe::Automaton &automaton, std::string_view text, Counts &counts) {
  for (size_t at = 0; at <= text.size();) {
    const size_t stop = std::min(text.find(special, at), text.size());
    const std::string_view part = text.substr(at, stop - at);
    for (const std::string_view pretoken : fuzz::kept(fuzz::plain_pieces(automaton, part), part))
      ++counts[std::string(pretoken)];
    at = stop == text.size() ? text.size() + 1 : stop + special.size();
  }
}

Counts counted(const bpe::PretokenItems &items) {
  Counts counts;
  const auto *const bytes = static_cast<const char *>(items.bytes.data());
  const auto *const ends = static_cast<const uint64_t *>(items.ends.data());
  const auto *const each = static_cast<const uint64_t *>(items.counts.data());
  std::string last;
  for (size_t i = 0; i < items.size; ++i) {
    const uint64_t start = i == 0 ? 0 : ends[i - 1];
    const std::string pretoken(bytes + start, ends[i] - start);
    fuzz::expect(i == 0 || last < pretoken, "pretokens ascend, none twice");
    last = pretoken;
    counts[pretoken] = each[i];
  }
  return counts;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const auto &automaton = fuzz::patterns()[input.below(fuzz::patterns().size())].automaton;
  const bpe::SpecialTokens tokens({{std::string(special), 0}});
  bpe::PretokenCounter counter(automaton);
  Counts wanted;
  for (size_t adds = input.below(4); adds > 0; --adds) {
    const fuzz::Exact pretoken(input.bytes(input.below(40)));
    const uint64_t count = input.below(65536);
    counter.add(pretoken.data(), pretoken.size(), count);
    if (pretoken.size() > 0 && count > 0)
      wanted[std::string(pretoken.view())] += count;
  }
  const bool drains = input.flag();
  const fuzz::Exact text(fuzz::text_of_rest(input, 400));
  const size_t cut = counter.last_cut(text.data(), text.size(), tokens);
  fuzz::expect(cut <= text.size(), "a cut is within the text");
  const fuzz::Exact before(text.view().substr(0, cut)), behind(text.view().substr(cut));
  bool in_document = false;
  counter.count(before.data(), before.size(), tokens, 1, in_document);
  if (drains)
    fuzz::expect(counted(counter.items()).size() == counter.size(), "the size is that of the items");
  counter.count(behind.data(), behind.size(), tokens, 1, in_document);
  count_plainly(*automaton, text.view(), wanted);
  fuzz::expect(counted(counter.drain()) == wanted, "counts are those of a map");
  fuzz::expect(counter.size() == 0, "what was drained is gone");
  return 0;
}
