// Asks for the cache line of a place; a hint that costs nothing where it means nothing.
#pragma once

namespace bpe {
namespace { // SIMD variants share no symbols

inline void prefetch(const void *place) {
#if defined(__GNUC__)
  __builtin_prefetch(place);
#else
  (void)place;
#endif
}

} // namespace
} // namespace bpe
