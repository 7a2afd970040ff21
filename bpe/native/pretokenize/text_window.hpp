// Find the starts of the pieces of a text, one window at a time.
//
// A window opens at the start of a piece and reports all certain starts in it. The next window opens at the
// last of these. Not thread-safe. reset() is cheap, so one object serves many short texts.
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

  // Set a text of valid UTF-8; bytes up to `readable` >= text + size may be read.
  void reset(const uint8_t *text, size_t size, const uint8_t *readable);

  // Open a window at `at`: the start of the text or a certain start of a piece. Scans at most `most` bytes,
  // at least 4.
  void open(const uint8_t *at, size_t most = WindowStates::max_bytes);

  WindowView view() const { return {origin_, starts_, certain_}; }
  const uint8_t *origin() const { return origin_; }
  size_t certain() const { return certain_; }
  // Hide the certain starts after this one, until widen().
  void narrow(size_t certain);
  void widen();
  // Return whether the piece at origin + offset is dropped.
  bool drops(size_t offset) const { return automaton_.drops && (bits_from(drops_, offset) & 1) != 0; }
  // Return the first start after `offset` < certain(), and the last one at or before it.
  size_t next_start(size_t offset) const;
  size_t last_start(size_t offset) const;

  // Call take(start, stop, drops) for each piece of a text, in order: offsets in the text, and whether the
  // piece is dropped. Arguments as for reset().
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

  // The same for the certain pieces of the window. Offsets are relative to the origin.
  template <class Take> void for_each_certain(Take take) const {
    size_t start = 0;
    uint64_t bits = starts_[0] & ~uint64_t{1}; // ends; the piece at the origin starts at 0
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

  // Return the end of the piece that starts at the origin and continues after the window; the next window may
  // open there. Takes two passes over the piece.
  const uint8_t *end_of_long_piece();

  bool any_dropped() const { return automaton_.drops; }
  // Return whether the piece at the origin is dropped. Known once its end is known.
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
  const std::unique_ptr<TwoWayScan> two_way_; // used instead of the automaton's forward scan
  size_t looked_at_ = 0;                      // bytes
  const uint8_t *text_ = nullptr, *stop_ = nullptr, *readable_ = nullptr;
  const uint8_t *origin_ = nullptr;
  uint8_t before_ = 0; // state before the origin
  size_t certain_ = 0;
  uint64_t starts_[words], drops_[words];
  size_t wide_ = 0;         // value of certain_ before narrow()
  uint64_t wide_starts_[2]; // from the word of `certain_` on; views are not read beyond it
  WindowStates window_;

  // State of the last scan.
  const uint8_t *scanned_ = nullptr; // its start
  uint8_t last_state_ = 0;
  const uint8_t *registers_[Automaton::most_registers];
  const uint8_t *first_start_ = nullptr; // first certain start after the origin, or stop_
  bool drops_first_ = false;
};

} // namespace bpe
