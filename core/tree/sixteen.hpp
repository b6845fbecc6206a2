// What functions written for AVX-512 need: its instructions by name, and the mark that has them compiled for it. They
// are called where `has_sixteen` (wide.hpp) says so.
#pragma once

#include "tree/wide.hpp"

#ifdef MARGROVE_HAS_SIXTEEN
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // GCC's own header: undefined lanes are meant to be (bug 105593)
#include <immintrin.h>
#define MARGROVE_SIXTEEN __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512cd,popcnt,bmi2")))
#endif
