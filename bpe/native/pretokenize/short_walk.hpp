// Where the pieces of a text of at most 64 bytes start: a character at a time, with less to set up than a
// window has (text_window.hpp).
#pragma once

#include "pretokenize/automaton.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace bpe {

struct ShortWalk {
  static constexpr size_t most_bytes = 64;
  uint64_t starts = 0, drops = 0; // a bit for each byte
};

// A text of valid UTF-8, 0 < size <= most_bytes, through an automaton that only goes forward.
inline ShortWalk short_walk(const Automaton &automaton, const uint8_t *text, size_t size) {
  ShortWalk found;
  constexpr size_t oldest = 8;                            // characters that a start may be back
  size_t characters[ShortWalk::most_bytes + oldest] = {}; // where they start
  size_t registers[Automaton::most_registers] = {};
  size_t *last = characters + oldest - 1;
  const auto place = [&](Automaton::Start start) {
    return start.age == 0 ? registers[start.reg] : *(last + 1 - start.age);
  };
  const auto act = [&](const Automaton::Actions &actions) {
    for (size_t k = 0; k < actions.start_count; ++k) {
      const uint64_t bit = uint64_t{1} << place(actions.starts[k]);
      found.starts |= bit;
      found.drops |= actions.starts[k].drops != 0 ? bit : 0;
    }
    for (size_t k = 0; k < actions.move_count; ++k)
      registers[actions.moves[k].reg] = place(actions.moves[k].from);
  };
  size_t state = automaton.initial;
  for (size_t i = 0; i < size;) {
    const uint8_t first = text[i];
    const uint8_t kind = automaton.classes.of(text + i);
    *++last = i;
    i += first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    state = automaton.then[kind * Automaton::row + state];
    if (state < automaton.both_end)
      found.starts |= uint64_t{1} << *(last - 1);
    if (state >= automaton.before_end && state < automaton.here_end)
      found.starts |= uint64_t{1} << *last;
    if (state >= automaton.silent_end)
      act(automaton.actions[state - automaton.silent_end]);
  }
  act(automaton.at_end[state]);
  return found;
}

} // namespace bpe
