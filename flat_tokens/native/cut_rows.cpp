// for each row: prefetch the next row; for each token: write the id, the flag, and the input or the label
//
// The compiler vectorizes the loops, with 16 bytes in the baseline build. Wider vectors are faster if ids are
// narrowed to 16 bits, so on x86-64 the same code is also compiled for them.
#include "cut_rows.hpp"

#include "instruction_sets.hpp"

namespace flat_tokens {

namespace {

constexpr size_t line_bytes = 64;
constexpr int second_level = 2;  // cache level, as __builtin_prefetch numbers them
constexpr size_t rows_ahead = 4; // prefetch distance in rows, for page look-ups
// 1 KiB of input and at most 4.3 KiB of output, which fit in the first-level cache.
constexpr size_t block_tokens = 256;

// Makes the inputs: the id before each token, or `start_id` at a start.
template <class Id> struct Inputs {
  static constexpr bool reads_in_front = true;
  Id start_id;
  Id at(const uint32_t *here, uint32_t flag) const {
    return flag ? start_id : static_cast<Id>(here[-1] >> 1);
  }
  Id first(uint32_t token) const { return token & 1 ? start_id : static_cast<Id>(token >> 1); }
};

// Makes the labels: the id of each token, or `ignored` at a start.
template <class Id> struct Labels {
  static constexpr bool reads_in_front = false;
  Id ignored;
  Id at(const uint32_t *here, uint32_t flag) const { return flag ? ignored : static_cast<Id>(here[0] >> 1); }
};

// Rows are mostly on different pages, which hardware prefetchers do not follow. The next row and the token
// before it are therefore prefetched to the second-level cache, which has room for more pending lines than
// the first.
template <class Id, template <class> class Second>
[[gnu::always_inline]] inline void cut_row(const uint32_t *encoded, size_t length, const uint32_t *next,
                                           const Second<Id> make, Id *__restrict second, Id *__restrict ids,
                                           uint8_t *__restrict is_start) {
  if (next)
    __builtin_prefetch(next - Second<Id>::reads_in_front, 0, second_level);
  for (size_t start = 0; start < length; start += block_tokens) {
    const size_t size = length - start < block_tokens ? length - start : block_tokens;
    if (next)
      for (size_t i = 0; i < size; i += line_bytes / sizeof(uint32_t))
        __builtin_prefetch(next + start + i, 0, second_level);
    const uint32_t *const here = encoded + start;
    Id *const second_here = second + start;
    Id *const ids_here = ids + start;
    uint8_t *const is_start_here = is_start + start;
    for (size_t i = 0; i < size; ++i) {
      const uint32_t flag = here[i] & 1;
      ids_here[i] = static_cast<Id>(here[i] >> 1);
      second_here[i] = make.at(here + i, flag);
      is_start_here[i] = static_cast<uint8_t>(flag);
    }
  }
}

template <class Id, template <class> class Second>
[[gnu::always_inline]] inline void cut_all(const uint32_t *encoded, const int64_t *firsts, size_t count,
                                           size_t length, const Second<Id> make, Id *second, Id *ids,
                                           uint8_t *is_start) {
  for (size_t row = 0; row < count; ++row, second += length, ids += length, is_start += length) {
    const uint32_t *here = encoded + firsts[row];
    const uint32_t *const next = row + 1 < count ? encoded + firsts[row + 1] : nullptr;
    if (row + rows_ahead < count) {
      const uint32_t *const later = encoded + firsts[row + rows_ahead];
      // often the last token of the page before the row
      __builtin_prefetch(later - Second<Id>::reads_in_front);
      __builtin_prefetch(later);
    }
    size_t done = 0;
    if constexpr (Second<Id>::reads_in_front)
      if (firsts[row] == 0 && length > 0) { // there is no token before it
        second[0] = make.first(here[0]);
        ids[0] = static_cast<Id>(here[0] >> 1);
        is_start[0] = here[0] & 1;
        done = 1;
      }
    cut_row(here + done, length - done, next, make, second + done, ids + done, is_start + done);
  }
}

#ifdef FLAT_TOKENS_HAS_AVX
template <class Id, template <class> class Second>
FLAT_TOKENS_AVX2 void cut_with_avx2(const uint32_t *encoded, const int64_t *firsts, size_t count,
                                    size_t length, const Second<Id> make, Id *second, Id *ids,
                                    uint8_t *is_start) {
  cut_all(encoded, firsts, count, length, make, second, ids, is_start);
}

FLAT_TOKENS_AVX512 void cut_with_avx512(const uint32_t *encoded, const int64_t *firsts, size_t count,
                                        size_t length, uint16_t start_id, uint16_t *inputs, uint16_t *targets,
                                        uint8_t *is_start) {
  cut_all(encoded, firsts, count, length, Inputs<uint16_t>{start_id}, inputs, targets, is_start);
}
#endif

template <class Id, template <class> class Second>
void cut(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, const Second<Id> make,
         Id *second, Id *ids, uint8_t *is_start) {
#ifdef FLAT_TOKENS_HAS_AVX
  if (has_avx2())
    return cut_with_avx2(encoded, firsts, count, length, make, second, ids, is_start);
#endif
  cut_all(encoded, firsts, count, length, make, second, ids, is_start);
}

} // namespace

template <class Id>
void cut_rows(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id start_id,
              Id *inputs, Id *targets, uint8_t *is_start) {
#ifdef FLAT_TOKENS_HAS_AVX
  if constexpr (sizeof(Id) == sizeof(uint16_t)) // wider ids are not faster
    if (has_avx512())
      return cut_with_avx512(encoded, firsts, count, length, start_id, inputs, targets, is_start);
#endif
  cut(encoded, firsts, count, length, Inputs<Id>{start_id}, inputs, targets, is_start);
}

template <class Id>
void cut_labels(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id ignored,
                Id *labels, Id *ids, uint8_t *is_start) {
  cut(encoded, firsts, count, length, Labels<Id>{ignored}, labels, ids, is_start);
}

template void cut_rows(const uint32_t *, const int64_t *, size_t, size_t, uint16_t, uint16_t *, uint16_t *,
                       uint8_t *);
template void cut_rows(const uint32_t *, const int64_t *, size_t, size_t, uint32_t, uint32_t *, uint32_t *,
                       uint8_t *);
template void cut_rows(const uint32_t *, const int64_t *, size_t, size_t, uint64_t, uint64_t *, uint64_t *,
                       uint8_t *);
template void cut_labels(const uint32_t *, const int64_t *, size_t, size_t, uint32_t, uint32_t *, uint32_t *,
                         uint8_t *);
template void cut_labels(const uint32_t *, const int64_t *, size_t, size_t, uint64_t, uint64_t *, uint64_t *,
                         uint8_t *);

} // namespace flat_tokens
