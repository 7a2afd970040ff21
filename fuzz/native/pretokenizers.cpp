// Each SIMD variant cuts texts into the same pieces as the portable one. Long inputs exceed a window.
#include "input.hpp"
#include "pattern_tables.hpp"

#include "pretokenize/text_window.hpp"
#include "simd/simd_variants.hpp"

namespace {

using Pieces = std::vector<std::pair<size_t, bool>>; // the end of each piece, and whether it is dropped

Pieces pieces_of(const bpe::Automaton &automaton, const fuzz::Exact &text, const std::string &variant) {
  bpe::choose_simd_variant(variant);
  const auto window = std::make_unique<bpe::TextWindow>(automaton);
  Pieces pieces;
  window->for_each_piece(text.data(), text.size(), text.stop(),
                         [&](size_t, size_t stop, bool drops) { pieces.emplace_back(stop, drops); });
  return pieces;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<Pattern> patterns = read_tables(std::getenv("FUZZ_TABLES"));
  fuzz::expect(!patterns.empty(), "FUZZ_TABLES names a file that write_tables.py has written");
  fuzz::Input input(data, size);
  const bpe::Automaton &automaton = *patterns[input.below(patterns.size())].automaton;
  const fuzz::Exact text(fuzz::valid_text(input.repeated_rest(9000)));
  const Pieces expected = pieces_of(automaton, text, "portable");
  fuzz::expect((text.size() == 0 && expected.empty()) || expected.back().first == text.size(),
               "pieces cover the text");
  for (const std::string &variant : bpe::simd_variant_names())
    fuzz::expect(pieces_of(automaton, text, variant) == expected, "variants agree");
  return 0;
}
