// Run the automaton over a window of text and record the action due after each byte.
//
//     for each byte: class = the class of the character that starts there, or `within`
//         state = then[class][state]; record the action of the state
//
// 1. Each state depends on the previous one, which takes about six cycles per step. A step therefore covers
//    two bytes if the tables are small.
// 2. Eight parts of the window run in parallel, each from a guessed first state. After a wrong guess, a part
//    runs again until both runs reach the same state, usually after about a word (based on Mytkowicz,
//    Musuvathi and Schulte, "Data-parallel finite-state machines", 2014).
#pragma once

#include "common/prefetch.hpp"
#include "pretokenize/classify.hpp"
#include "text/utf8.hpp"

#include <cstring>

namespace bpe {

struct WindowStates {
  static constexpr size_t max_bytes = 4096, words = max_bytes / 64;

  // One bit per byte: whether a piece starts there, a piece starts one character before, actions are due, or
  // the byte is within a character.
  uint64_t here[words], before[words], acting[words], within[words];
  uint16_t rows[max_bytes] = {}; // per step: index of its row, and the low half of its entry
  alignas(64) uint16_t behind[max_bytes];
  uint8_t first_state; // before the first step

  // Return the state after byte i, including the action due there.
  uint8_t state_behind(const Automaton &automaton, size_t i) const {
    const Steps &steps = automaton.steps;
    const size_t step = i / steps.bytes, kinds = size_t{rows[step]} >> steps.row_shift;
    uint8_t state = first_state;
    if (step > 0)
      state = static_cast<uint8_t>(automaton.here_end + Steps::state(behind[step - 1]));
    if (steps.bytes == 1)
      return automaton.then[kinds * Automaton::row + state];
    state = automaton.then[kinds / steps.class_count * Automaton::row + state];
    return i % 2 == 0 ? state : automaton.then[kinds % steps.class_count * Automaton::row + state];
  }
};

// Scan as much of text[0, size), size > 0, as fits in a window, from `state`. Bytes up to `readable` may be
// read. Returns the number of bytes scanned. The text and the window start and end between characters.
using ScanWindow = size_t (*)(const Automaton &automaton, const uint8_t *text, size_t size,
                              const uint8_t *readable, uint8_t state, WindowStates &out);

namespace {

constexpr size_t scan_chains = 8;

// The data of a step. The index of a state in its row is passed in and out.
class Stepping {
public:
  Stepping(const Steps &steps, WindowStates &out)
      : entries_(reinterpret_cast<const uint8_t *>(steps.entries.data())), out_(out) {}

  [[gnu::always_inline]] void step(size_t number, size_t &place) const {
    constexpr size_t unit_bytes = Steps::row_unit * sizeof(uint32_t);
    uint32_t entry;
    std::memcpy(&entry, entries_ + out_.rows[number] * unit_bytes + place, sizeof entry);
    out_.behind[number] = static_cast<uint16_t>(entry);
    place = entry >> 16;
  }
  size_t place_behind(size_t number) const { return Steps::state(out_.behind[number]) * sizeof(uint32_t); }

private:
  const uint8_t *const entries_;
  WindowStates &out_;
};

template <size_t stride> void run_chains(Stepping steps, size_t first) {
  size_t a = first, b = first, c = first, d = first, e = first, f = first, g = first, h = first;
  for (size_t i = 0; i < stride; ++i) {
    steps.step(i, a), steps.step(i + stride, b);
    steps.step(i + 2 * stride, c), steps.step(i + 3 * stride, d);
    steps.step(i + 4 * stride, e), steps.step(i + 5 * stride, f);
    steps.step(i + 6 * stride, g), steps.step(i + 7 * stride, h);
  }
}

template <size_t... lengths> inline void run_chains_of(size_t stride, Stepping steps, size_t first) {
  (void)((stride == lengths && (run_chains<lengths>(steps, first), true)) || ...);
}

inline void run_steps(const Automaton &automaton, size_t count, WindowStates &out) {
  constexpr size_t worth_chains = 64; // minimum number of steps
  const Stepping steps(automaton.steps, out);
  const size_t first = (out.first_state - automaton.here_end) * sizeof(uint32_t);
  if (count <= worth_chains) {
    size_t place = first;
    for (size_t i = 0; i < count; ++i)
      steps.step(i, place);
    return;
  }
  const size_t unit = count <= 16 * 64 ? 16 : count <= 16 * 128 ? 32 : 64;
  const size_t stride = (count + unit * scan_chains - 1) / (unit * scan_chains) * unit;
  run_chains_of<16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512>(stride, steps,
                                                                                          first);
  for (size_t start = stride; start < count; start += stride) {
    size_t place = steps.place_behind(start - 1);
    for (size_t i = start, known; i < count; ++i) { // until the index is the same as before
      known = steps.place_behind(i);
      steps.step(i, place);
      if (place == known)
        break;
    }
  }
}

// The rows of 64 bytes, in 16 bits throughout to compute many at once.
inline void add_rows(const Steps &steps, const uint8_t *classes, uint16_t *to) {
  const uint16_t of_last = static_cast<uint16_t>(1u << steps.row_shift),
                 of_first = static_cast<uint16_t>(steps.class_count << steps.row_shift);
  if (steps.bytes == 1)
    for (size_t i = 0; i < 64; ++i)
      to[i] = static_cast<uint16_t>(classes[i] * of_last);
  else
    for (size_t i = 0; i < 32; ++i) {
      uint16_t both;
      std::memcpy(&both, classes + 2 * i, sizeof both);
      to[i] = static_cast<uint16_t>((both & 255) * of_first + (both >> 8) * of_last);
    }
}

template <class Simd>
size_t scan_window(const Automaton &automaton, const uint8_t *text, size_t size, const uint8_t *readable,
                   uint8_t state, WindowStates &out) {
  constexpr size_t block = 64, reads = block + 3; // a character may continue after the block
  constexpr size_t bytes_ahead = 24 * block; // encoding in between evicts the text from the first-level cache
  const Steps &steps = automaton.steps;
  const size_t block_steps = block / steps.bytes;
  alignas(64) uint8_t classes[WindowStates::max_bytes];
  size_t at = 0, word = 0;
  for (; at < size && at < WindowStates::max_bytes; at += block, ++word) {
    const uint8_t *p = text + at;
    prefetch_to_read(p + bytes_ahead);
    uint8_t copy[reads];
    if (static_cast<size_t>(readable - p) < reads) [[unlikely]] {
      std::memset(copy, 0, sizeof copy);
      std::memcpy(copy, p, size - at < reads ? size - at : reads);
      p = copy;
    }
    out.within[word] = Simd::classify(automaton.classes, p, classes + at);
  }
  for (size_t i = 0; i < word; ++i)
    add_rows(steps, classes + i * block, out.rows + i * block_steps);
  if (at < size) // back to the end of a character
    for (size = at; continues_character(text[size]);)
      --size;
  out.first_state = automaton.quiet(state);
  run_steps(automaton, (size + steps.bytes - 1) / steps.bytes, out);
  for (word = 0; word * block < size; ++word) {
    const uint16_t *const behind = out.behind + word * block_steps;
    alignas(64) uint8_t narrow[block];
    const uint8_t *due = reinterpret_cast<const uint8_t *>(behind);
    if (steps.bytes == 1) {
      for (size_t i = 0; i < block; ++i)
        narrow[i] = static_cast<uint8_t>(behind[i]);
      due = narrow;
    }
    out.here[word] = Simd::with_bit(due, Steps::here);
    out.before[word] = Simd::with_bit(due, Steps::before);
    out.acting[word] = Simd::with_bit(due, Steps::acting);
  }
  const uint64_t rest = ~uint64_t{0} >> (block * word - size);
  out.here[word - 1] &= rest, out.before[word - 1] &= rest, out.acting[word - 1] &= rest;
  return size;
}

} // namespace
} // namespace bpe
