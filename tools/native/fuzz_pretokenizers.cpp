// The windows of every variant cut texts like a naive traversal of the tables. Stretched texts and pieces are
// longer than a window.
//
// planted: bpe/native/pretokenize/text_window.cpp: `(before >> 1 & window_.within[word]) == 0` -> `true`
#include "fuzz_patterns.hpp"
#include "plain_pieces.hpp"

#include "simd/simd_variants.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<std::string> variants = bpe::simd_variant_names();
  fuzz::Input input(data, size);
  const bpe::Automaton &automaton = *fuzz::patterns()[input.below(fuzz::patterns().size())].automaton;
  const fuzz::Exact text(fuzz::text_of_rest(input, 9000));
  const fuzz::Pieces wanted = fuzz::plain_pieces(automaton, text.view());
  for (const std::string &variant : variants) {
    bpe::choose_simd_variant(variant);
    fuzz::expect(fuzz::window_pieces(automaton, text) == wanted, "windows cut as the plain walk");
  }
  return 0;
}
