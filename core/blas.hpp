// General matrix products, borrowed from SciPy at run time (bind/module.cpp takes the pointers from its
// capsules): nothing to link, nothing to install. The Fortran interface with 32-bit integers.
#pragma once

#include <cstdint>

namespace margrove {

template <class T>
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const T*, const T*, const int*,
                      const T*, const int*, const T*, T*, const int*);

template <class T>
struct Blas {
  Gemm<T> gemm = nullptr;

  // out (m, n) = a (m, d) b (n, d)^T, rows contiguous, those of out `stride` apart. m, n, d < 2^31: callers work in
  // blocks. Fortran sees each matrix transposed: out^T (n, m) = b a^T.
  void products(const T* a, const T* b, int m, int n, int d, T* out, int stride) const {
    const T one = 1, zero = 0;
    const int leading = d > 0 ? d : 1;
    gemm("T", "N", &n, &m, &d, &one, b, &leading, a, &leading, &zero, out, &stride);
  }
};

}  // namespace margrove
