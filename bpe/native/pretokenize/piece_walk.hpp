// Find where the pieces of a text start, one character at a time.
//
//     for each character: state = then[class of the character][state]
//         report the starts that this state makes certain
//     at the end of the text: report the starts that the end makes certain
//
// A walk needs little setup, so it is faster than a window (text_window.hpp) for a few bytes. It stores none
// of the text, so it also reads text of any length in bounded memory.
#pragma once

#include "pretokenize/automaton.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace bpe {

class PieceWalk {
public:
  // automaton: must read forward only and outlive the walk. before: the offset to report for a start before
  // the text; callers must not rely on it.
  explicit PieceWalk(const Automaton &automaton, uint64_t before = 0)
      : automaton_(automaton), state_(automaton.initial) {
    std::fill(std::begin(characters_), std::end(characters_), before);
    std::fill(std::begin(registers_), std::end(registers_), before);
  }

  // Read the next character and call found(offset, drops) for each start that has become certain. Starts are
  // offsets in the text, in any order. A start may be reported twice; `drops` holds if it does in one report.
  template <class Found> void read(const uint8_t *character, Found found) {
    const uint8_t first = *character;
    characters_[++count_ % max_age] = size_;
    size_ += first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    state_ = automaton_.then[automaton_.classes.of(character) * Automaton::row + state_];
    if (state_ < automaton_.both_end)
      found(characters_[(count_ - 1) % max_age], false);
    if (state_ >= automaton_.before_end && state_ < automaton_.here_end)
      found(characters_[count_ % max_age], false);
    if (state_ >= automaton_.silent_end)
      act(automaton_.actions[state_ - automaton_.silent_end], found);
  }
  // Call found(offset, drops) for the starts that the end of the text makes certain.
  template <class Found> void end(Found found) { act(automaton_.at_end[state_], found); }

  uint64_t size() const { return size_; } // bytes read
  // All starts before this offset are known.
  uint64_t settled() const {
    const Automaton::Start pending = automaton_.oldest_pending[state_];
    return pending.reg == Automaton::nothing ? size_ : offset_of(pending);
  }

private:
  static constexpr size_t max_age = 8;

  template <class Found> void act(const Automaton::Actions &actions, Found found) {
    for (size_t k = 0; k < actions.start_count; ++k)
      found(offset_of(actions.starts[k]), actions.starts[k].drops != 0);
    for (size_t k = 0; k < actions.move_count; ++k)
      registers_[actions.moves[k].reg] = offset_of(actions.moves[k].from);
  }
  uint64_t offset_of(Automaton::Start start) const {
    return start.age == 0 ? registers_[start.reg] : characters_[(count_ + 1 - start.age) % max_age];
  }

  const Automaton &automaton_;
  size_t state_;
  uint64_t size_ = 0, count_ = max_age; // in bytes, and in characters starting at max_age
  uint64_t characters_[max_age];        // starts of the last characters
  uint64_t registers_[Automaton::most_registers];
};

inline constexpr size_t max_short_bytes = 64;
struct ShortPieces {
  uint64_t starts = 0, drops = 0; // one bit per byte
};

// Return the pieces of a text of valid UTF-8, 0 < size <= max_short_bytes.
inline ShortPieces short_pieces(const Automaton &automaton, const uint8_t *text, size_t size) {
  ShortPieces pieces;
  PieceWalk walk(automaton);
  const auto found = [&](uint64_t start, bool drops) {
    pieces.starts |= uint64_t{1} << start;
    pieces.drops |= uint64_t{drops} << start;
  };
  while (walk.size() < size)
    walk.read(text + walk.size(), found);
  walk.end(found);
  return pieces;
}

} // namespace bpe
