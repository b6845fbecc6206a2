// Matrix products and factors, borrowed from SciPy at run time (bind/module.cpp takes the pointers from its
// capsules): nothing to link, nothing to install. The Fortran interface with 32-bit integers.
#pragma once

#include <cstdint>

namespace margrove {

template <class T>
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const T*, const T*, const int*,
                      const T*, const int*, const T*, T*, const int*);

// The same as `Blas::products` without a BLAS: programs that only predict have no SciPy (margrove.load_predictor).
void own_products(const float* a, const float* b, int m, int n, int d, float* out, int stride);
void own_products(const double* a, const double* b, int m, int n, int d, double* out, int stride);

template <class T>
struct Blas {
  Gemm<T> gemm = nullptr;

  // out (m, n) = a (m, d) b (n, d)^T, rows contiguous, those of out `stride` apart. m, n, d < 2^31: callers work in
  // blocks. Fortran sees each matrix transposed: out^T (n, m) = b a^T.
  void products(const T* a, const T* b, int m, int n, int d, T* out, int stride) const {
    if (gemm == nullptr) return own_products(a, b, m, n, d, out, stride);
    const T one = 1, zero = 0;
    const int leading = d > 0 ? d : 1;
    gemm("T", "N", &n, &m, &d, &one, b, &leading, a, &leading, &zero, out, &stride);
  }
};

// What Newton's method needs, in double: a symmetric matrix of size d, of which only the triangle is kept that Fortran
// calls the upper one: element (i, j), i <= j, lies at i + j d.
struct SymmetricBlas {
  Gemm<double> gemm = nullptr;
  void (*syrk)(const char*, const char*, const int*, const int*, const double*, const double*, const int*,
               const double*, double*, const int*) = nullptr;
  void (*potrf)(const char*, const int*, double*, const int*, int*) = nullptr;
  void (*potrs)(const char*, const int*, const int*, const double*, const int*, double*, const int*, int*) = nullptr;

  // matrix <- matrix + scale * (sum of the outer products of `count` vectors, contiguous)
  void add_outer_products(double* matrix, const double* vectors, int d, int count, double scale) const {
    const double one = 1;
    syrk("U", "N", &d, &count, &scale, vectors, &d, &one, matrix, &d);
  }
  // out (m, n) <- out + a (m, d) b (n, d)^T, rows contiguous.
  void add_products(const double* a, const double* b, int m, int n, int d, double* out) const {
    const double one = 1;
    gemm("T", "N", &n, &m, &d, &one, b, &d, a, &d, &one, out, &n);
  }
  // matrix <- its Cholesky factor; false where it has none.
  bool factor(double* matrix, int d) const {
    int info = 0;
    potrf("U", &d, matrix, &d, &info);
    return info == 0;
  }
  // x <- matrix^-1 x, by the factor.
  void solve(const double* factor, int d, double* x) const {
    const int one = 1;
    int info = 0;
    potrs("U", &d, &one, factor, &d, x, &d, &info);
  }
};

}  // namespace margrove
