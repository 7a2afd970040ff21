// Ids in 16 bits and start flags in a bit each: what shuffled rows of decoded tokens wait in for their batch.
//
// Half of the memory that is written once and read once for each token, which is what remains of a batch's
// cost beside the decoding. For arrays whose ids all fit 16 bits. The same in numpy, the specification:
// flat_tokens/rows/narrow_window.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// Puts the tokens encoded[0, count) (id * 2 + start) to the places [at, at + count): their ids to `ids`, 16
// bits of each; their flags to `start_bits`, bit i % 64 of word i / 64 for place i, other bits being left
// alone. Returns the largest encoded token, 0 of none: ids are only those of the tokens if it is below 2^17.
// One thread, 0.1 ns a token and the memory's time.
uint32_t narrow(const uint32_t *encoded, size_t count, uint16_t *ids, uint64_t *start_bits, size_t at);

// As cut_rows of cut_rows.hpp, from what `narrow` made. Here every row has a place in front of it:
// firsts[row] >= 1.
template <class Id>
void cut_narrow(const uint16_t *ids, const uint64_t *start_bits, const int64_t *firsts, size_t count,
                size_t length, Id *inputs, Id *targets, uint8_t *is_start);

} // namespace flat_tokens
