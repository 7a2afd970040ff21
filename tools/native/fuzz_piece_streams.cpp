// A text that is read one character at a time, and a text that is cut at last_safe_cut, have the pieces of
// the whole text.
//
// planted: bpe/native/pretokenize/piece_walk.hpp: `size_ : offset_of(pending);` -> `size_ : size_;`
#include "fuzz_patterns.hpp"
#include "plain_pieces.hpp"

#include "pretokenize/piece_walk.hpp"
#include "pretokenize/safe_cut.hpp"

#include <map>

namespace {

// Fails for starts that are found later than settled() allows.
void check_walk(const bpe::Automaton &automaton, const fuzz::Exact &text, const fuzz::Pieces &wanted) {
  bpe::PieceWalk walk(automaton, UINT64_MAX);
  std::map<uint64_t, bool> found;
  uint64_t settled = 0;
  const auto add = [&](uint64_t start, bool drops) {
    if (start == UINT64_MAX)
      return;
    fuzz::expect(start >= settled, "no start comes after it is settled");
    found[start] |= drops;
  };
  while (walk.size() < text.size()) {
    walk.read(text.data() + walk.size(), add);
    fuzz::expect(walk.settled() >= settled, "what is settled stays settled");
    settled = walk.settled();
  }
  walk.end(add);
  found.erase(text.size());
  const fuzz::Pieces pieces(found.begin(), found.end());
  fuzz::expect(pieces == wanted, "a walk finds the pieces of the whole text");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const auto &automaton = fuzz::patterns()[input.below(fuzz::patterns().size())].automaton;
  const size_t place = input.below(65536);
  const fuzz::Exact text(fuzz::text_of_rest(input, 600));
  const fuzz::Pieces wanted = fuzz::plain_pieces(*automaton, text.view());
  if (automaton->two_way.rights == 0)
    check_walk(*automaton, text, wanted);
  size_t seen = text.size() == 0 ? 0 : place % text.size();
  while (seen > 0 && bpe::continues_character(text.data()[seen]))
    --seen;
  const fuzz::Exact known(text.view().substr(0, seen));
  const size_t cut = bpe::last_safe_cut(*automaton, known.data(), seen);
  fuzz::expect(cut == 0 || cut < seen, "a cut is within the text");
  fuzz::Pieces apart = fuzz::plain_pieces(*automaton, text.view().substr(0, cut));
  for (const auto &[start, drops] : fuzz::plain_pieces(*automaton, text.view().substr(cut)))
    apart.emplace_back(cut + start, drops);
  fuzz::expect(apart == wanted, "a text may be cut at a safe cut");
  return 0;
}
