// The kernel matrix of dense points. They are packed in T; rows are made by one GEMM and one vectorised finish per tile
// of columns, or, for the Gaussian kernel of points with few columns, by gaussian_tile.hpp.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "index.hpp"
#include "kernel/distance.hpp"
#include "kernel/finish.hpp"
#include "kernel/gaussian_tile.hpp"
#include "kernel/point_gram.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

// Points of a tile of products, which stays in the second-level cache: 256 KiB in float, 512 KiB in double.
constexpr std::int64_t kTileColumns = kGaussianColumns, kTileRows = 256;
constexpr std::int64_t kPiece = 1024;  // points packed at a time; chosen, not measured

MARGROVE_CLONES void finish_gaussian(const float* products, const float* b_half, float a_half, std::int64_t width,
                                     float* out) {
  finish_gaussian_body(products, b_half, a_half, width, out);
}
MARGROVE_CLONES void finish_gaussian(const double* products, const double* b_half, double a_half, std::int64_t width,
                                     double* out) {
  finish_gaussian_body(products, b_half, a_half, width, out);
}

template <class T, class U>
MARGROVE_INLINE double pack_body(const U* x, const double* mean, double scale, std::int64_t d, T* out) {
  double squared = 0;
#pragma omp simd reduction(+ : squared)
  for (std::int64_t k = 0; k < d; ++k) {
    const T moved = scale * (static_cast<double>(x[k]) - mean[k]);
    out[k] = moved;
    squared += static_cast<double>(moved) * static_cast<double>(moved);
  }
  return squared;
}
#define MARGROVE_PACK(T, U)                                                                                 \
  MARGROVE_CLONES double pack_point(const U* x, const double* mean, double scale, std::int64_t d, T* out) { \
    return pack_body(x, mean, scale, d, out);                                                               \
  }
MARGROVE_PACK(float, float)
MARGROVE_PACK(float, double)
MARGROVE_PACK(double, float)
MARGROVE_PACK(double, double)
#undef MARGROVE_PACK

template <class T>
class DenseGram final : public PointGram<T> {
  using PointGram<T>::n_, PointGram<T>::d_, PointGram<T>::spec_, PointGram<T>::diagonal_, PointGram<T>::chosen_,
      PointGram<T>::magnitude_;

 public:
  template <class U>
  DenseGram(const DenseRows<U>& rows, const AnyRows& points, std::vector<std::int64_t> chosen, const KernelSpec& spec,
            const Blas<T>& blas, const Blas<double>& exact, int threads)
      : PointGram<T>(points, std::move(chosen), spec, exact), blas_(blas), data_(new T[n_ * d_]) {
    const bool is_gaussian = spec.kind == KernelKind::rbf;
    const std::int64_t pieces = (n_ + kPiece - 1) / kPiece;
    std::vector<double> mean(d_);
    if (is_gaussian) {
      // By pieces of a fixed size, so that the sum does not depend on the number of threads.
      std::vector<double> sums(pieces * d_);
      parallel_for(pieces, threads, [&](std::int64_t piece) {
        for (std::int64_t i = piece * kPiece; i < std::min(n_, (piece + 1) * kPiece); ++i)
          add_row(rows, chosen_[i], 1.0 / n_, sums.data() + piece * d_);
      });
      for (std::int64_t piece = 0; piece < pieces; ++piece)
        for (std::int64_t k = 0; k < d_; ++k) mean[k] += sums[piece * d_ + k];
    }
    if (is_gaussian) half_.resize(n_);
    const double scale = is_gaussian ? std::sqrt(2 * spec.gamma) : 1.0;
    parallel_for(pieces, threads, [&](std::int64_t piece) {
      for (std::int64_t i = piece * kPiece; i < std::min(n_, (piece + 1) * kPiece); ++i) {
        T* out = data_.get() + i * d_;
        const double squared = pack_point(rows.row(chosen_[i]), mean.data(), scale, d_, out);
        double sum = 0;
        if (!is_by_products(spec.kind))
          for (std::int64_t k = 0; k < d_; ++k) sum += std::fabs(static_cast<double>(out[k]));
        diagonal_[i] = diagonal_of(spec, squared, sum);
        magnitude_[i] = is_gaussian ? squared / 2 : magnitude_of(spec, squared, sum);
        if (is_gaussian) half_[i] = static_cast<T>(squared / 2);
      }
    });
  }

  // Some points of another.
  DenseGram(const DenseGram& whole, std::span<const std::int64_t> part)
      : PointGram<T>(whole.points_, whole.given_rows(part), whole.spec_, whole.exact_),
        blas_(whole.blas_),
        data_(new T[n_ * d_]) {
    if (!whole.half_.empty()) half_.resize(n_);
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t at = part[i];
      std::copy_n(whole.data_.get() + at * d_, d_, data_.get() + i * d_);
      diagonal_[i] = whole.diagonal_[at];
      if (!half_.empty()) half_[i] = whole.half_[at];
      magnitude_[i] = whole.magnitude_[at];
    }
  }
  std::shared_ptr<const Gram<T>> part(std::span<const std::int64_t> chosen) const override {
    return std::make_shared<const DenseGram<T>>(*this, chosen);
  }

  void add_sums(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
                double* sums, int threads) const override {
    // Rows in chunks that stay in the third-level cache; a tile of columns is gathered once for each.
    constexpr std::size_t kChunk = 1024;
    const auto columns = length(b);
    std::vector<T> a_points, a_halves;
    for (std::size_t from = 0; from < a.size(); from += kChunk) {
      const Packed rows = gather(a.subspan(from, std::min(kChunk, a.size() - from)), a_points, a_halves);
      parallel_for((columns + kTileColumns - 1) / kTileColumns, threads, [&](std::int64_t t) {
        static thread_local std::vector<T> scratch(kTileRows * kTileColumns), values(kTileColumns);
        static thread_local std::vector<T> b_points, b_halves;
        const std::int64_t first = t * kTileColumns, width = std::min(kTileColumns, columns - first);
        const Packed tile_columns = gather(b.subspan(first, width), b_points, b_halves);
        if (is_narrow_gaussian()) {
          std::vector<T*> nowhere(rows.count, values.data());
          return narrow_tile(rows, tile_columns, nowhere.data(), 0, change.data() + from, sums + first);
        }
        std::vector<T*> out(kTileRows, values.data());
        for (std::int64_t r = 0; r < rows.count; r += kTileRows)
          tile(rows.part(r, std::min(kTileRows, rows.count - r), d_), tile_columns, scratch.data(), out.data(),
               change.data() + from + r, sums + first, 0);
      });
    }
  }

  double cost() const override {
    return d_ * (is_by_products(spec_.kind) ? 1.0 : 8.0);  // pairs are not made by GEMM
  }

  void rows(std::span<const std::int64_t> wanted, const double* change, T* const* out, double* sums,
            int threads) const override {
    std::vector<T> points, halves;
    const Packed everything{data_.get(), half_.empty() ? nullptr : half_.data(), nullptr, 0, n_};
    fill(gather(wanted, points, halves), everything, out, change, sums, threads);
  }

  void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, std::int64_t stride,
             int threads) const override {
    std::vector<T> a_points, a_halves, b_points, b_halves;
    std::vector<T*> rows(a.size());
    for (std::size_t r = 0; r < a.size(); ++r) rows[r] = out + r * stride;
    fill(gather(a, a_points, a_halves), gather(b, b_points, b_halves), rows.data(), nullptr, nullptr, threads);
  }

 private:
  // `count` points side by side, and what the kernel needs to know of each.
  struct Packed {
    const T* points;             // (count, d)
    const T* half;               // (count) halved squared norms, null but for the Gaussian kernel
    const std::int64_t* chosen;  // (count) which points they are; null for all, in order
    std::int64_t from, count;
    Packed part(std::int64_t first, std::int64_t size, std::int64_t d) const {
      return {points + first * d, half ? half + first : nullptr, chosen ? chosen + first : nullptr, from + first, size};
    }
    std::int64_t which(std::int64_t k) const { return chosen ? chosen[k] : from + k; }
  };

  Packed gather(std::span<const std::int64_t> rows, std::vector<T>& points, std::vector<T>& halves) const {
    points.resize(rows.size() * d_);
    halves.resize(half_.empty() ? 0 : rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::copy_n(data_.get() + rows[r] * d_, d_, points.data() + r * d_);
      if (!half_.empty()) halves[r] = half_[rows[r]];
    }
    return {points.data(), halves.empty() ? nullptr : halves.data(), rows.data(), 0, length(rows)};
  }

  // out[r][offset + c] = K(a_r, b_c), in tiles that stay in the cache; sums as in Gram::rows.
  void fill(const Packed& a, const Packed& b, T* const* out, const double* change, double* sums, int threads) const {
    parallel_for((b.count + kTileColumns - 1) / kTileColumns, threads, [&](std::int64_t t) {
      const std::int64_t from = t * kTileColumns;
      const Packed columns = b.part(from, std::min(kTileColumns, b.count - from), d_);
      if (is_narrow_gaussian()) return narrow_tile(a, columns, out, from, change, change ? sums + from : nullptr);
      static thread_local std::vector<T> scratch(kTileRows * kTileColumns);
      for (std::int64_t r = 0; r < a.count; r += kTileRows)
        tile(a.part(r, std::min(kTileRows, a.count - r), d_), columns, scratch.data(), out + r,
             change ? change + r : nullptr, sums, from);
    });
  }

  void tile(const Packed& a, const Packed& b, T* scratch, T* const* out, const double* change, double* sums,
            std::int64_t offset) const {
    const bool is_made_of_products = is_by_products(spec_.kind);
    if (is_made_of_products) blas_.products(a.points, b.points, a.count, b.count, d_, scratch, b.count);
    for (std::int64_t r = 0; r < a.count; ++r) {
      const T* products = scratch + r * b.count;
      T* row = out[r] + offset;
      if (spec_.kind == KernelKind::rbf)
        gaussian_row(a, r, b, products, row);
      else if (is_made_of_products)
        finish_products(products, b.count, spec_, row);
      else
        kernel_row(DenseRows<T>{a.points, a.count, d_}, r, DenseRows<T>{b.points, b.count, d_}, spec_, row);
      if (change) add_scaled_row(row, change[r], b.count, sums + offset);
    }
  }

  bool is_narrow_gaussian() const {
    return std::is_same_v<T, float> && spec_.kind == KernelKind::rbf && d_ <= kGaussianWidest;
  }
  // `sums` begins at the first column of the tile, `out` is offset to it.
  void narrow_tile(const Packed& a, const Packed& columns, T* const* out, std::int64_t offset, const double* change,
                   double* sums) const {
    if constexpr (std::is_same_v<T, float>) {
      static thread_local TransposedTile tile;
      tile.load(columns.points, columns.half, columns.count, d_);
      gaussian_tile(a.points, a.half, a.count, d_, tile, out, offset, change, sums);
    }
  }

  void gaussian_row(const Packed& a, std::int64_t r, const Packed& b, const T* products, T* row) const {
    finish_gaussian(products, b.half, a.half[r], b.count, row);
    if constexpr (std::is_same_v<T, double>)
      for (const std::int64_t k : lost_digits(products, b.half, a.half[r], b.count)) {
        const std::int64_t i = chosen_[a.which(r)];
        const std::int64_t j = chosen_[b.which(k)];
        const double squared = std::visit(
            [&](const auto& rows) {
              if constexpr (requires { rows.start; })
                return 0.0;  // sparse points are not packed
              else
                return squared_distance(rows.row(i), rows.row(j), rows.d);
            },
            this->points_);
        row[k] = std::exp(-spec_.gamma * squared);
      }
  }

  Blas<T> blas_;
  std::unique_ptr<T[]> data_;  // (n, d)
  std::vector<T> half_;        // (n), half of |x|^2 of the moved points; Gaussian kernel only
};

}  // namespace

template <class T, class U>
std::shared_ptr<const Gram<T>> dense_gram(const DenseRows<U>& rows, const AnyRows& points,
                                          std::vector<std::int64_t> chosen, const KernelSpec& spec, const Blas<T>& blas,
                                          const Blas<double>& exact, int threads) {
  return std::make_shared<const DenseGram<T>>(rows, points, std::move(chosen), spec, blas, exact, threads);
}

#define MARGROVE_DENSE_GRAM(T, U)                                                                                    \
  template std::shared_ptr<const Gram<T>> dense_gram(const DenseRows<U>&, const AnyRows&, std::vector<std::int64_t>, \
                                                     const KernelSpec&, const Blas<T>&, const Blas<double>&, int);
MARGROVE_DENSE_GRAM(float, float)
MARGROVE_DENSE_GRAM(float, double)
MARGROVE_DENSE_GRAM(double, float)
MARGROVE_DENSE_GRAM(double, double)
#undef MARGROVE_DENSE_GRAM

}  // namespace margrove
