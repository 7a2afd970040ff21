// Ids on their way to a dataset: put apart by split, narrow in a temporary file, then `id * 2`, plus 1 where
// a sequence starts.
//
// One pass each over memory that fits a core's cache. Nothing is allocated, nothing is thrown. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe {

// Writes the low halves of the ids and returns the highest of the whole ids, 0 if there are none: above 65535
// something was lost. The two do not overlap.
uint32_t narrow_ids(const uint32_t *ids, size_t count, uint16_t *out);

// out[i] = ids[i] * 2. Ids lie below 2^31. The two do not overlap.
void double_ids(const uint16_t *ids, size_t count, uint32_t *out);
void double_ids(const uint32_t *ids, size_t count, uint32_t *out);

// Row i is ids[offsets[i], offsets[i + 1]). The marked ones are copied to `out`, end to end, the others move
// up to the front of `ids`, both in their order. Returns how many ids stay.
size_t take_rows_out(uint32_t *ids, const uint64_t *offsets, const bool *marked, size_t rows, uint32_t *out);

} // namespace bpe
