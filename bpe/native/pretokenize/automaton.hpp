// Tables of the automaton that cuts texts into pieces. bpe/pretokenization/tables.py generates them.
//
// The state and the class of the next byte determine the next state. A state determines the action after the
// character that led to it: a piece starts there or a character before, nothing, or one of `actions`. If a
// start becomes certain later, its offset is some characters back or was stored in a register.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bpe {

// The class of each code point, in pages of 64, and of each byte as far as it determines the class.
struct CharacterClasses {
  using Page = std::array<uint8_t, 64>;
  static constexpr uint8_t unclear = 255;       // a lead byte for characters of several classes
  static constexpr size_t page_count = 1 << 15; // more than needed: any four bytes map to one

  std::vector<uint16_t> page_of; // by code point / 64
  std::vector<Page> pages;
  alignas(64) uint8_t of_byte[256];

  // For a character of 2 to 4 bytes at p.
  [[gnu::always_inline]] const Page &page(const uint8_t *p) const {
    const size_t number = p[0] < 0xE0   ? p[0] & 31u
                          : p[0] < 0xF0 ? (p[0] & 15u) << 6 | (p[1] & 63u)
                                        : (p[0] & 7u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    return pages[page_of[number]];
  }
  [[gnu::always_inline]] uint8_t of_character(const uint8_t *p) const {
    return page(p)[p[p[0] < 0xE0 ? 1 : p[0] < 0xF0 ? 2 : 3] & 63u];
  }
  // For a character of any length at p.
  [[gnu::always_inline]] uint8_t of(const uint8_t *p) const {
    return of_byte[*p] == unclear ? of_character(p) : of_byte[*p];
  }
};

// The automaton with steps of one or two bytes. Its states are those in which nothing is due, from 0 on.
//
// An entry stores the action after each byte of a step in the top bits of its two lowest bytes. The state
// after the step is in the low five bits of both bytes, and its index in the row is in the upper half.
struct Steps {
  static constexpr uint8_t here = 1 << 7, before = 1 << 6, acting = 1 << 5; // see Automaton
  static constexpr size_t row_unit = 2;                                     // entries

  size_t bytes = 1; // per step
  size_t class_count = 0;
  unsigned row_shift = 0;        // log2(entries of a row / row_unit)
  std::vector<uint32_t> entries; // [first class * class_count + second class, or class][state]

  static unsigned state(uint16_t behind) { return (behind & 31u) | (behind >> 8 & 31u) << 5; }
};

// Additional tables of an automaton that reads a text forward and then backward
// (bpe/pretokenization/two_way.py).
struct TwoWay {
  static constexpr uint16_t not_settled = 0xFFFF, right = 0x3FFF, starts = 0x4000, drops = 0x8000;

  size_t rights = 0;             // number of right contexts; 0: the automaton only reads forward
  uint16_t end;                  // right context at the end of the text
  std::vector<uint16_t> settled; // by state: a right context to read backward from
  // For the offset before a character: row_of[class * 256 + state] plus the right context after it is an
  // index into `before`, which gives the right context there with the bits `starts` and `drops`.
  std::vector<uint32_t> row_of;
  std::vector<uint16_t> before;
};

struct LaterPhases;

struct Automaton {
  static constexpr size_t row = 256;

  // The start of a piece: `age` characters back, where the last one counts as 1, or, with age 0, the content
  // of a register.
  struct Start {
    uint8_t age, reg, drops; // drops: the piece is dropped
  };
  struct Move {
    uint8_t reg;
    Start from;
  };
  struct Actions {
    static constexpr size_t most = 8;
    uint8_t start_count, move_count;
    Start starts[most]; // certain starts
    // register updates applied afterwards, ordered so that none reads an overwritten register
    Move moves[most];
  };
  static constexpr size_t most_registers = 4;
  static constexpr uint8_t nothing = 255; // in `reg`: no start is pending

  CharacterClasses classes;
  std::vector<uint8_t> then; // [class * row + state]
  uint8_t initial;
  // Ends of the groups of states by action: a start one character before; that and a start here; a start
  // here; nothing. The remaining states have `actions`. A byte within a character leads to the same state
  // with nothing due.
  unsigned before_end, both_end, here_end, silent_end;
  std::vector<Actions> actions;      // of state silent_end + i
  std::vector<Actions> at_end;       // by state
  std::vector<Start> oldest_pending; // by state
  bool drops;                        // whether any piece is dropped
  // Whether it cuts where no merge reaches (vocabulary/merge_cuts.hpp). Pieces may then differ as long as
  // their borders are safe.
  bool by_joins = false;
  // A border between two characters, by their classes, in any context: a text may be cut there, no piece
  // starts there, or it depends.
  enum Border : uint8_t { depends, cut, inside };
  std::vector<uint8_t> borders; // [left class * row + right class]
  Steps steps;
  TwoWay two_way;
  std::shared_ptr<const LaterPhases> later; // further changes to the pieces; null: none

  // Compute classes.of_byte and `steps` from the other tables. The last of `class_count` classes is for bytes
  // within characters.
  void complete(size_t class_count);

  // Return whether a single pass from left to right finds the final pieces of a text.
  bool streams() const { return two_way.rights == 0 && !later; }
  // For the border before a character at `right`; `left` is the previous character.
  [[gnu::always_inline]] Border border(const uint8_t *left, const uint8_t *right) const {
    return static_cast<Border>(borders[classes.of(left) * row + classes.of(right)]);
  }
  // Return the same state with nothing due.
  uint8_t quiet(uint8_t state) const { return then[(steps.class_count - 1) * row + state]; }

private:
  void fill_steps();
  unsigned due(uint8_t state) const;
};

} // namespace bpe
