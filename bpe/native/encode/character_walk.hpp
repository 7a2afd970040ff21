// The contract of the walk over text that is mostly characters of three bytes (walk_characters.hpp).
#pragma once

#include "pretokenize/automaton.hpp"
#include "pretokenize/window_view.hpp"
#include "vocabulary/character_table.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

struct CharacterWalk {
  // A part between safe borders that the walk does not merge.
  struct Part {
    const uint8_t *bytes;
    uint32_t size;
    uint32_t ids_before; // behind the part before it
    bool whole;          // a pretoken
  };
  static constexpr size_t most_parts = 16;

  WindowView window;
  // Where no starts are known: what tells whether a pretoken starts at a joined border; null: none does.
  const Automaton *borders = nullptr;
  size_t at;                // a pretoken's start, or a safe border; moves to where the walk stopped
  uint32_t *out;            // where ids go; moves behind the last
  const uint32_t *out_stop; // character_walk_room behind it may be written
  Part parts[most_parts];
  size_t part_count;
  bool full; // the room for ids or parts is used up
};
constexpr size_t character_walk_room = 96;

// Ids of what is at the start of a window from `at` < window.certain on, as far as it is characters of three
// bytes between safe borders, two of them that merge with nothing else, and line feeds that are pretokens
// between such; where more of them may merge, parts. Where it stops the border is safe or between pretokens.
using WalkCharacters = void (*)(const Characters &characters, CharacterWalk &walk);

} // namespace bpe
