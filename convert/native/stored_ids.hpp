// Ids on their way to a dataset: put apart by split, narrow in a temporary file, then `id * 2`, plus 1 where
// a sequence starts.
//
// One pass each over memory that fits a core's cache. Nothing is allocated, nothing is thrown. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace convert {

// Ids lie below 2^31. What is above, in 32 bits, is a mark of the caller's.
inline constexpr uint32_t kIdBits = 0x7FFFFFFF;

// out[i] = ids[i] * 2, less the mark. The two do not overlap.
void double_ids(const uint16_t *ids, size_t count, uint32_t *out);
void double_ids(const uint32_t *ids, size_t count, uint32_t *out);

// What rows of one kind come to; `rows` counts those that are not empty.
struct SplitStats {
  uint64_t ids, rows, longest;
  uint32_t highest; // of the whole ids, less their marks; 0 if there are none
};

// Ids that are put in front of and behind each row that is not empty.
struct EndIds {
  std::optional<uint32_t> front, back;
  [[nodiscard]] size_t count() const { return size_t{front.has_value()} + size_t{back.has_value()}; }
};

// Row i is ids[offsets[i], offsets[i + 1]), with the end ids around it. Puts the ids of the rows that are not
// marked to the front of `out` and those of the marked ones behind them, each in their order; and likewise to
// `starts`, of the rows that are not empty, where they begin among their kind; `before` ids of each kind came
// earlier. Of ids that are stored in 16 bits only the low halves are written: with a highest one above 65535
// something was lost. out: room for all ids and
// ends.count() more a row, starts: for all rows; they do not overlap.
template <class Id>
std::array<SplitStats, 2>
partition_by_split(const uint32_t *ids, const uint64_t *offsets, const bool *marked, size_t rows,
                   const EndIds &ends, const std::array<uint64_t, 2> &before, Id *out, uint64_t *starts);

} // namespace convert
