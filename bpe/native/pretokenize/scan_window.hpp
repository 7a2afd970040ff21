// A window of text through an automaton: for each byte the state behind it.
//
// A state waits for the one before it, some five cycles a byte. So the window is cut into eight parts that go
// side by side, each from a guess of its first state; where a part was guessed wrong, it is done again up to
// where both ways meet, which in text is a word or so behind (after Mytkowicz, Musuvathi and Schulte,
// "Data-parallel finite-state machines", 2014).
#pragma once

#include "pretokenize/automaton.hpp"

#include <cstring>

namespace bpe {

struct WindowStates {
  static constexpr size_t max_bytes = 4096;
  static constexpr size_t words = max_bytes / 64;

  alignas(64) uint8_t classes[max_bytes + 64] = {}; // of the bytes
  alignas(64) uint8_t states[max_bytes + 64];       // behind them
  uint64_t starts[words], acting[words];            // a bit a byte: states below first_silent, from first_acting on
};

// The states behind text[0, size), 0 < size <= max_bytes, which `state` is before; bytes up to `readable` may
// be read. The text starts and ends between characters.
using ScanWindow = void (*)(const Automaton &automaton, const uint8_t *text, size_t size, const uint8_t *readable,
                            uint8_t state, WindowStates &out);

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

// From byte `from` on, where `state` is before it, until the state is what is there already.
inline void run_on(const uint8_t *then, size_t from, size_t size, size_t state, WindowStates &out) {
  for (size_t i = from; i < size; ++i) {
    state = then[out.classes[i] * Automaton::row + state];
    if (out.states[i] == state)
      return;
    out.states[i] = static_cast<uint8_t>(state);
  }
}

inline void run_states(const Automaton &automaton, size_t size, uint8_t first, WindowStates &out) {
  constexpr size_t worth_chains = 112; // bytes
  const uint8_t *const then = automaton.then.data();
  if (size <= worth_chains) {
    size_t state = first;
    for (size_t i = 0; i < size; ++i)
      out.states[i] = static_cast<uint8_t>(state = then[out.classes[i] * Automaton::row + state]);
    return;
  }
  using Run = void (*)(const uint8_t *, uint8_t, WindowStates &);
  constexpr Run runs[] = {run_chains<64>,  run_chains<128>, run_chains<192>, run_chains<256>,
                          run_chains<320>, run_chains<384>, run_chains<448>, run_chains<512>};
  const size_t which = (size - 1) / (64 * scan_chains), stride = 64 * (which + 1);
  runs[which](then, first, out);
  for (size_t start = stride; start < size; start += stride)
    run_on(then, start, size, out.states[start - 1], out);
}

template <class Simd>
void scan_window(const Automaton &automaton, const uint8_t *text, size_t size, const uint8_t *readable,
                 uint8_t state, WindowStates &out) {
  constexpr size_t block = 64, reads = block + 3; // a character may go on behind the block
  size_t at = 0;
  for (; at < size && static_cast<size_t>(readable - text) - at >= reads; at += block)
    Simd::classify(automaton.classes, text + at, out.classes + at);
  for (; at < size; at += block) {
    uint8_t copy[reads] = {};
    std::memcpy(copy, text + at, size - at < reads ? size - at : reads);
    Simd::classify(automaton.classes, copy, out.classes + at);
  }
  run_states(automaton, size, state, out);
  const unsigned silent = automaton.first_silent, acting = automaton.first_acting;
  for (size_t word = 0; word * block < size; ++word) {
    out.starts[word] = Simd::below(out.states + word * block, silent);
    out.acting[word] = ~Simd::below(out.states + word * block, acting);
  }
  if (const size_t rest = size % block; rest != 0) {
    const uint64_t there = (uint64_t{1} << rest) - 1;
    out.starts[size / block] &= there;
    out.acting[size / block] &= there;
  }
}

} // namespace
} // namespace bpe
