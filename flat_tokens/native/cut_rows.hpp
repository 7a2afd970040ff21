// Inputs, targets and start flags of rows, in one pass over the encoded tokens.
//
// An encoded token is `id * 2 + 1` at the start of a sequence and `id * 2` elsewhere. Targets are the ids.
// Inputs are the targets shifted right by one, with `start_id` at the start of a sequence.
// flat_tokens/rows/cut.py has the same functions in numpy, which are the specification.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// Writes the `length` tokens from encoded[firsts[row]] on to [row * length, (row + 1) * length) of the three
// outputs, for each of `count` rows. No output may overlap another array. Each row must be within the array.
// If firsts[row] > 0, the token before the row is read as well. The first input of a row at 0 without a start
// flag is its own first id. Id is uint16_t, uint32_t or uint64_t and must hold every id.
//
// Uses one thread, allocates no memory and has no errors.
template <class Id>
void cut_rows(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id start_id,
              Id *inputs, Id *targets, uint8_t *is_start);

// Writes the same rows unshifted: the ids, and labels, which equal the ids except for `ignored` at the start
// of a sequence. Id is uint32_t or uint64_t. No token before a row is read.
template <class Id>
void cut_labels(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id ignored,
                Id *labels, Id *ids, uint8_t *is_start);

} // namespace flat_tokens
