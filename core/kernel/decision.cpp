#include "kernel/decision.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "index.hpp"
#include "kernel/distance.hpp"
#include "kernel/finish.hpp"
#include "kernel/sparse_tile.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kPointTile = 128;    // points of a tile of kernel values: 256 KiB, in L2
constexpr std::int64_t kSupportTile = 256;  // support vectors of such a tile
// Support vectors packed at once. Chosen, not measured: 1.6 MiB with 100 columns.
constexpr std::int64_t kSupportChunk = 2048;

MARGROVE_CLONES void finish_gaussian(const double* products, const double* b_half, double a_half, std::int64_t width,
                                     double* out) {
  finish_gaussian_body(products, b_half, a_half, width, out);
}

template <class T, class U>
MARGROVE_INLINE void sparse_products_body(const U* data, const std::int32_t* column, std::int64_t count,
                                          const std::int32_t* place, const T* cells, T* out) {
  T sums[kSparseWidth] = {};
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int32_t at = place[column[k]];
    if (at < 0) continue;
    const T x = data[k];
    const T* row = cells + at * kSparseWidth;
#pragma omp simd
    for (std::int64_t w = 0; w < kSparseWidth; ++w) sums[w] += x * row[w];
  }
  for (std::int64_t w = 0; w < kSparseWidth; ++w) out[w] = sums[w];
}

MARGROVE_CLONES void add_votes(const double* kernel, const double* dual, std::int64_t stride, std::int64_t count,
                               std::int64_t machines, double* out) {
  for (std::int64_t m = 0; m < machines; ++m) out[m] += dot(kernel, dual + m * stride, count);
}

std::int64_t count_of(const Selection& s, std::int64_t n) { return s.is_all ? n : length(s.chosen); }
std::int64_t row_of(const Selection& s, std::int64_t k) { return s.is_all ? k : s.chosen[k]; }

struct Packed {
  std::vector<double> points, half;  // (count, d), (count)

  template <class T>
  void pack(const DenseRows<T>& rows, const Selection& selection, std::int64_t from, std::int64_t count,
            const std::vector<double>& mean, double scale) {
    points.resize(count * rows.d);
    half.resize(count);
    for (std::int64_t r = 0; r < count; ++r) {
      const T* x = rows.row(row_of(selection, from + r));
      double* out = points.data() + r * rows.d;
      double squared = 0;
      for (std::int64_t k = 0; k < rows.d; ++k) {
        out[k] = scale * (static_cast<double>(x[k]) - mean[k]);
        squared += out[k] * out[k];
      }
      half[r] = squared / 2;
    }
  }
};

template <class T>
void add_dense_products(const DenseRows<T>& points, const Selection& p, const DenseRows<T>& support, const Selection& s,
                        std::span<const double> dual, std::int64_t machines, const KernelSpec& spec,
                        const Blas<double>& blas, int threads, double* out) {
  const std::int64_t d = points.d, n = count_of(p, points.n), size = count_of(s, support.n);
  const bool is_gaussian = spec.kind == KernelKind::rbf;
  std::vector<double> mean(d);
  if (is_gaussian)
    for (std::int64_t j = 0; j < size; ++j) add_row(support, row_of(s, j), 1.0 / size, mean.data());
  const double scale = is_gaussian ? std::sqrt(2 * spec.gamma) : 1.0;
  Packed packed;
  for (std::int64_t chunk = 0; chunk < size; chunk += kSupportChunk) {
    const std::int64_t length = std::min(kSupportChunk, size - chunk);
    packed.pack(support, s, chunk, length, mean, scale);
    parallel_for((n + kPointTile - 1) / kPointTile, threads, [&](std::int64_t tile) {
      const std::int64_t from = tile * kPointTile, count = std::min(kPointTile, n - from);
      Packed mine;
      mine.pack(points, p, from, count, mean, scale);
      std::vector<double> kernel(kPointTile * kSupportTile);
      for (std::int64_t j = 0; j < length; j += kSupportTile) {
        const std::int64_t width = std::min(kSupportTile, length - j);
        blas.products(mine.points.data(), packed.points.data() + j * d, count, width, d, kernel.data(), width);
        for (std::int64_t r = 0; r < count; ++r) {
          double* row = kernel.data() + r * width;
          const double* b_half = packed.half.data() + j;
          const double a_half = mine.half[r];
          if (is_gaussian) {
            const std::vector<std::int64_t> lost = lost_digits(row, b_half, a_half, width);
            finish_gaussian(row, b_half, a_half, width, row);
            for (const std::int64_t k : lost)
              row[k] = std::exp(-spec.gamma * squared_distance(points.row(row_of(p, from + r)),
                                                               support.row(row_of(s, chunk + j + k)), d));
          } else {
            finish_products(row, width, spec, row);
          }
          add_votes(row, dual.data() + chunk + j, size, width, machines, out + (from + r) * machines);
        }
      }
    });
  }
}

// Laplacian, chi-square and intersection kernels have no inner product to start from.
template <class T>
void add_dense_pairs(const DenseRows<T>& points, const Selection& p, const DenseRows<T>& support, const Selection& s,
                     std::span<const double> dual, std::int64_t machines, const KernelSpec& spec, int threads,
                     double* out) {
  const std::int64_t n = count_of(p, points.n), size = count_of(s, support.n);
  parallel_for((n + kPointTile - 1) / kPointTile, threads, [&](std::int64_t tile) {
    std::vector<double> row(size);
    for (std::int64_t i = tile * kPointTile; i < std::min(n, (tile + 1) * kPointTile); ++i) {
      for (std::int64_t j = 0; j < size; ++j) {
        const DenseRows<T> one{support.row(row_of(s, j)), 1, support.d};
        kernel_row(points, row_of(p, i), one, spec, &row[j]);
      }
      add_votes(row.data(), dual.data(), size, size, machines, out + i * machines);
    }
  });
}

template <class T>
void add_sparse(const CsrRows<T>& points, const Selection& p, const CsrRows<T>& support, const Selection& s,
                std::span<const double> dual, std::int64_t machines, const KernelSpec& spec, int threads, double* out) {
  const std::int64_t n = count_of(p, points.n), size = count_of(s, support.n);
  const std::vector<double> alone_points = alone_sums(points, spec.kind),
                            alone_support = alone_sums(support, spec.kind);
  // As many pieces as keep the threads busy: each needs a tile or a buffer of its own.
  const std::int64_t piece = std::max(kPointTile, (n + 4 * threads - 1) / (4 * threads));
  parallel_for((n + piece - 1) / piece, threads, [&](std::int64_t part) {
    const std::int64_t from = part * piece, to = std::min(n, from + piece);
    if (!is_by_products(spec.kind)) {
      std::vector<double> row(support.n), chosen(size);
      std::vector<double> buffer(points.d);
      for (std::int64_t i = from; i < to; ++i) {
        const std::int64_t at = row_of(p, i);
        kernel_row(points, at, alone_points[at], support, alone_support, spec, buffer, row.data());
        for (std::int64_t j = 0; j < size; ++j) chosen[j] = row[row_of(s, j)];
        add_votes(chosen.data(), dual.data(), size, size, machines, out + i * machines);
      }
      return;
    }
    SparseTile<double> tile(points.d);
    std::vector<std::int64_t> loaded;
    std::vector<double> row(kSparseWidth);
    for (std::int64_t j = 0; j < size; j += kSparseWidth) {
      const std::int64_t width = std::min(kSparseWidth, size - j);
      loaded.clear();
      for (std::int64_t k = 0; k < width; ++k) loaded.push_back(row_of(s, j + k));
      tile.load(support, loaded);
      for (std::int64_t i = from; i < to; ++i) {
        const std::int64_t at = row_of(p, i);
        tile.products(points, at, row.data());
        if (spec.kind == KernelKind::rbf) {
          for (std::int64_t k = 0; k < width; ++k) {
            const double size_of_both = alone_points[at] + alone_support[loaded[k]];
            double squared = size_of_both - 2 * row[k];
            if (squared < kClose * size_of_both) squared = pair_sum(points, at, support, loaded[k], spec.kind);
            row[k] = std::exp(-spec.gamma * squared);
          }
        } else {
          finish_products(row.data(), width, spec, row.data());
        }
        add_votes(row.data(), dual.data() + j, size, width, machines, out + i * machines);
      }
      tile.clear(support, loaded);
    }
  });
}

}  // namespace

#define MARGROVE_SPARSE_PRODUCTS(T, U)                                                                \
  MARGROVE_CLONES void sparse_products(const U* data, const std::int32_t* column, std::int64_t count, \
                                       const std::int32_t* place, const T* cells, T* out) {           \
    sparse_products_body(data, column, count, place, cells, out);                                     \
  }
MARGROVE_SPARSE_PRODUCTS(float, float)
MARGROVE_SPARSE_PRODUCTS(float, double)
MARGROVE_SPARSE_PRODUCTS(double, float)
MARGROVE_SPARSE_PRODUCTS(double, double)
#undef MARGROVE_SPARSE_PRODUCTS

void add_kernel_sums(const Selection& points, const Selection& support, std::span<const double> dual,
                     std::int64_t machines, const KernelSpec& spec, const Blas<double>& blas, int threads,
                     double* out) {
  std::visit(
      [&](const auto& p) {
        using Rows = std::decay_t<decltype(p)>;
        const auto& s = std::get<Rows>(support.points);
        if constexpr (requires { p.start; }) {
          add_sparse(p, points, s, support, dual, machines, spec, threads, out);
        } else if (is_by_products(spec.kind)) {
          add_dense_products(p, points, s, support, dual, machines, spec, blas, threads, out);
        } else {
          add_dense_pairs(p, points, s, support, dual, machines, spec, threads, out);
        }
      },
      points.points);
}

}  // namespace margrove
