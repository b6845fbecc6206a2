// Vectors of a fixed number of lanes, and the other things that C++20 has no words for. Everything that only some
// compilers know stands here and in dispatch.hpp (and in tree/wide.cpp, which is left out where there is no AVX-512).
//
// Supported are GCC and Clang, on any processor: both have vector types with arithmetic and comparison by lanes. MSVC
// has not, so there is no wheel for Windows that it has built.
#pragma once

#include <cstdint>
#include <cstring>

#include "dispatch.hpp"

#if !defined(__GNUC__) && !defined(__clang__)  // clang-cl defines only the second
#error "The core needs GCC or Clang: it is written with their vector types."
#endif

// Vectors pass between functions that are always inlined: no calling convention is at stake.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace margrove {

template <class T, std::int64_t lanes>
struct SimdOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};
// Arithmetic goes lane by lane, with numbers too; a comparison gives a vector of integers, each 0 or -1, for `?:`.
template <class T, std::int64_t lanes>
using Simd = typename SimdOf<T, lanes>::type;

template <class V>
constexpr std::int64_t kLanesOf = sizeof(V) / sizeof(V{}[0]);  // numbers in a vector

// From and to anywhere, aligned or not.
template <class V, class T>
MARGROVE_INLINE V load(const T* from) {
  V values;
  std::memcpy(&values, from, sizeof values);
  return values;
}
template <class V, class T>
MARGROVE_INLINE void store(T* to, const V& values) {
  std::memcpy(to, &values, sizeof values);
}

// Lane by lane another type of number.
template <class V, class W>
MARGROVE_INLINE V converted(const W& values) {
  return __builtin_convertvector(values, V);
}

template <class V>
MARGROVE_INLINE V larger(const V& a, const V& b) {
  return a > b ? a : b;
}
template <class V>
MARGROVE_INLINE V smaller(const V& a, const V& b) {
  return a < b ? a : b;
}

// Lane k gets what lane k ^ apart has.
template <int apart, class V>
MARGROVE_INLINE V turned(const V& values) {
  static_assert(kLanesOf<V> == 8 || kLanesOf<V> == 16);
  if constexpr (kLanesOf<V> == 8)
    return __builtin_shufflevector(values, values, 0 ^ apart, 1 ^ apart, 2 ^ apart, 3 ^ apart, 4 ^ apart, 5 ^ apart,
                                   6 ^ apart, 7 ^ apart);
  else
    return __builtin_shufflevector(values, values, 0 ^ apart, 1 ^ apart, 2 ^ apart, 3 ^ apart, 4 ^ apart, 5 ^ apart,
                                   6 ^ apart, 7 ^ apart, 8 ^ apart, 9 ^ apart, 10 ^ apart, 11 ^ apart, 12 ^ apart,
                                   13 ^ apart, 14 ^ apart, 15 ^ apart);
}

constexpr std::int64_t kCacheLine = 64;  // bytes, of x86-64 and most ARM processors

// Asks for the cache line that `address` lies in, ahead of its use.
MARGROVE_INLINE void prefetch(const void* address) { __builtin_prefetch(address); }

}  // namespace margrove

// Behind the parameters of a lambda: as MARGROVE_INLINE.
#define MARGROVE_INLINE_LAMBDA __attribute__((always_inline))

// Of a pointer: nothing else leads to what it points to.
#define MARGROVE_RESTRICT __restrict
