#include "text/find_bytes.hpp"

#include "common/byte_vector.hpp"
#include "common/prefetch.hpp"

#include <bit>
#include <cstring>

namespace bpe {

size_t find_bytes(const uint8_t *text, size_t size, size_t start, std::string_view needle) {
  const size_t length = needle.size();
  if (size < length || start > size - length)
    return size;
  const size_t stop = size - length + 1; // end of the possible start offsets
  const uint8_t first = static_cast<uint8_t>(needle.front()), last = static_cast<uint8_t>(needle.back());
  const auto matches = [&](size_t place) { return std::memcmp(text + place, needle.data(), length) == 0; };
  size_t place = start;
  // The search is usually the first to touch the text, and hardware prefetching stops at page boundaries.
  constexpr size_t bytes_ahead = 2048;
  for (; place + 64 <= stop; place += 64) {
    const uint8_t *const p = text + place;
    prefetch_to_read(p + bytes_ahead);
    ByteVector found[4];
    for (int i = 0; i < 4; ++i)
      found[i] = ByteVector(load_bytes(p + 16 * i) == first) &
                 ByteVector(load_bytes(p + 16 * i + length - 1) == last);
    if (is_any(found[0] | found[1] | found[2] | found[3]))
      for (uint64_t mask = mask_of(found); mask != 0; mask &= mask - 1)
        if (const size_t at = place + static_cast<size_t>(std::countr_zero(mask)); matches(at))
          return at;
  }
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
