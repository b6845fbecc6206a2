// Views of the points x_i: n rows of d numbers, dense or sparse, float or double. Nothing here owns memory.
#pragma once

#include <cstdint>
#include <variant>

#include "dispatch.hpp"

namespace margrove {

template <class T>
struct DenseRows {
  using value_type = T;
  const T* data;  // (n, d), rows contiguous
  std::int64_t n, d;
  const T* row(std::int64_t i) const { return data + i * d; }
};

template <class T>
struct CsrRows {
  using value_type = T;
  const T* data;               // (nnz)
  const std::int32_t* column;  // (nnz), each < d
  const std::int64_t* start;   // (n + 1)
  std::int64_t n, d;
};

using AnyRows = std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float>, CsrRows<double>>;

// Sum of a_k * b_k, in double whatever the storage.
template <class T, class U>
MARGROVE_INLINE double dot(const T* a, const U* b, std::int64_t d) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t k = 0; k < d; ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

// w <- w + step * x
template <class T>
MARGROVE_INLINE void add_scaled(double* w, double step, const T* x, std::int64_t d) {
#pragma omp simd
  for (std::int64_t k = 0; k < d; ++k) w[k] += step * static_cast<double>(x[k]);
}

template <class T>
MARGROVE_INLINE double dot_row(const DenseRows<T>& rows, std::int64_t i, const double* w) {
  return dot(rows.row(i), w, rows.d);
}

template <class T>
MARGROVE_INLINE double dot_row(const CsrRows<T>& rows, std::int64_t i, const double* w) {
  double sum = 0;
  for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k)
    sum += static_cast<double>(rows.data[k]) * w[rows.column[k]];
  return sum;
}

template <class T>
MARGROVE_INLINE void add_row(const DenseRows<T>& rows, std::int64_t i, double step, double* w) {
  add_scaled(w, step, rows.row(i), rows.d);
}

template <class T>
MARGROVE_INLINE void add_row(const CsrRows<T>& rows, std::int64_t i, double step, double* w) {
  for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k)
    w[rows.column[k]] += step * static_cast<double>(rows.data[k]);
}

}  // namespace margrove
