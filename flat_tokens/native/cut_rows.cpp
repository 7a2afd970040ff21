// for each row: prefetch the next row; for each token: write the id, the flag, and the input or the label
//
// The compiler vectorizes the inner loop, with 16 bytes in the baseline build. Wider vectors gain little,
// since rows come from memory.
#include "cut_rows.hpp"

#include "clones.hpp"

namespace flat_tokens {

namespace {

constexpr size_t line_bytes = 64;
constexpr int second_level = 2;  // cache level, as __builtin_prefetch numbers them
constexpr size_t rows_ahead = 4; // prefetch distance in rows, for page look-ups
// 1 KiB of input and at most 4.3 KiB of output, which fit in the first-level cache.
constexpr size_t block_tokens = 256;

// Returns `fill` at a start, otherwise the id. A mask instead of a branch: baseline vectors have no blend.
template <class Id> inline Id id_or(Id fill, uint32_t token, uint32_t flag) {
  const Id keep = static_cast<Id>(flag) - 1;
  return static_cast<Id>((static_cast<Id>(token >> 1) & keep) | (fill & static_cast<Id>(~keep)));
}

// Rows are mostly on different pages, which hardware prefetchers do not follow. The next row is therefore
// prefetched to the second-level cache, which has room for more pending lines than the first.
template <Kind kind, class Id>
FLAT_TOKENS_CLONES void cut(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length,
                            Id fill, Id *__restrict second, Id *__restrict ids,
                            uint8_t *__restrict is_start) {
  constexpr size_t before = kind == Kind::inputs;
  for (size_t row = 0; row < count; ++row, second += length, ids += length, is_start += length) {
    const uint32_t *const here = encoded + firsts[row];
    const uint32_t *const next = row + 1 < count ? encoded + firsts[row + 1] : nullptr;
    if (row + rows_ahead < count) {
      const uint32_t *const later = encoded + firsts[row + rows_ahead];
      __builtin_prefetch(later - before); // often the last token of the page before the row
      __builtin_prefetch(later);
    }
    if (next)
      __builtin_prefetch(next - before, 0, second_level);
    size_t start = 0;
    if (before && firsts[row] == 0) { // there is no token before it
      second[0] = id_or<Id>(fill, here[0], here[0] & 1);
      ids[0] = static_cast<Id>(here[0] >> 1);
      is_start[0] = here[0] & 1;
      start = 1;
    }
    while (start < length) {
      const size_t stop = length - start < block_tokens ? length : start + block_tokens;
      if (next)
        for (size_t i = start; i < stop; i += line_bytes / sizeof(uint32_t))
          __builtin_prefetch(next + i, 0, second_level);
      for (size_t i = start; i < stop; ++i) {
        const uint32_t flag = here[i] & 1;
        ids[i] = static_cast<Id>(here[i] >> 1);
        second[i] = id_or<Id>(fill, here[i - before], flag);
        is_start[i] = static_cast<uint8_t>(flag);
      }
      start = stop;
    }
  }
}

} // namespace

template <class Id>
void cut_rows(Kind kind, const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id fill,
              Id *second, Id *ids, uint8_t *is_start) {
  if (kind == Kind::inputs)
    cut<Kind::inputs>(encoded, firsts, count, length, fill, second, ids, is_start);
  else
    cut<Kind::labels>(encoded, firsts, count, length, fill, second, ids, is_start);
}

template void cut_rows(Kind, const uint32_t *, const int64_t *, size_t, size_t, uint16_t, uint16_t *,
                       uint16_t *, uint8_t *);
template void cut_rows(Kind, const uint32_t *, const int64_t *, size_t, size_t, uint32_t, uint32_t *,
                       uint32_t *, uint8_t *);
template void cut_rows(Kind, const uint32_t *, const int64_t *, size_t, size_t, uint64_t, uint64_t *,
                       uint64_t *, uint8_t *);

} // namespace flat_tokens
