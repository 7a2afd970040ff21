#include "pretokenize/safe_cut.hpp"

#include "text/utf8.hpp"

namespace bpe {

size_t last_safe_cut(const Automaton &automaton, const uint8_t *text, size_t size) {
  const uint8_t *const cuts = automaton.cuts.data();
  size_t right = 0; // its class
  for (size_t at = size; at > 0;) {
    const size_t end = at;
    do
      --at;
    while (at > 0 && end - at < 4 && continues_character(text[at]));
    size_t left = automaton.classes.of_byte[text[at]];
    if (left == CharacterClasses::unclear) {
      uint8_t character[4] = {};
      for (size_t i = at; i < end; ++i)
        character[i - at] = text[i];
      left = automaton.classes.of_character(character);
    }
    if (end < size && cuts[left * Automaton::row + right] != 0)
      return end;
    right = left;
  }
  return 0;
}

} // namespace bpe
