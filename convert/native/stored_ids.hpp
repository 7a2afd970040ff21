// Token IDs on their way to a temporary shard: separated by split and encoded as the dataset stores them.
//
//   word = id * 2, plus 1 at the first token of a document
//   with a loss mask, bit 31 of an ID (not trained) is also bit 31 of its word
//
//   for each row that is not empty:
//     append its position among the words of its split to the starts of that split
//     append front, ids and back as words to the words of that split
//     set bit 0 of its first word
//
// Two passes over the offsets and one over the IDs. Allocates nothing, throws nothing, runs in any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace convert {

// With a loss mask, IDs are below 2^30, and this bit says that the token is not trained. Else IDs are below
// 2^31.
inline constexpr uint32_t kNotTrained = 1U << 31;

// rows: those that are not empty. highest: the highest ID, 0 if there is none.
struct SplitStats {
  uint64_t words, rows, not_trained;
  uint32_t highest;
};

// IDs to add around each row that is not empty.
struct EndIds {
  std::optional<uint32_t> front, back;
  [[nodiscard]] size_t count() const { return size_t{front.has_value()} + size_t{back.has_value()}; }
};

// Row i is ids[offsets[i], offsets[i + 1]). Train precedes validation in `words` and in `starts`. before: how
// many words of each split came earlier. words: room for all IDs and ends.count() more per row. starts: room
// for all rows. The arrays must not overlap.
std::array<SplitStats, 2> partition_by_split(const uint32_t *ids, const uint64_t *offsets,
                                             const bool *is_validation, size_t rows, const EndIds &ends,
                                             bool has_mask, const std::array<uint64_t, 2> &before,
                                             uint32_t *words, uint64_t *starts);

} // namespace convert
