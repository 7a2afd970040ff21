#include "pretokenize/two_way_scan.hpp"

#include "text/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace bpe {

void TwoWayScan::reset(const uint8_t *stop) {
  stop_ = stop;
  known_.clear();
  next_ = 0;
}

size_t TwoWayScan::look(const uint8_t *from, uint8_t state, uint64_t *starts, uint64_t *drops) {
  while (next_ < known_.size() && known_[next_].at <= from)
    ++next_;
  if (next_ == known_.size()) {
    forward(from, stop_, state);
    if (from + size_ < stop_ && settled_ < max_bytes / 2)
      find_far(from + size_, states_[size_]);
  }
  size_t size = settled_;
  uint16_t right = automaton_.two_way.settled[states_[size]];
  if (next_ < known_.size()) {
    forward(from, known_[next_].at, state);
    size = size_;
    right = known_[next_].right;
  } else if (from + size_ == stop_) {
    size = size_;
    right = automaton_.two_way.end;
  }
  std::fill_n(starts, size / 64 + 2, 0);
  std::fill_n(drops, size / 64 + 2, 0);
  if (from + size == stop_)
    starts[size / 64] |= uint64_t{1} << size % 64;
  back(from, size, right, starts, drops);
  return size;
}

// Read at most max_bytes, to the end of a character. All bytes of a character get its class and state, so
// that back() finds them at any byte and invalid text cannot lead outside the tables.
void TwoWayScan::forward(const uint8_t *from, const uint8_t *stop, uint8_t state) {
  const uint8_t *const then = automaton_.then.data();
  size_t size = std::min(max_bytes, static_cast<size_t>(stop - from));
  if (from + size < stop) {
    size_t end = size;
    while (end > 0 && continues_character(from[end]))
      --end;
    size = end > 0 ? end : size;
  }
  settled_ = 0;
  for (size_t i = 0; i < size;) {
    const uint8_t *const p = from + i;
    const uint8_t kind = automaton_.classes.of(p);
    std::memset(classes_ + i, kind, 4);
    std::memset(states_ + i, state, 4);
    state = then[kind * Automaton::row + state];
    i = std::min(size, i + (*p < 0xC0 ? 1 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : 4));
    if (automaton_.two_way.settled[state] != TwoWay::not_settled)
      settled_ = i;
  }
  states_[size] = state;
  size_ = size;
}

// Return the right context before `size` bytes, given the one after them.
uint16_t TwoWayScan::back(const uint8_t *from, size_t size, uint16_t right, uint64_t *starts,
                          uint64_t *drops) const {
  const TwoWay &tables = automaton_.two_way;
  for (size_t i = size; i > 0;) {
    do
      --i;
    while (continues_character(from[i]) && i > 0);
    const uint16_t before = tables.before[tables.row_of[classes_[i] * Automaton::row + states_[i]] + right];
    starts[i / 64] |= static_cast<uint64_t>((before & TwoWay::starts) != 0) << i % 64;
    drops[i / 64] |= static_cast<uint64_t>((before & TwoWay::drops) != 0) << i % 64;
    right = before & TwoWay::right;
  }
  return right;
}

// Find the right contexts from here to where the automaton is settled.
void TwoWayScan::find_far(const uint8_t *from, uint8_t state) {
  known_.clear();
  next_ = 0;
  uint16_t right;
  for (;;) {
    known_.push_back({from, 0, state});
    forward(from, stop_, state);
    if (from + size_ == stop_) {
      right = automaton_.two_way.end;
      from = stop_;
      break;
    }
    if (settled_ != 0) {
      from += settled_;
      right = automaton_.two_way.settled[states_[settled_]];
      break;
    }
    from += size_;
    state = states_[size_];
  }
  known_.push_back({from, right, 0});
  uint64_t starts[max_bytes / 64 + 1], drops[max_bytes / 64 + 1]; // reported later
  for (size_t i = known_.size() - 1; i-- > 0;) {
    forward(known_[i].at, known_[i + 1].at, known_[i].state);
    known_[i].right = right = back(known_[i].at, size_, right, starts, drops);
  }
}

} // namespace bpe
