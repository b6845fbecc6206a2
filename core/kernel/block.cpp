#include "kernel/block.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "parallel.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kBlock = 64;  // rows of a GEMM block: its kernel values stay in L2 up to some thousand columns

bool goes_through_products(KernelKind kind) {
  return kind != KernelKind::laplacian && kind != KernelKind::chi2 && kind != KernelKind::intersection;
}

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

// ---- decisions

template <class T>
MARGROVE_INLINE void vote_body(const T* kernel, const double* dual, std::int64_t n, std::int64_t machines,
                               double* out) {
  for (std::int64_t m = 0; m < machines; ++m) out[m] = dot(kernel, dual + m * n, n);
}
MARGROVE_CLONES void vote(const float* kernel, const double* dual, std::int64_t n, std::int64_t machines, double* out) {
  vote_body(kernel, dual, n, machines, out);
}
MARGROVE_CLONES void vote(const double* kernel, const double* dual, std::int64_t n, std::int64_t machines,
                          double* out) {
  vote_body(kernel, dual, n, machines, out);
}

// |x-z|^2 = |x|^2 + |z|^2 - 2 x·z loses all digits when the points lie far from the origin and close
// together; moved by the mean of the support vectors they do not.
template <class T>
std::vector<double> mean_row(const DenseRows<T>& rows) {
  std::vector<double> mean(static_cast<std::size_t>(rows.d));
  for (std::int64_t i = 0; i < rows.n; ++i) add_row(rows, i, 1.0 / static_cast<double>(rows.n), mean.data());
  return mean;
}

template <class T>
void move_rows(const DenseRows<T>& rows, std::int64_t from, std::int64_t to, const std::vector<double>& centre, T* out,
               double* squared_norm) {
  for (std::int64_t i = from; i < to; ++i) {
    const T* row = rows.row(i);
    double sum = 0;
    for (std::int64_t k = 0; k < rows.d; ++k) {
      const T moved = static_cast<T>(static_cast<double>(row[k]) - centre[static_cast<std::size_t>(k)]);
      *out++ = moved;
      sum += static_cast<double>(moved) * static_cast<double>(moved);
    }
    *squared_norm++ = sum;
  }
}

template <class T>
void decide_by_products(const DenseRows<T>& points, const DenseRows<T>& support, std::span<const double> dual,
                        std::int64_t machines, const KernelSpec& spec, const Blas<T>& blas, int threads, double* out) {
  const bool is_rbf = spec.kind == KernelKind::rbf;
  const auto cells = [](std::int64_t n, std::int64_t d) { return static_cast<std::size_t>(n * d); };
  std::vector<double> centre, support_norm;
  std::vector<T> moved_support;
  const T* support_data = support.data;
  if (is_rbf) {
    centre = mean_row(support);
    moved_support.resize(cells(support.n, support.d));
    support_norm.resize(static_cast<std::size_t>(support.n));
    move_rows(support, 0, support.n, centre, moved_support.data(), support_norm.data());
    support_data = moved_support.data();
  }
  const std::int64_t blocks = (points.n + kBlock - 1) / kBlock;
  parallel_for(blocks, threads, [&](std::int64_t block) {
    const std::int64_t from = block * kBlock, to = std::min(points.n, from + kBlock);
    std::vector<T> kernel(cells(to - from, support.n)), moved;
    std::vector<double> sums(static_cast<std::size_t>(support.n)), norm(static_cast<std::size_t>(to - from));
    const T* block_data = points.row(from);
    if (is_rbf) {
      moved.resize(cells(to - from, points.d));
      move_rows(points, from, to, centre, moved.data(), norm.data());
      block_data = moved.data();
    }
    blas.products(block_data, support_data, static_cast<int>(to - from), static_cast<int>(support.n),
                  static_cast<int>(points.d), kernel.data(), static_cast<int>(support.n));
    for (std::int64_t i = from; i < to; ++i) {
      T* row = kernel.data() + (i - from) * support.n;
      for (std::int64_t j = 0; j < support.n; ++j) {
        const auto at = static_cast<std::size_t>(j);
        sums[at] = is_rbf ? norm[static_cast<std::size_t>(i - from)] + support_norm[at] - 2.0 * row[j] : row[j];
      }
      finish(sums.data(), support.n, spec, row);
      vote(row, dual.data(), support.n, machines, out + i * machines);
    }
  });
}

template <class T>
void decide(const DenseRows<T>& points, const DenseRows<T>& support, std::span<const double> dual,
            std::int64_t machines, const KernelSpec& spec, const Blas<T>& blas, int threads, double* out) {
  if (goes_through_products(spec.kind))
    return decide_by_products(points, support, dual, machines, spec, blas, threads, out);
  const std::int64_t blocks = (points.n + kBlock - 1) / kBlock;
  parallel_for(blocks, threads, [&](std::int64_t block) {
    std::vector<T> row(static_cast<std::size_t>(support.n));
    for (std::int64_t i = block * kBlock; i < std::min(points.n, (block + 1) * kBlock); ++i) {
      kernel_row(points, i, support, spec, row.data());
      vote(row.data(), dual.data(), support.n, machines, out + i * machines);
    }
  });
}

template <class T>
void decide(const CsrRows<T>& points, const CsrRows<T>& support, std::span<const double> dual, std::int64_t machines,
            const KernelSpec& spec, int threads, double* out) {
  const std::vector<double> alone_points = alone_sums(points, spec.kind);
  const std::vector<double> alone_support = alone_sums(support, spec.kind);
  const std::int64_t blocks = (points.n + kBlock - 1) / kBlock;
  parallel_for(blocks, threads, [&](std::int64_t block) {
    std::vector<T> row(static_cast<std::size_t>(support.n));
    std::vector<double> buffer(static_cast<std::size_t>(points.d));
    for (std::int64_t i = block * kBlock; i < std::min(points.n, (block + 1) * kBlock); ++i) {
      kernel_row(points, i, alone_points[static_cast<std::size_t>(i)], support, alone_support, spec, buffer,
                 row.data());
      vote(row.data(), dual.data(), support.n, machines, out + i * machines);
    }
  });
}

}  // namespace

template <class T>
std::vector<double> alone_sums(const CsrRows<T>& rows, KernelKind kind) {
  std::vector<double> sums(static_cast<std::size_t>(rows.n));
  for (std::int64_t i = 0; i < rows.n; ++i)
    for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k)
      sums[static_cast<std::size_t>(i)] += alone(kind, static_cast<double>(rows.data[k]));
  return sums;
}

template <class T>
void kernel_row(const DenseRows<T>& points, std::int64_t i, const DenseRows<T>& others, const KernelSpec& spec,
                T* out) {
  constexpr std::int64_t kTile = 512;  // pair sums kept on the stack
  double sums[kTile];
  for (std::int64_t from = 0; from < others.n; from += kTile) {
    const std::int64_t count = std::min(kTile, others.n - from);
    dense_pairs(points.row(i), DenseRows<T>{others.row(from), count, others.d}, spec.kind, sums);
    finish(sums, count, spec, out + from);
  }
}

template <class T>
void kernel_row(const CsrRows<T>& points, std::int64_t i, double alone_i, const CsrRows<T>& others,
                const std::vector<double>& alone_others, const KernelSpec& spec, std::vector<double>& buffer, T* out) {
  for (std::int64_t k = points.start[i]; k < points.start[i + 1]; ++k)
    buffer[static_cast<std::size_t>(points.column[k])] = static_cast<double>(points.data[k]);
  for (std::int64_t j = 0; j < others.n; ++j) {
    double sum = alone_i + alone_others[static_cast<std::size_t>(j)];
    for (std::int64_t k = others.start[j]; k < others.start[j + 1]; ++k) {
      const double x = buffer[static_cast<std::size_t>(others.column[k])];
      const auto z = static_cast<double>(others.data[k]);
      if (x != 0 && z != 0) sum += together(spec.kind, x, z);
    }
    finish(&sum, 1, spec, out + j);
  }
  for (std::int64_t k = points.start[i]; k < points.start[i + 1]; ++k)
    buffer[static_cast<std::size_t>(points.column[k])] = 0;
}

void kernel_decision(const AnyRows& points, const AnyRows& support, std::span<const double> dual, std::int64_t machines,
                     const KernelSpec& spec, const Blas<float>& sblas, const Blas<double>& dblas, int threads,
                     double* out) {
  std::visit(
      [&](const auto& p) {
        using Rows = std::decay_t<decltype(p)>;
        const Rows& s = std::get<Rows>(support);  // the binding has made both alike
        if constexpr (std::is_same_v<Rows, DenseRows<float>>)
          decide(p, s, dual, machines, spec, sblas, threads, out);
        else if constexpr (std::is_same_v<Rows, DenseRows<double>>)
          decide(p, s, dual, machines, spec, dblas, threads, out);
        else
          decide(p, s, dual, machines, spec, threads, out);
      },
      points);
}

template std::vector<double> alone_sums(const CsrRows<float>&, KernelKind);
template std::vector<double> alone_sums(const CsrRows<double>&, KernelKind);
template void kernel_row(const DenseRows<float>&, std::int64_t, const DenseRows<float>&, const KernelSpec&, float*);
template void kernel_row(const DenseRows<double>&, std::int64_t, const DenseRows<double>&, const KernelSpec&, double*);
template void kernel_row(const CsrRows<float>&, std::int64_t, double, const CsrRows<float>&, const std::vector<double>&,
                         const KernelSpec&, std::vector<double>&, float*);
template void kernel_row(const CsrRows<double>&, std::int64_t, double, const CsrRows<double>&,
                         const std::vector<double>&, const KernelSpec&, std::vector<double>&, double*);

}  // namespace margrove
