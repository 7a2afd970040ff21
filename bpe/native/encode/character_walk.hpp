// The contract of the walk over text that is mostly characters of three bytes (walk_characters.hpp).
#pragma once

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

  const uint8_t *at, *stop; // at: a pretoken's start, or a safe border; moves to where the walk stopped
  const uint8_t *start;     // in and out: the start of the last pretoken known to start at or before `at`
  bool ask_whole;           // a part may be a whole pretoken and have other ids then
  uint32_t *out;            // where ids go; moves behind the last
  const uint32_t *out_stop; // character_walk_room behind it may be written
  Part parts[most_parts];
  size_t part_count;
  bool full; // the room for ids or parts is used up
};
constexpr size_t character_walk_room = 96;

// Ids of what is at the start of [at, stop), valid UTF-8, as far as it is characters of three bytes between
// safe borders, two of them that merge with nothing else, and single line feeds between such; where more of
// them may merge, parts. Where it stops the border is safe or between pretokens. at < stop.
using WalkCharacters = void (*)(const Characters &characters, CharacterWalk &walk);

// Of one pattern.
struct CharacterWalks {
  WalkCharacters walk;
  // The end of the pretoken that starts at p.
  const uint8_t *(*match_end)(const uint8_t *p, const uint8_t *stop);
  // The last boundary between pretokens in (from, p] that two characters tell; all of [from, p) are
  // characters of three bytes, p < stop. Null: none.
  const uint8_t *(*last_boundary)(const uint8_t *from, const uint8_t *p, const uint8_t *stop);
};

} // namespace bpe
