// Compile a function for AVX2, too; the loader chooses. Functions that it calls must be inlined into it.
#pragma once

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define FLAT_TOKENS_CLONES __attribute__((target_clones("arch=haswell", "default")))
#else
#define FLAT_TOKENS_CLONES
#endif
