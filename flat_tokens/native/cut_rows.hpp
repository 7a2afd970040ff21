// Inputs or labels, ids and start flags of rows, in one pass over the encoded tokens.
//
// An encoded token is `id * 2 + 1` at the start of a sequence and `id * 2` elsewhere. Inputs are the ids
// shifted right by one, with `fill` at the start of a sequence. Labels are the ids, with `fill` at the start.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flat_tokens {

enum class Kind { inputs, labels };

// Writes the `length` tokens from encoded[firsts[row]] on to [row * length, (row + 1) * length) of the three
// outputs, for each of `count` rows. `second` gets inputs or labels. No output may overlap another array.
// Each row must be within the array. For inputs, if firsts[row] > 0, the token before the row is read as
// well; the first input of a row at 0 without a start flag is its own first id. Id is uint16_t, uint32_t or
// uint64_t and must hold every id.
//
// Uses one thread, allocates no memory and has no errors.
template <class Id>
void cut_rows(Kind kind, const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id fill,
              Id *second, Id *ids, uint8_t *is_start);

} // namespace flat_tokens
