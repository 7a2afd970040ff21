// A text that comes in parts is cut as one that is there whole, and one that is cut where last_safe_cut says
// is cut into the same pieces.
//
// planted: bpe/native/pretokenize/piece_stream.cpp: `settled_ = place(pending);` -> `settled_ = size_;`
#include "fuzz_patterns.hpp"
#include "plain_pieces.hpp"

#include "pretokenize/piece_stream.hpp"
#include "pretokenize/safe_cut.hpp"

namespace {

void check_stream(const std::shared_ptr<const bpe::Automaton> &automaton, const fuzz::Exact &text,
                  const fuzz::Pieces &wanted, fuzz::Input how) {
  bpe::PieceStream stream(automaton);
  fuzz::Pieces found;
  uint64_t last = 0, settled = 0;
  for (size_t at = 0, part; at < text.size(); at += part) {
    part = std::min<size_t>(1 + how.below(40), text.size() - at);
    const fuzz::Exact fed(text.view().substr(at, part));
    stream.feed(fed.data(), part, at + part == text.size());
    for (const auto &[start, drops] : stream.take()) {
      fuzz::expect(start >= last && start >= settled && start < stream.settled(),
                   "starts come in order, up to what is settled");
      last = start;
      if (start < text.size())
        found.emplace_back(start, drops);
    }
    settled = stream.settled();
  }
  fuzz::expect(found == wanted, "a stream is cut as the whole text");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::Input input(data, size);
  const auto &automaton = fuzz::patterns()[input.below(fuzz::patterns().size())].automaton;
  const std::string_view parts = input.bytes(6);
  const size_t place = input.below(65536);
  const fuzz::Exact text(fuzz::text_of_rest(input, 600));
  const fuzz::Pieces wanted = fuzz::plain_pieces(*automaton, text.view());
  if (automaton->two_way.rights == 0)
    check_stream(automaton, text, wanted, {bpe::bytes_of(parts), parts.size()});
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
