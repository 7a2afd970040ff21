// Where the pieces of a text start, a window at a time.
//
// A window is opened at the start of a piece and tells all starts that are certain in it; the next one is
// opened at the last of these. Not shared between threads; reset() is cheap, so one serves many short texts.
#pragma once

#include "pretokenize/scan_window.hpp"
#include "pretokenize/two_way_scan.hpp"
#include "pretokenize/window_view.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace bpe {

class TextWindow {
public:
  // The automaton must outlive it.
  explicit TextWindow(const Automaton &automaton);

  // A text of valid UTF-8; bytes up to `readable` >= text + size may be read.
  void reset(const uint8_t *text, size_t size, const uint8_t *readable);

  // Looks at the text from `at` on: the start of the text or of a piece that is certain. At so many bytes at
  // most, at least 4.
  void open(const uint8_t *at, size_t most = WindowStates::max_bytes);

  WindowView view() const { return {origin_, starts_, certain_}; }
  const uint8_t *origin() const { return origin_; }
  size_t certain() const { return certain_; }
  // As if no more were certain than up to this start, until widen().
  void narrow(size_t certain);
  void widen();
  // Whether the piece at origin + offset is left out.
  bool drops(size_t offset) const { return automaton_.drops && (bits_from(drops_, offset) & 1) != 0; }
  // The first start behind `offset` < certain(), the last one at or before it.
  size_t next_start(size_t offset) const;
  size_t last_start(size_t offset) const;

  // Calls take(start, stop, drops) for each piece of a text, in order: offsets in the text, and whether the
  // piece is left out. Arguments as for reset().
  template <class Take>
  void for_each_piece(const uint8_t *text, size_t size, const uint8_t *readable, Take take) {
    reset(text, size, readable);
    for (size_t at = 0; at < size;) {
      open(text + at);
      if (const size_t certain = certain_; certain > 0) {
        for_each_certain([&](size_t start, size_t stop, bool drops) { take(at + start, at + stop, drops); });
        at += certain;
      } else {
        const size_t stop = static_cast<size_t>(end_of_long_piece() - text);
        take(at, stop, drops_first_);
        at = stop;
      }
    }
  }

  // The same for the pieces of the window that are certain. Offsets count from the origin.
  template <class Take> void for_each_certain(Take take) const {
    size_t start = 0;
    uint64_t bits = starts_[0] & ~uint64_t{1}; // stops; the piece at the origin starts at 0
    for (size_t word = 0;; bits = starts_[++word]) {
      for (; bits != 0; bits &= bits - 1) {
        const size_t stop = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        take(start, stop, drops(start));
        start = stop;
      }
      if (word == certain_ / 64)
        return;
    }
  }

  // The end of the piece that starts at the origin and goes on behind the window; the next window may be
  // opened there. Takes the time of two looks at the piece.
  const uint8_t *end_of_long_piece();

  bool any_dropped() const { return automaton_.drops; }
  // Whether the piece that starts at the origin is left out: known once its end is.
  bool drops_first() const { return drops_first_; }

private:
  static constexpr size_t words = WindowStates::words + 2;
  const uint8_t *end_by_two_ways();
  const uint8_t *scan(const uint8_t *from, const uint8_t *stop, uint8_t before);
  void add_starts_before(size_t word);
  void act(const Automaton::Actions &actions, const uint8_t *last);
  const uint8_t *place(Automaton::Start start, const uint8_t *last) const;
  const uint8_t *settled(const uint8_t *stop) const;
  const uint8_t *last_character(const uint8_t *stop) const;

  const Automaton &automaton_;
  const ScanWindow scan_window_;
  const std::unique_ptr<TwoWayScan> two_way_; // in place of it
  size_t looked_at_ = 0;                      // bytes
  const uint8_t *text_ = nullptr, *stop_ = nullptr, *readable_ = nullptr;
  const uint8_t *origin_ = nullptr;
  uint8_t before_ = 0; // the state before the origin
  size_t certain_ = 0;
  uint64_t starts_[words], drops_[words];
  size_t wide_ = 0;         // what narrow() took away
  uint64_t wide_starts_[2]; // from the word of `certain_` on; a view is not looked at further
  WindowStates window_;

  // Of the last scan.
  const uint8_t *scanned_ = nullptr; // from where
  uint8_t last_state_ = 0;
  const uint8_t *registers_[Automaton::most_registers];
  const uint8_t *first_start_ = nullptr; // the first certain one behind the origin, or stop_
  bool drops_first_ = false;
};

} // namespace bpe
