#include "text/find_bytes.hpp"

#include "common/prefetch.hpp"

#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bpe {

size_t find_bytes(const uint8_t *text, size_t size, size_t start, std::string_view needle) {
  const size_t length = needle.size();
  if (size < length || start > size - length)
    return size;
  const size_t stop = size - length + 1; // of the places where it can start
  const uint8_t first = static_cast<uint8_t>(needle.front()), last = static_cast<uint8_t>(needle.back());
  const auto matches = [&](size_t place) { return std::memcmp(text + place, needle.data(), length) == 0; };
  size_t place = start;
#if defined(__SSE2__)
  // The search is what touches the text first, and processors fetch ahead of their own within a page only.
  constexpr size_t bytes_ahead = 2048;
  const __m128i firsts = _mm_set1_epi8(static_cast<char>(first)),
                lasts = _mm_set1_epi8(static_cast<char>(last));
  const auto candidates = [&](const uint8_t *p) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p + length - 1));
    return _mm_and_si128(_mm_cmpeq_epi8(a, firsts), _mm_cmpeq_epi8(b, lasts));
  };
  while (place + 64 <= stop) {
    const uint8_t *const p = text + place;
    prefetch_to_read(p + bytes_ahead);
    const __m128i a = candidates(p), b = candidates(p + 16), c = candidates(p + 32), d = candidates(p + 48);
    if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d)))) {
      uint64_t mask = static_cast<uint64_t>(_mm_movemask_epi8(a)) |
                      static_cast<uint64_t>(_mm_movemask_epi8(b)) << 16 |
                      static_cast<uint64_t>(_mm_movemask_epi8(c)) << 32 |
                      static_cast<uint64_t>(_mm_movemask_epi8(d)) << 48;
      for (; mask; mask &= mask - 1)
        if (matches(place + static_cast<size_t>(std::countr_zero(mask))))
          return place + static_cast<size_t>(std::countr_zero(mask));
    }
    place += 64;
  }
#endif
  while (place < stop) {
    const void *const found = std::memchr(text + place, first, stop - place);
    if (!found)
      return size;
    place = static_cast<size_t>(static_cast<const uint8_t *>(found) - text);
    if (text[place + length - 1] == last && matches(place))
      return place;
    ++place;
  }
  return size;
}

} // namespace bpe
