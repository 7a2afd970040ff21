// The contract of the walk over text that is mostly characters of three bytes (walk_characters.hpp).
#pragma once

#include "vocabulary/character_table.hpp"

#include <cstddef>
#include <cstdint>

namespace bpe {

struct CharacterWalk {
  const uint8_t *at, *stop; // at: a pretoken's start, or a safe border; moves to where the walk stopped
  const uint8_t *start;     // in and out: the start of the last pretoken known to start at or before `at`
  uint32_t *out;            // where ids go; moves behind the last
  const uint32_t *out_stop; // character_walk_room behind it may be written
  // What is at `at` then. part_bytes: if not 0, of a part between safe borders that the walk does not merge.
  size_t part_bytes;
  enum class Part { whole, inside, unknown } part_is; // a pretoken, a part of a larger one
  bool full;                                          // the room for ids is used up
};
constexpr size_t character_walk_room = 96;

// Ids of what is at the start of [at, stop), valid UTF-8, as far as it is characters of three bytes between
// safe borders, two of them that merge with nothing else, and single line feeds between such. Where it stops
// the border is safe or between pretokens. at < stop.
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
