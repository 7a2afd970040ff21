#include "pretokenize/safe_cut.hpp"

#include "text/utf8.hpp"

#include <algorithm>

namespace bpe {

size_t last_safe_cut(const Automaton &automaton, const uint8_t *text, size_t size) {
  const uint8_t *const borders = automaton.borders.data();
  size_t right = 0; // its class
  for (size_t at = size; at > 0;) {
    const size_t end = at;
    do
      --at;
    while (at > 0 && end - at < 4 && continues_character(text[at]));
    uint8_t character[4] = {}; // nothing after the text is read, whatever bytes it ends with
    std::copy(text + at, text + end, character);
    const size_t left = automaton.classes.of(character);
    if (end < size && borders[left * Automaton::row + right] == Automaton::cut)
      return end;
    right = left;
  }
  return 0;
}

} // namespace bpe
