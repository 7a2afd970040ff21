// Rows of a flat-tokens array as a model takes them, in one pass over the encoded tokens.
//
// An encoded token is `id * 2 + 1` where a sequence starts and `id * 2` elsewhere. A row's targets are its
// ids, its inputs the ids one further, `start_id` where a sequence starts. The same in numpy, which is the
// specification and runs where this is not built: flat_tokens/rows/row_cut.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

// For each of `count` rows: its `length` tokens, from encoded[firsts[row]] on, go to places
// [row * length, (row + 1) * length) of the three outputs, none of which may overlap another array. Needs
// 0 <= firsts[row] and firsts[row] + length <= the array's end; where firsts[row] > 0, the token in front is
// read too, and a row at 0 that begins without a start has its own first id there. Id is uint16_t, uint32_t
// or uint64_t and must hold every id.
//
// One thread, no memory of its own, no errors.
template <class Id>
void cut_rows(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id start_id,
              Id *inputs, Id *targets, uint8_t *is_start);

// The same rows unshifted: the ids, and labels that equal them but for `ignored` where a sequence starts. Id
// is uint32_t or uint64_t; no token in front of a row is read.
template <class Id>
void cut_labels(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id ignored,
                Id *labels, Id *ids, uint8_t *is_start);

} // namespace flat_tokens
