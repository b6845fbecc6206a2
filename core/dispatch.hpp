// Run-time choice of instruction set. A function marked MARGROVE_CLONES is compiled for plain x86-64, for
// AVX2 + FMA and for AVX-512; the loader picks one. Elsewhere (other CPUs, other compilers, sanitizers, whose
// start-up runs after the loader's choice) there is the plain path alone.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define MARGROVE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MARGROVE_CLONES
#endif

// The shared body of a cloned function: it must be inlined to be compiled for the clone's instruction set.
#define MARGROVE_INLINE [[gnu::always_inline]] inline

// Before a loop: these sums may be taken in any order, so that the loop can go in lanes.
#define MARGROVE_PRAGMA(text) _Pragma(#text)
#define MARGROVE_SUMS(...) MARGROVE_PRAGMA(omp simd reduction(+ : __VA_ARGS__))
