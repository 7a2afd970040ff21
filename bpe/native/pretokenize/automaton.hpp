// The tables by which texts are cut into pieces; bpe/pretokenization/tables.py makes them.
//
// A state and the class of the next byte give the next state. A state tells what is due behind the character
// that led to it: that a piece starts there or a character before, nothing, or one of `actions`. Where a
// start becomes certain only later, its place is some characters back or was put into a register.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bpe {

// A class for each code point, in pages of 64, and for each byte as far as it tells.
struct CharacterClasses {
  using Page = std::array<uint8_t, 64>;
  static constexpr uint8_t unclear = 255;       // a lead byte whose characters are of several classes
  static constexpr size_t page_count = 1 << 15; // more than there are: any four bytes have one

  std::vector<uint16_t> page_of; // by code point / 64
  std::vector<Page> pages;
  alignas(64) uint8_t of_byte[256];

  // Of 2 to 4 bytes at p.
  [[gnu::always_inline]] const Page &page(const uint8_t *p) const {
    const size_t number = p[0] < 0xE0   ? p[0] & 31u
                          : p[0] < 0xF0 ? (p[0] & 15u) << 6 | (p[1] & 63u)
                                        : (p[0] & 7u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    return pages[page_of[number]];
  }
  [[gnu::always_inline]] uint8_t of_character(const uint8_t *p) const {
    return page(p)[p[p[0] < 0xE0 ? 1 : p[0] < 0xF0 ? 2 : 3] & 63u];
  }
  // Of a character of any length at p.
  [[gnu::always_inline]] uint8_t of(const uint8_t *p) const {
    return of_byte[*p] == unclear ? of_character(p) : of_byte[*p];
  }
};

// The automaton over one byte or two at a time, whose states are those in which nothing is due, from 0 on.
//
// An entry tells what is due behind each byte of a step, in the top bits of its two lowest bytes, and the
// state behind the step: in the low five bits of both, and in the upper half where in a row it is.
struct Steps {
  static constexpr uint8_t here = 1 << 7, before = 1 << 6, acting = 1 << 5; // see Automaton
  static constexpr size_t row_unit = 2;                                     // entries

  size_t bytes = 1; // of a step
  size_t class_count = 0;
  unsigned row_shift = 0;        // log2(entries of a row / row_unit)
  std::vector<uint32_t> entries; // [first class * class_count + second class, or class][state]

  static unsigned state(uint16_t behind) { return (behind & 31u) | (behind >> 8 & 31u) << 5; }
};

// What an automaton has that reads a text forward and then back (bpe/pretokenization/two_way.py).
struct TwoWay {
  static constexpr uint16_t not_settled = 0xFFFF, right = 0x3FFF, starts = 0x4000, drops = 0x8000;

  size_t rights = 0;             // how many right contexts there are; 0: the automaton only goes forward
  uint16_t end;                  // that where the text ends
  std::vector<uint16_t> settled; // by state: a right context to go back from
  // Of the place before a character: row_of[class * 256 + state] + the right context behind it is the place
  // in `before` of the right context there, with the bits `starts` and `drops`.
  std::vector<uint32_t> row_of;
  std::vector<uint16_t> before;
};

struct LaterPhases;

struct Automaton {
  static constexpr size_t row = 256;

  // Where a piece starts: `age` characters back, the last one counting 1, or, with age 0, what a register
  // holds.
  struct Start {
    uint8_t age, reg, drops; // drops: the piece is left out
  };
  struct Move {
    uint8_t reg;
    Start from;
  };
  struct Actions {
    static constexpr size_t most = 8;
    uint8_t start_count, move_count;
    Start starts[most]; // that are certain
    Move moves[most]; // then: what the registers hold; in an order in which none is needed once it is written
  };
  static constexpr size_t most_registers = 4;
  static constexpr uint8_t nothing = 255; // in `reg`: no start is pending

  CharacterClasses classes;
  std::vector<uint8_t> then; // [class * row + state]
  uint8_t initial;
  // Ends of the groups of states in which is due: a start one character before, that and one here, one here,
  // nothing. The others have `actions`. A byte within a character leads to the same state with nothing due.
  unsigned before_end, both_end, here_end, silent_end;
  std::vector<Actions> actions;      // of state silent_end + i
  std::vector<Actions> at_end;       // by state
  std::vector<Start> oldest_pending; // by state
  bool drops;                        // whether any piece is left out
  // Whether it cuts where no merge reaches (vocabulary/merge_cuts.hpp): then pieces may be others, as long
  // as their borders are safe ones.
  bool by_joins = false;
  // What a border between two characters is, by their classes, whatever lies around them: a text may be cut
  // there; no piece starts there; or it depends.
  enum Border : uint8_t { depends, cut, inside };
  std::vector<uint8_t> borders; // [left class * row + right class]
  Steps steps;
  TwoWay two_way;
  std::shared_ptr<const LaterPhases> later; // what becomes of the pieces then; null: they stay

  // Checks what was filled in, so that no table leads out of another, and fills in classes.of_byte and
  // `steps`. The last of `class_count` classes is that of bytes within characters. Throws
  // std::invalid_argument.
  void complete(size_t class_count);

  // Whether one look at a text from left to right tells its pieces as they stay.
  bool streams() const { return two_way.rights == 0 && !later; }
  // Of the border before a character at `right`, `left` being the one before.
  [[gnu::always_inline]] Border border(const uint8_t *left, const uint8_t *right) const {
    return static_cast<Border>(borders[classes.of(left) * row + classes.of(right)]);
  }
  // The same state with nothing due.
  uint8_t quiet(uint8_t state) const { return then[(steps.class_count - 1) * row + state]; }

private:
  void fill_steps();
  unsigned due(uint8_t state) const;
};

} // namespace bpe
