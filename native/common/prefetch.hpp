// Asking for a cache line before it is needed.
//
// GCC takes a function that does nothing but __builtin_prefetch for one without effects, and drops the calls
// that it has not inlined by then: the tables of the counter lost theirs that way. The empty statement keeps
// them.
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
