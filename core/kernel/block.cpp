#include "kernel/block.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/distance.hpp"

namespace margrove {
namespace {

// ---- dense pairs

template <class T, class Pair>
MARGROVE_INLINE void pair_sums(const T* x, const DenseRows<T>& others, double* out, Pair pair) {
  for (std::int64_t j = 0; j < others.n; ++j) {
    const T* z = others.row(j);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t k = 0; k < others.d; ++k) sum += pair(static_cast<double>(x[k]), static_cast<double>(z[k]));
    out[j] = sum;
  }
}

template <class T>
MARGROVE_INLINE void dense_pairs_body(const T* x, const DenseRows<T>& others, KernelKind kind, double* out) {
  switch (kind) {
    case KernelKind::rbf:
      return pair_sums(x, others, out, [](double a, double b) { return (a - b) * (a - b); });
    case KernelKind::laplacian:
      return pair_sums(x, others, out, [](double a, double b) { return std::fabs(a - b); });
    case KernelKind::chi2:
      return pair_sums(x, others, out,
                       [](double a, double b) { return a + b > 0 ? (a - b) * (a - b) / (a + b) : 0.0; });
    case KernelKind::intersection:
      return pair_sums(x, others, out, [](double a, double b) { return a < b ? a : b; });
    default:
      return pair_sums(x, others, out, [](double a, double b) { return a * b; });
  }
}

MARGROVE_CLONES void dense_pairs(const float* x, const DenseRows<float>& others, KernelKind kind, double* out) {
  dense_pairs_body(x, others, kind, out);
}
MARGROVE_CLONES void dense_pairs(const double* x, const DenseRows<double>& others, KernelKind kind, double* out) {
  dense_pairs_body(x, others, kind, out);
}

// ---- sparse pairs

double alone(KernelKind kind, double x) {
  switch (kind) {
    case KernelKind::rbf:
      return x * x;
    case KernelKind::laplacian:
      return std::fabs(x);
    case KernelKind::chi2:
      return x;
    default:
      return 0;
  }
}

// pair(x, z) - alone(x) - alone(z), for x, z both non-zero.
MARGROVE_INLINE double together(KernelKind kind, double x, double z) {
  switch (kind) {
    case KernelKind::rbf:
      return -2 * x * z;
    case KernelKind::laplacian:
      return std::fabs(x - z) - std::fabs(x) - std::fabs(z);
    case KernelKind::chi2:
      return -4 * x * z / (x + z);
    case KernelKind::intersection:
      return x < z ? x : z;
    default:
      return x * z;
  }
}

// ---- finish

template <class T>
void finish(const double* sums, std::int64_t n, const KernelSpec& spec, T* out) {
  switch (spec.kind) {
    case KernelKind::linear:
    case KernelKind::intersection:
      for (std::int64_t j = 0; j < n; ++j) out[j] = static_cast<T>(sums[j]);
      return;
    case KernelKind::poly:
      for (std::int64_t j = 0; j < n; ++j)
        out[j] = static_cast<T>(std::pow(spec.gamma * sums[j] + spec.coef0, spec.degree));
      return;
    case KernelKind::sigmoid:
      for (std::int64_t j = 0; j < n; ++j) out[j] = static_cast<T>(std::tanh(spec.gamma * sums[j] + spec.coef0));
      return;
    default:  // a squared, absolute or chi-square distance, which rounding may have left just below zero
      for (std::int64_t j = 0; j < n; ++j) out[j] = static_cast<T>(std::exp(-spec.gamma * std::max(sums[j], 0.0)));
  }
}

}  // namespace

template <class T>
std::vector<double> alone_sums(const CsrRows<T>& rows, KernelKind kind) {
  std::vector<double> sums(rows.n);
  for (std::int64_t i = 0; i < rows.n; ++i)
    for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) sums[i] += alone(kind, rows.data[k]);
  return sums;
}

template <class T>
double pair_sum(const CsrRows<T>& points, std::int64_t i, const CsrRows<T>& others, std::int64_t j, KernelKind kind) {
  const auto pair = [&](double x, double z) {
    switch (kind) {
      case KernelKind::rbf:
        return (x - z) * (x - z);
      case KernelKind::laplacian:
        return std::fabs(x - z);
      case KernelKind::chi2:
        return x + z > 0 ? (x - z) * (x - z) / (x + z) : 0.0;
      case KernelKind::intersection:
        return x < z ? x : z;
      default:
        return x * z;
    }
  };
  double sum = 0;
  std::int64_t k = points.start[i], l = others.start[j];
  const std::int64_t k_end = points.start[i + 1], l_end = others.start[j + 1];
  while (k < k_end || l < l_end) {
    const bool has_x = k < k_end && (l == l_end || points.column[k] <= others.column[l]);
    const bool has_z = l < l_end && (k == k_end || others.column[l] <= points.column[k]);
    const double x = has_x ? static_cast<double>(points.data[k]) : 0,
                 z = has_z ? static_cast<double>(others.data[l]) : 0;
    sum += pair(x, z);
    k += has_x;
    l += has_z;
  }
  return sum;
}

template <class T, class V>
void kernel_row(const DenseRows<T>& points, std::int64_t i, const DenseRows<T>& others, const KernelSpec& spec,
                V* out) {
  constexpr std::int64_t kTile = 512;  // pair sums kept on the stack: 4 KiB
  double sums[kTile];
  for (std::int64_t from = 0; from < others.n; from += kTile) {
    const std::int64_t count = std::min(kTile, others.n - from);
    dense_pairs(points.row(i), DenseRows<T>{others.row(from), count, others.d}, spec.kind, sums);
    finish(sums, count, spec, out + from);
  }
}

template <class T, class V>
void kernel_row(const CsrRows<T>& points, std::int64_t i, double alone_i, const CsrRows<T>& others,
                const std::vector<double>& alone_others, const KernelSpec& spec, std::vector<double>& buffer, V* out) {
  for (std::int64_t k = points.start[i]; k < points.start[i + 1]; ++k) buffer[points.column[k]] = points.data[k];
  const bool is_distance =
      spec.kind == KernelKind::rbf || spec.kind == KernelKind::laplacian || spec.kind == KernelKind::chi2;
  for (std::int64_t j = 0; j < others.n; ++j) {
    double sum = alone_i + alone_others[j];
    for (std::int64_t k = others.start[j]; k < others.start[j + 1]; ++k) {
      const double x = buffer[others.column[k]];
      const double z = others.data[k];
      if (x != 0 && z != 0) sum += together(spec.kind, x, z);
    }
    const double sizes = alone_i + alone_others[j];
    if (is_distance && sum < kClose * sizes) sum = pair_sum(points, i, others, j, spec.kind);
    finish(&sum, 1, spec, out + j);
  }
  for (std::int64_t k = points.start[i]; k < points.start[i + 1]; ++k) buffer[points.column[k]] = 0;
}

template std::vector<double> alone_sums(const CsrRows<float>&, KernelKind);
template std::vector<double> alone_sums(const CsrRows<double>&, KernelKind);
template double pair_sum(const CsrRows<float>&, std::int64_t, const CsrRows<float>&, std::int64_t, KernelKind);
template double pair_sum(const CsrRows<double>&, std::int64_t, const CsrRows<double>&, std::int64_t, KernelKind);

#define MARGROVE_KERNEL_ROW(T, V)                                                                                  \
  template void kernel_row(const DenseRows<T>&, std::int64_t, const DenseRows<T>&, const KernelSpec&, V*);         \
  template void kernel_row(const CsrRows<T>&, std::int64_t, double, const CsrRows<T>&, const std::vector<double>&, \
                           const KernelSpec&, std::vector<double>&, V*);
MARGROVE_KERNEL_ROW(float, float)
MARGROVE_KERNEL_ROW(float, double)
MARGROVE_KERNEL_ROW(double, float)
MARGROVE_KERNEL_ROW(double, double)
#undef MARGROVE_KERNEL_ROW

}  // namespace margrove
