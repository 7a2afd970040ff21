// Prefetch a cache line.
//
// GCC treats a function that only calls __builtin_prefetch as free of side effects and drops calls that are
// not inlined by then, as happened to the tables of the counter. The empty asm statement keeps the calls.
#pragma once

namespace bpe {

[[gnu::always_inline]] inline void prefetch_to_read(const void *place) {
  __builtin_prefetch(place);
  asm volatile("" : :);
}

[[gnu::always_inline]] inline void prefetch_to_write(const void *place) {
  __builtin_prefetch(place, 1);
  asm volatile("" : :);
}

} // namespace bpe
