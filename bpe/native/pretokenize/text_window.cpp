#include "pretokenize/text_window.hpp"

#include "simd/simd_variants.hpp"
#include "text/utf8.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace bpe {

TextWindow::TextWindow(const Automaton &automaton)
    : automaton_(automaton), scan_window_(simd_variant().scan_window),
      two_way_(automaton.two_way.rights == 0 ? nullptr : std::make_unique<TwoWayScan>(automaton)) {}

void TextWindow::reset(const uint8_t *text, size_t size, const uint8_t *readable) {
  text_ = origin_ = text;
  stop_ = text + size;
  readable_ = readable;
  before_ = automaton_.initial;
  certain_ = 0;
  if (two_way_)
    two_way_->reset(stop_);
}

void TextWindow::open(const uint8_t *at, size_t most) {
  if (at > origin_) {
    const size_t passed = static_cast<size_t>(at - origin_);
    before_ = two_way_ ? two_way_->state_before(passed) : window_.state_behind(automaton_, passed - 1);
    origin_ = at;
  }
  if (two_way_) {
    looked_at_ = two_way_->look(at, before_, starts_, drops_);
    certain_ = last_start(looked_at_);
    return;
  }
  std::fill(std::begin(registers_), std::end(registers_), nullptr);
  drops_first_ = false;
  const uint8_t *stop = stop_;
  if (static_cast<size_t>(stop - at) > most)
    for (stop = at + most; continues_character(*stop);)
      --stop;
  const uint8_t *const end = scan(at, stop, before_);
  const size_t limit = static_cast<size_t>(settled(end) - at);
  starts_[limit / 64] &= (uint64_t{1} << limit % 64) - 1;
  std::fill(starts_ + limit / 64 + 1, starts_ + static_cast<size_t>(end - at) / 64 + 2, 0);
  if (end == stop_)
    starts_[limit / 64] |= uint64_t{1} << limit % 64;
  certain_ = last_start(limit);
}

// Scan the characters from `from` to the end of the window, and return that end.
const uint8_t *TextWindow::scan(const uint8_t *from, const uint8_t *stop, uint8_t before) {
  scanned_ = from;
  const size_t size =
      scan_window_(automaton_, from, static_cast<size_t>(stop - from), readable_, before, window_);
  const uint8_t *const end = from + size;
  const size_t word_count = (size + 63) / 64;
  last_state_ = window_.state_behind(automaton_, size - 1);
  std::copy_n(window_.here, word_count, starts_);
  starts_[word_count] = starts_[word_count + 1] = 0;
  if (automaton_.drops)
    std::fill(std::begin(drops_), std::end(drops_), 0);
  for (size_t word = 0; word < word_count; ++word) {
    if (window_.before[word] != 0)
      add_starts_before(word);
    for (uint64_t acting = window_.acting[word]; acting != 0; acting &= acting - 1) {
      const size_t i = word * 64 + static_cast<size_t>(std::countr_zero(acting));
      act(automaton_.actions[window_.state_behind(automaton_, i) - automaton_.silent_end], from + i);
    }
  }
  if (end == stop_)
    act(automaton_.at_end[last_state_], last_character(stop_));
  return end;
}

// Add the starts one character before those in `before`.
void TextWindow::add_starts_before(size_t word) {
  uint64_t before = window_.before[word];
  if ((before & 1) == 0 && (before >> 1 & window_.within[word]) == 0) {
    starts_[word] |= before >> 1;
    return;
  }
  for (; before != 0; before &= before - 1) {
    const size_t i = word * 64 + static_cast<size_t>(std::countr_zero(before));
    if (scanned_ + i == origin_)
      continue; // already known
    const uint8_t *const at = last_character(scanned_ + i);
    if (at > origin_)
      first_start_ = std::min(first_start_, at);
    if (at < scanned_)
      continue;
    const size_t start = static_cast<size_t>(at - scanned_);
    starts_[start / 64] |= uint64_t{1} << start % 64;
  }
}

// last: start of the character after which the actions are due.
void TextWindow::act(const Automaton::Actions &actions, const uint8_t *last) {
  for (size_t k = 0; k < actions.start_count; ++k) {
    const Automaton::Start start = actions.starts[k];
    const uint8_t *const at = place(start, last);
    if (at == nullptr || at < origin_) // already known
      continue;
    if (at > origin_)
      first_start_ = std::min(first_start_, at);
    else
      drops_first_ = start.drops;
    if (at < scanned_)
      continue;
    const size_t offset = static_cast<size_t>(at - scanned_);
    starts_[offset / 64] |= uint64_t{1} << offset % 64;
    if (start.drops)
      drops_[offset / 64] |= uint64_t{1} << offset % 64;
  }
  for (size_t k = 0; k < actions.move_count; ++k)
    registers_[actions.moves[k].reg] = place(actions.moves[k].from, last);
}

// Return null if the offset is before the origin.
const uint8_t *TextWindow::place(Automaton::Start start, const uint8_t *last) const {
  if (start.age == 0)
    return registers_[start.reg];
  for (unsigned age = start.age; age > 1; --age) {
    if (last == origin_)
      return nullptr;
    last = last_character(last);
  }
  return last;
}

const uint8_t *TextWindow::last_character(const uint8_t *stop) const {
  do
    --stop;
  while (continues_character(*stop));
  return stop;
}

// Return the offset up to which all starts are known after a scan to `stop`.
const uint8_t *TextWindow::settled(const uint8_t *stop) const {
  const Automaton::Start oldest = automaton_.oldest_pending[last_state_];
  if (stop == stop_ || oldest.reg == Automaton::nothing)
    return stop;
  const uint8_t *const at = place(oldest, last_character(stop));
  return std::max(at, origin_);
}

size_t TextWindow::next_start(size_t offset) const {
  size_t word = ++offset / 64;
  uint64_t bits = starts_[word] & ~uint64_t{0} << offset % 64;
  while (bits == 0)
    bits = starts_[++word];
  return word * 64 + static_cast<size_t>(std::countr_zero(bits));
}

size_t TextWindow::last_start(size_t offset) const {
  size_t word = offset / 64;
  uint64_t bits = starts_[word] & ~(~uint64_t{1} << offset % 64);
  while (bits == 0 && word > 0)
    bits = starts_[--word];
  return bits == 0 ? 0 : word * 64 + 63 - static_cast<size_t>(std::countl_zero(bits));
}

void TextWindow::narrow(size_t certain) {
  wide_ = std::exchange(certain_, certain);
  uint64_t *const from = starts_ + certain / 64;
  std::copy_n(from, 2, wide_starts_);
  from[0] &= ~(~uint64_t{1} << certain % 64);
  from[1] = 0;
}

void TextWindow::widen() {
  std::copy_n(wide_starts_, 2, starts_ + certain_ / 64);
  certain_ = wide_;
}

const uint8_t *TextWindow::end_of_long_piece() {
  if (two_way_)
    return end_by_two_ways();
  uint8_t state = before_;
  std::fill(std::begin(registers_), std::end(registers_), nullptr);
  first_start_ = stop_;
  for (const uint8_t *from = origin_, *end; from < stop_; from = end, state = last_state_) {
    end = scan(from, stop_, state);
    const size_t words_scanned = static_cast<size_t>(end - from + 63) / 64;
    if (from == origin_)
      starts_[0] &= ~uint64_t{1};
    for (size_t word = 0; word < words_scanned; ++word)
      if (starts_[word] != 0) {
        first_start_ = std::min(first_start_, from + word * 64 + std::countr_zero(starts_[word]));
        break;
      }
    if (first_start_ < settled(end))
      break;
  }
  // Use the state before the scanned text. Registers hold later offsets, which would be reported as starts of
  // earlier ones.
  state = before_;
  std::fill(std::begin(registers_), std::end(registers_), nullptr);
  for (const uint8_t *from = origin_; from < first_start_; state = last_state_)
    from = scan(from, first_start_, state);
  before_ = state;
  origin_ = first_start_;
  certain_ = 0;
  return origin_;
}

const uint8_t *TextWindow::end_by_two_ways() {
  drops_first_ = automaton_.drops && (drops_[0] & 1) != 0;
  starts_[0] &= ~uint64_t{1};
  for (size_t size = looked_at_;; size = two_way_->look(origin_, before_, starts_, drops_)) {
    size_t word = 0;
    while (word < size / 64 && starts_[word] == 0)
      ++word;
    if (starts_[word] != 0)
      size = word * 64 + static_cast<size_t>(std::countr_zero(starts_[word]));
    before_ = two_way_->state_before(size);
    origin_ += size;
    if (starts_[word] != 0)
      break;
  }
  certain_ = 0;
  return origin_;
}

} // namespace bpe
