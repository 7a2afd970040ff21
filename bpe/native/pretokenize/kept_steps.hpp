// Which characters of 64 bytes steps are made for: all but those that repeat the one before
// (bpe/pretokenization/repeats.py).
//
// Built for each SIMD variant, so nothing here may become a symbol that variants share.
#pragma once

#include "pretokenize/automaton.hpp"

#include <bit>
#include <cstdint>

namespace bpe {
namespace {

// A bit for each byte: it is within a character; its group is `word`, `unruly`, that of the byte before and
// at least `first`, or at least `twice`.
struct StepGroups {
  uint64_t within, words, unruly, once, twice;
};

// What carries over from one block to the next.
class KeptSteps {
public:
  uint64_t kept(const StepGroups &groups) {
    const uint64_t within = groups.within;
    uint64_t behind_words = groups.words;
    if (within != 0)
      for (int i = 0; i < 3; ++i)
        behind_words |= (behind_words << 1 | last_words_) & within;
    uint64_t near = groups.unruly << 1;
    near |= near << 1;
    near |= near << 2;
    near |= near << 4;
    near |= near << 8;
    near |= near_before_;
    static_assert(runs::unruly_bytes == 16);
    const uint64_t once = groups.once;
    const uint64_t twice = once & groups.twice & ~(once << 1 | last_once_);
    const uint64_t kept =
        ~(within | (groups.words & (behind_words << 1 | last_words_) & ~near) | (once & ~twice));
    last_words_ = behind_words >> 63;
    last_once_ = once >> 63;
    const unsigned behind = static_cast<unsigned>(std::countl_zero(groups.unruly)); // the last one
    near_before_ = behind < runs::unruly_bytes ? (uint64_t{1} << (runs::unruly_bytes - behind)) - 1 : 0;
    return kept;
  }

private:
  // What is before a window is not known.
  uint64_t last_words_ = 0, last_once_ = 0, near_before_ = (uint64_t{1} << runs::unruly_bytes) - 1;
};

} // namespace
} // namespace bpe
