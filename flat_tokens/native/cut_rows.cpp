// The compiler makes vector loops of what is below, of 16 bytes in the baseline build. Wider ones gain where
// ids are narrowed (uint16: 35 -> 29 us for 64 x 1,024 with 32 bytes, and a tenth less with 64), so that on
// x86-64 the same code is built again.
#include "cut_rows.hpp"

#include "instruction_sets.hpp"

namespace flat_tokens {

namespace {

constexpr size_t line_bytes = 64;
constexpr int second_level = 2;  // of caches, as __builtin_prefetch counts
constexpr size_t rows_ahead = 4; // whose pages are looked up: 100 -> 90 us where they are in no cache
constexpr size_t block_tokens =
    256; // 1 KiB of input, at most 4.3 KiB of output: all in the first-level cache

// Rows lie anywhere, mostly each on a page of its own, where no prefetcher of the processor follows: the next
// row is asked for while this one is worked on, its token in front included (53 -> 33 us for 64 x 1,024). It
// is brought to the second-level cache: the first waits for few lines at a time (34 -> 28 us).
template <class Id>
[[gnu::always_inline]] inline void cut_row(const uint32_t *encoded, size_t length, const uint32_t *next,
                                           Id *__restrict inputs, Id *__restrict targets,
                                           uint8_t *__restrict is_start) {
  if (next)
    __builtin_prefetch(next - 1, 0, second_level);
  for (size_t start = 0; start < length; start += block_tokens) {
    const size_t size = length - start < block_tokens ? length - start : block_tokens;
    if (next)
      for (size_t i = 0; i < size; i += line_bytes / sizeof(uint32_t))
        __builtin_prefetch(next + start + i, 0, second_level);
    const uint32_t *const here = encoded + start;
    const uint32_t *const in_front = here - 1;
    Id *const inputs_here = inputs + start;
    Id *const targets_here = targets + start;
    uint8_t *const is_start_here = is_start + start;
    for (size_t i = 0; i < size; ++i) {
      const uint32_t flag = here[i] & 1;
      targets_here[i] = static_cast<Id>(here[i] >> 1);
      inputs_here[i] = static_cast<Id>((in_front[i] >> 1) & (flag - 1));
      is_start_here[i] = static_cast<uint8_t>(flag);
    }
  }
}

template <class Id>
[[gnu::always_inline]] inline void cut_all(const uint32_t *encoded, const int64_t *firsts, size_t count,
                                           size_t length, Id *inputs, Id *targets, uint8_t *is_start) {
  for (size_t row = 0; row < count; ++row, inputs += length, targets += length, is_start += length) {
    const uint32_t *here = encoded + firsts[row];
    const uint32_t *const next = row + 1 < count ? encoded + firsts[row + 1] : nullptr;
    if (row + rows_ahead < count) {
      const uint32_t *const later = encoded + firsts[row + rows_ahead];
      __builtin_prefetch(later - 1); // often the end of a page, and the row the whole of the next one
      __builtin_prefetch(later);
    }
    size_t done = 0;
    if (firsts[row] == 0 && length > 0) { // nothing stands in front
      inputs[0] = here[0] & 1 ? Id{0} : static_cast<Id>(here[0] >> 1);
      targets[0] = static_cast<Id>(here[0] >> 1);
      is_start[0] = here[0] & 1;
      done = 1;
    }
    cut_row(here + done, length - done, next, inputs + done, targets + done, is_start + done);
  }
}

#ifdef FLAT_TOKENS_HAS_AVX
template <class Id>
FLAT_TOKENS_AVX2 void cut_with_avx2(const uint32_t *encoded, const int64_t *firsts, size_t count,
                                    size_t length, Id *inputs, Id *targets, uint8_t *is_start) {
  cut_all(encoded, firsts, count, length, inputs, targets, is_start);
}

FLAT_TOKENS_AVX512 void cut_with_avx512(const uint32_t *encoded, const int64_t *firsts, size_t count,
                                        size_t length, uint16_t *inputs, uint16_t *targets,
                                        uint8_t *is_start) {
  cut_all(encoded, firsts, count, length, inputs, targets, is_start);
}
#endif

} // namespace

template <class Id>
void cut_rows(const uint32_t *encoded, const int64_t *firsts, size_t count, size_t length, Id *inputs,
              Id *targets, uint8_t *is_start) {
#ifdef FLAT_TOKENS_HAS_AVX
  if constexpr (sizeof(Id) == sizeof(uint16_t)) // wider ids gain nothing
    if (has_avx512())
      return cut_with_avx512(encoded, firsts, count, length, inputs, targets, is_start);
  if (has_avx2())
    return cut_with_avx2(encoded, firsts, count, length, inputs, targets, is_start);
#endif
  cut_all(encoded, firsts, count, length, inputs, targets, is_start);
}

template void cut_rows(const uint32_t *, const int64_t *, size_t, size_t, uint16_t *, uint16_t *, uint8_t *);
template void cut_rows(const uint32_t *, const int64_t *, size_t, size_t, uint32_t *, uint32_t *, uint8_t *);
template void cut_rows(const uint32_t *, const int64_t *, size_t, size_t, uint64_t *, uint64_t *, uint8_t *);

} // namespace flat_tokens
