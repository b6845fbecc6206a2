// Views of the points x_i: n rows of d numbers, dense or sparse, float or double. Nothing here owns memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "simd.hpp"

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

// How many numbers the rows hold.
template <class T>
std::int64_t stored(const DenseRows<T>& rows) {
  return rows.n * rows.d;
}
template <class T>
std::int64_t stored(const CsrRows<T>& rows) {
  return rows.start[rows.n];
}

using AnyRows = std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float>, CsrRows<double>>;

constexpr std::int64_t kLanes = 4;  // doubles of a vector of AVX2
using Wide = Simd<double, kLanes>;

// kLanes numbers of any type, as doubles.
template <class T>
MARGROVE_INLINE Wide load_wide(const T* from) {
  return converted<Wide>(load<Simd<T, kLanes>>(from));
}

MARGROVE_INLINE double sum_lanes(const Wide& s) { return (s[0] + s[2]) + (s[1] + s[3]); }

// Sum of a_k * b_k, in double whatever the storage. Four independent sums of eight lanes: with one sum the
// latency of the addition, not its throughput, sets the pace (measured on 50 columns: 1.5 times slower).
template <class T, class U>
MARGROVE_INLINE double dot(const T* a, const U* b, std::int64_t d) {
  const auto add = [&](Wide& sum, std::int64_t k)
                       MARGROVE_INLINE_LAMBDA { sum += load_wide(a + k) * load_wide(b + k); };
  Wide s0 = {}, s1 = {}, s2 = {}, s3 = {};
  std::int64_t k = 0;
  for (; k + 4 * kLanes <= d; k += 4 * kLanes) {
    add(s0, k);
    add(s1, k + kLanes);
    add(s2, k + 2 * kLanes);
    add(s3, k + 3 * kLanes);
  }
  for (; k + kLanes <= d; k += kLanes) add(s0, k);
  double tail = 0;
  for (; k < d; ++k) tail += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum_lanes((s0 + s1) + (s2 + s3)) + tail;
}

// w <- w + step * x, in the same lanes as `dot`: a wide load behind narrower stores to the same place waits
// for them all.
template <class T>
MARGROVE_INLINE void add_scaled(double* w, double step, const T* x, std::int64_t d) {
  std::int64_t k = 0;
  for (; k + kLanes <= d; k += kLanes) store(w + k, load_wide(w + k) + step * load_wide(x + k));
  for (; k < d; ++k) w[k] += step * x[k];
}

template <class T>
MARGROVE_INLINE double dot_row(const DenseRows<T>& rows, std::int64_t i, const double* w) {
  return dot(rows.row(i), w, rows.d);
}

// Four sums, for the same reason as in `dot`.
template <class T>
MARGROVE_INLINE double dot_row(const CsrRows<T>& rows, std::int64_t i, const double* w) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::int64_t k = rows.start[i];
  const std::int64_t end = rows.start[i + 1];
  for (; k + 4 <= end; k += 4) {
    s0 += rows.data[k] * w[rows.column[k]];
    s1 += rows.data[k + 1] * w[rows.column[k + 1]];
    s2 += rows.data[k + 2] * w[rows.column[k + 2]];
    s3 += rows.data[k + 3] * w[rows.column[k + 3]];
  }
  for (; k < end; ++k) s0 += rows.data[k] * w[rows.column[k]];
  return (s0 + s2) + (s1 + s3);
}

template <class T>
MARGROVE_INLINE void add_row(const DenseRows<T>& rows, std::int64_t i, double step, double* w) {
  add_scaled(w, step, rows.row(i), rows.d);
}

template <class T>
MARGROVE_INLINE void add_row(const CsrRows<T>& rows, std::int64_t i, double step, double* w) {
  for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) w[rows.column[k]] += step * rows.data[k];
}

// Asks for the head of row i ahead of its use: in a random order the hardware sees no stream. The rest then is one.
template <class T>
MARGROVE_INLINE void fetch(const DenseRows<T>& rows, std::int64_t i) {
  constexpr std::int64_t kMostLines = 8;  // 512 bytes. Chosen, not measured: by then the hardware has seen the stream
  const char* row = reinterpret_cast<const char*>(rows.row(i));
  const std::int64_t bytes = std::min<std::int64_t>(rows.d * sizeof(T), kMostLines * kCacheLine);
  for (std::int64_t offset = 0; offset < bytes; offset += kCacheLine) prefetch(row + offset);
}
// The head of a sparse row: as many columns as there are doubles in four lines.
template <class T>
MARGROVE_INLINE void fetch(const CsrRows<T>& rows, std::int64_t i) {
  constexpr std::int64_t kNumbers = kCacheLine / sizeof(T), kColumns = kCacheLine / sizeof(std::int32_t);
  const std::int64_t at = rows.start[i];
  for (std::int64_t k = 0; k < 4; ++k) prefetch(rows.data + at + kNumbers * k);
  for (std::int64_t k = 0; k < 2; ++k) prefetch(rows.column + at + kColumns * k);
}

template <class T>
double squared_norm(const DenseRows<T>& rows, std::int64_t i) {
  return dot(rows.row(i), rows.row(i), rows.d);
}
template <class T>
double squared_norm(const CsrRows<T>& rows, std::int64_t i) {
  double sum = 0;
  for (std::int64_t at = rows.start[i]; at < rows.start[i + 1]; ++at)
    sum += static_cast<double>(rows.data[at]) * static_cast<double>(rows.data[at]);
  return sum;
}

}  // namespace margrove
