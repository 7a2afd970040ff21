// Vector instruction sets beyond the baseline, and whether this processor has them.
//
// A function marked FLAT_TOKENS_AVX2 or FLAT_TOKENS_AVX512 is compiled for that instruction set, with the
// functions inlined into it. Call it only if has_avx2() or has_avx512() returns true. Only GCC on x86-64
// builds these variants, because clang accepts no vector width per function.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FLAT_TOKENS_HAS_AVX 1
#define FLAT_TOKENS_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define FLAT_TOKENS_AVX512                                                                                   \
  __attribute__((target("avx2,bmi,bmi2,avx512f,avx512bw,avx512vl,prefer-vector-width=512")))

namespace flat_tokens {

inline bool has_avx2() {
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  return has;
}

inline bool has_avx512() {
  static const bool has = has_avx2() && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return has;
}

} // namespace flat_tokens
#endif
