// A window of text through an automaton: for each byte what is due behind it.
//
// A state waits for the one before it, some five cycles a step. So steps that change nothing are left out,
// where the classes of a few bytes tell which (Simd::keep), and those that are left go in eight parts side by
// side, each from a guess of its first state; where a part was guessed wrong, it is done again up to where
// both ways meet, which in text is a word or so behind (after Mytkowicz, Musuvathi and Schulte,
// "Data-parallel finite-state machines", 2014).
#pragma once

#include "common/prefetch.hpp"
#include "pretokenize/classify.hpp"
#include "pretokenize/window_view.hpp"
#include "text/utf8.hpp"

#include <cstring>

namespace bpe {

struct WindowStates {
  static constexpr size_t max_bytes = 4096, words = max_bytes / 64;
  static constexpr size_t max_steps = 1024;

  // Of each 64 bytes: the bytes that steps are made for, and the number of steps before. A bit a byte:
  // whether a piece starts there, started one character before, or actions are due.
  uint64_t kept[words], here[words], before[words], acting[words], within[words];
  uint32_t steps_before[words + 1];
  alignas(64) uint8_t classes[max_steps + 64] = {}; // of the steps
  alignas(64) uint8_t states[max_steps + 64];       // behind them
  uint8_t first_state;                              // before them

  // The state behind byte number i: without what is due there, if no step was made for it.
  uint8_t state_behind(size_t i) const {
    const uint64_t up_to = kept[i / 64] & ~(~uint64_t{1} << i % 64);
    const size_t steps = steps_before[i / 64] + static_cast<size_t>(__builtin_popcountll(up_to));
    return steps == 0 ? first_state : states[steps - 1];
  }
};

// As much of text[0, size), size > 0, as fits in a window, which `state` is before; bytes up to `readable`
// may be read. Returns how many bytes that are. The text starts and ends between characters, and so does the
// window.
using ScanWindow = size_t (*)(const Automaton &automaton, const uint8_t *text, size_t size,
                              const uint8_t *readable, uint8_t state, WindowStates &out);

namespace {

constexpr size_t scan_chains = 8;

template <size_t stride> void run_chains(const uint8_t *then, uint8_t first, WindowStates &out) {
  const uint8_t *const classes = out.classes;
  uint8_t *const states = out.states;
  size_t a = first, b = first, c = first, d = first, e = first, f = first, g = first, h = first;
  for (size_t i = 0; i < stride; ++i) {
    const auto step = [&](size_t &state, size_t chain) {
      state = then[(static_cast<size_t>(classes[i + chain * stride]) << 8) + state];
      states[i + chain * stride] = static_cast<uint8_t>(state);
    };
    static_assert(Automaton::row == 1 << 8);
    step(a, 0), step(b, 1), step(c, 2), step(d, 3), step(e, 4), step(f, 5), step(g, 6), step(h, 7);
  }
}

// From step `from` on, where `state` is before it, until the state is what is there already.
inline void run_on(const uint8_t *then, size_t from, size_t steps, size_t state, WindowStates &out) {
  for (size_t i = from; i < steps; ++i) {
    state = then[out.classes[i] * Automaton::row + state];
    if (out.states[i] == state)
      return;
    out.states[i] = static_cast<uint8_t>(state);
  }
}

inline void run_states(const Automaton &automaton, size_t steps, WindowStates &out) {
  constexpr size_t worth_chains = 64; // steps
  const uint8_t *const then = automaton.then.data();
  if (steps <= worth_chains) {
    size_t state = out.first_state;
    for (size_t i = 0; i < steps; ++i)
      out.states[i] = static_cast<uint8_t>(state = then[out.classes[i] * Automaton::row + state]);
    return;
  }
  using Run = void (*)(const uint8_t *, uint8_t, WindowStates &);
  constexpr Run runs[] = {run_chains<16>, run_chains<32>, run_chains<48>,  run_chains<64>,
                          run_chains<80>, run_chains<96>, run_chains<112>, run_chains<128>};
  static_assert(WindowStates::max_steps == 128 * scan_chains);
  const size_t which = (steps - 1) / (16 * scan_chains), stride = 16 * (which + 1);
  runs[which](then, out.first_state, out);
  for (size_t start = stride; start < steps; start += stride)
    run_on(then, start, steps, out.states[start - 1], out);
}

template <class Simd>
size_t scan_window(const Automaton &automaton, const uint8_t *text, size_t size, const uint8_t *readable,
                   uint8_t state, WindowStates &out) {
  constexpr size_t most_step_words = WindowStates::max_steps / 64 + 2;
  constexpr size_t block = 64, reads = block + 3; // a character may go on behind the block
  constexpr size_t bytes_ahead =
      24 * block; // what is encoded meanwhile takes the text out of the nearest cache
  typename Simd::Keep keep(automaton);
  size_t at = 0, steps = 0;
  for (; at < size && at < WindowStates::max_bytes && steps + block <= WindowStates::max_steps; at += block) {
    const uint8_t *p = text + at;
    prefetch_to_read(p + bytes_ahead);
    uint8_t copy[reads];
    if (static_cast<size_t>(readable - p) < reads) [[unlikely]] {
      std::memset(copy, 0, sizeof copy);
      std::memcpy(copy, p, size - at < reads ? size - at : reads);
      p = copy;
    }
    out.steps_before[at / block] = static_cast<uint32_t>(steps);
    steps += keep.add(p, at / block, out.classes + steps, out);
  }
  if (at < size) // back to the end of a character
    for (size = at; continues_character(text[size]);)
      --size;
  const size_t last = (size - 1) / block, rest = (size - 1) % block + 1;
  out.kept[last] &= ~uint64_t{0} >> (block - rest);
  steps = out.steps_before[last] + static_cast<size_t>(__builtin_popcountll(out.kept[last]));
  out.first_state = state;
  run_states(automaton, steps, out);
  uint64_t here[most_step_words], before[most_step_words], acting[most_step_words]; // a bit for each step
  const size_t last_step_word = steps / 64;
  here[last_step_word + 1] = before[last_step_word + 1] = acting[last_step_word + 1] = 0;
  for (size_t word = 0; word <= last_step_word; ++word) {
    const uint8_t *const states = out.states + word * 64;
    before[word] = Simd::below(states, automaton.both_end);
    here[word] = Simd::below(states, automaton.here_end) & ~Simd::below(states, automaton.before_end);
    acting[word] = ~Simd::below(states, automaton.silent_end);
  }
  for (size_t word = 0; word <= last; ++word) {
    const auto spread = [&](const uint64_t *bits) {
      return Simd::spread(bits_from(bits, out.steps_before[word]), out.kept[word]);
    };
    out.here[word] = spread(here);
    out.before[word] = spread(before);
    out.acting[word] = spread(acting);
  }
  return size;
}

// Steps for all bytes, for instruction sets without a way to leave some out.
class KeepAll {
public:
  explicit KeepAll(const Automaton &automaton) : classes_(automaton.classes) {}

  // The classes of 64 bytes for which steps are made; returns how many.
  size_t add(const uint8_t *p, size_t word, uint8_t *to, WindowStates &out) {
    classify_each(classes_, p, to);
    out.kept[word] = ~uint64_t{0};
    out.within[word] = 0;
    for (size_t i = 0; i < 64; ++i)
      out.within[word] |= static_cast<uint64_t>(continues_character(p[i])) << i;
    return 64;
  }

private:
  const CharacterClasses &classes_;
};

} // namespace
} // namespace bpe
