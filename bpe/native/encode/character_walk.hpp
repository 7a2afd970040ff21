// The interface of the walk over text that consists mostly of three-byte characters (walk_characters.hpp).
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
    uint32_t ids_before; // after the previous part
    bool whole;          // the part is a pretoken
  };
  static constexpr size_t most_parts = 16;

  WindowView window;
  // Decides whether a pretoken starts at a joined border if no starts are known; null: none does.
  const Automaton *borders = nullptr;
  size_t at;                // a pretoken's start or a safe border; set to where the walk stopped
  uint32_t *out;            // where IDs are written; set to their end
  const uint32_t *out_stop; // character_walk_room after it may be written
  Part parts[most_parts];
  size_t part_count;
  bool full; // no room for IDs or parts is left
};
constexpr size_t character_walk_room = 96;

// Write the IDs of a prefix of a window from `at` < window.certain: three-byte characters between safe
// borders, pairs of them that merge with nothing else, and line feeds that are pretokens between such
// characters. If more characters may merge, they become parts. The walk stops at a safe border or between
// pretokens.
using WalkCharacters = void (*)(const Characters &characters, CharacterWalk &walk);

// For given pretokens: return the size of the longest prefix of [bytes, stop) that consists of three-byte
// characters with no joined border between two of them. The border at its end is joined, or no such character
// follows.
using FindCharacters = size_t (*)(const Characters &characters, const uint8_t *bytes, const uint8_t *stop);

// Write the IDs of bytes[0, size), a run of such characters, and return their end. May write characters_spare
// more.
using EmitCharacters = uint32_t *(*)(const Characters &characters, const uint8_t *bytes, size_t size,
                                     uint32_t *out);
constexpr size_t characters_spare = 16;

} // namespace bpe
