// The contract of the walk over text that is mostly characters of three bytes (walk_characters.hpp).
#pragma once

#include "vocabulary/character_table.hpp"

#include <bit>
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

// The pretokens that one block of 64 bytes tells: where text changes from Chinese to ASCII and back, one look
// at its classes serves several (Japanese with code +12 %, several languages +5 %).
struct NearPretokens {
  const uint8_t *from; // where one starts
  uint64_t boundaries; // bit i: so does one at from + i

  // Whether the one that p is in ends within, p at or behind `from`.
  bool have(const uint8_t *p) const {
    const size_t place = static_cast<size_t>(p - from);
    return place < 64 && boundaries >> place > 1;
  }
  const uint8_t *start_at(const uint8_t *p) const {
    const uint64_t before = boundaries & ((uint64_t{2} << (p - from)) - 1);
    return from + (before == 0 ? 0 : 63 - std::countl_zero(before));
  }
  const uint8_t *end_at(const uint8_t *p) const {
    return p + 1 + std::countr_zero(boundaries >> (p - from) >> 1);
  }
};

// Of one pattern.
struct CharacterWalks {
  WalkCharacters walk;
  // The end of the pretoken that starts at p.
  const uint8_t *(*match_end)(const uint8_t *p, const uint8_t *stop);
  // near_boundaries() of pretokenize_blocks.hpp.
  uint64_t (*boundaries)(const uint8_t *p, const uint8_t *stop);
  // The last boundary between pretokens in (from, p] that two characters tell; all of [from, p) are
  // characters of three bytes, p < stop. Null: none.
  const uint8_t *(*last_boundary)(const uint8_t *from, const uint8_t *p, const uint8_t *stop);
};

} // namespace bpe
