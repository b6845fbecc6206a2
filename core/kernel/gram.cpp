#include "kernel/gram.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <type_traits>

#include "kernel/decision.hpp"
#include "kernel/distance.hpp"
#include "kernel/finish.hpp"
#include "kernel/gaussian_tile.hpp"
#include "kernel/sparse_tile.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kTileColumns = kGaussianColumns;  // a tile of products stays in the second-level cache
constexpr std::int64_t kTileRows = 256;
constexpr std::int64_t kPiece = 1024;  // points packed at a time

MARGROVE_CLONES void finish_gaussian(const float* products, const float* b_half, float a_half, std::int64_t width,
                                     float* out) {
  finish_gaussian_body(products, b_half, a_half, width, out);
}
MARGROVE_CLONES void finish_gaussian(const double* products, const double* b_half, double a_half, std::int64_t width,
                                     double* out) {
  finish_gaussian_body(products, b_half, a_half, width, out);
}

template <class T>
MARGROVE_INLINE void add_scaled_body(const T* row, double change, std::int64_t width, double* sums) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) sums[j] += change * static_cast<double>(row[j]);
}
MARGROVE_CLONES void add_scaled_row(const float* row, double change, std::int64_t width, double* sums) {
  add_scaled_body(row, change, width, sums);
}
MARGROVE_CLONES void add_scaled_row(const double* row, double change, std::int64_t width, double* sums) {
  add_scaled_body(row, change, width, sums);
}

template <class T, class U>
MARGROVE_INLINE double pack_body(const U* x, const double* mean, double scale, std::int64_t d, T* out) {
  double squared = 0;
#pragma omp simd reduction(+ : squared)
  for (std::int64_t k = 0; k < d; ++k) {
    const T moved = static_cast<T>(scale * (static_cast<double>(x[k]) - mean[k]));
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

// What every kernel matrix of points shares: which they are, and exact sums.
template <class T>
class PointGram : public Gram<T> {
 public:
  PointGram(const AnyRows& points, std::vector<std::int64_t> chosen, const KernelSpec& spec, const Blas<double>& exact)
      : points_(points),
        chosen_(std::move(chosen)),
        n_(static_cast<std::int64_t>(chosen_.size())),
        d_(std::visit([](const auto& rows) { return rows.d; }, points)),
        spec_(spec),
        exact_(exact),
        diagonal_(chosen_.size(), 1.0),
        magnitude_(chosen_.size()) {}
  std::int64_t size() const override { return n_; }
  const std::vector<double>& diagonal() const override { return diagonal_; }
  double magnitude(std::int64_t i) const override { return magnitude_[static_cast<std::size_t>(i)]; }
  bool is_nonnegative() const override {
    return spec_.kind == KernelKind::rbf || spec_.kind == KernelKind::laplacian || spec_.kind == KernelKind::chi2 ||
           spec_.kind == KernelKind::intersection;
  }

  void exact(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
             double* sums, int threads) const override {
    const std::vector<std::int64_t> support = given_rows(a), checked = given_rows(b);
    if (spec_.kind == KernelKind::linear) return exact_linear(support, change, checked, sums);
    add_kernel_sums({points_, checked, false}, {points_, support, false}, change, 1, spec_, exact_, threads, sums);
  }

  std::vector<std::int64_t> given_rows(std::span<const std::int64_t> list) const {
    std::vector<std::int64_t> rows;
    rows.reserve(list.size());
    for (const std::int64_t i : list) rows.push_back(chosen_[static_cast<std::size_t>(i)]);
    return rows;
  }

 protected:
  // x·w with w = sum of change x: no kernel value is needed.
  void exact_linear(const std::vector<std::int64_t>& support, std::span<const double> change,
                    const std::vector<std::int64_t>& checked, double* sums) const {
    std::vector<double> w(static_cast<std::size_t>(d_));
    std::visit(
        [&](const auto& rows) {
          for (std::size_t r = 0; r < support.size(); ++r) add_row(rows, support[r], change[r], w.data());
          for (std::size_t c = 0; c < checked.size(); ++c) sums[c] += dot_row(rows, checked[c], w.data());
        },
        points_);
  }

  AnyRows points_;
  std::vector<std::int64_t> chosen_;
  std::int64_t n_, d_;
  KernelSpec spec_;
  Blas<double> exact_;
  std::vector<double> diagonal_, magnitude_;  // (n)
};

template <class T>
class DenseGram final : public PointGram<T> {
  using PointGram<T>::n_, PointGram<T>::d_, PointGram<T>::spec_, PointGram<T>::diagonal_, PointGram<T>::chosen_,
      PointGram<T>::magnitude_;

 public:
  template <class U>
  DenseGram(const DenseRows<U>& rows, const AnyRows& points, std::vector<std::int64_t> chosen, const KernelSpec& spec,
            const Blas<T>& blas, const Blas<double>& exact, int threads)
      : PointGram<T>(points, std::move(chosen), spec, exact),
        blas_(blas),
        data_(new T[static_cast<std::size_t>(n_ * d_)]) {
    const bool is_gaussian = spec.kind == KernelKind::rbf;
    const std::int64_t pieces = (n_ + kPiece - 1) / kPiece;
    std::vector<double> mean(static_cast<std::size_t>(d_));
    if (is_gaussian) {
      // By pieces of a fixed size, so that the sum does not depend on the number of threads.
      std::vector<double> sums(static_cast<std::size_t>(pieces * d_));
      parallel_for(pieces, threads, [&](std::int64_t piece) {
        for (std::int64_t i = piece * kPiece; i < std::min(n_, (piece + 1) * kPiece); ++i)
          add_row(rows, chosen_[static_cast<std::size_t>(i)], 1.0 / static_cast<double>(n_), sums.data() + piece * d_);
      });
      for (std::int64_t piece = 0; piece < pieces; ++piece)
        for (std::int64_t k = 0; k < d_; ++k)
          mean[static_cast<std::size_t>(k)] += sums[static_cast<std::size_t>(piece * d_ + k)];
    }
    if (is_gaussian) half_.resize(static_cast<std::size_t>(n_));
    const double scale = is_gaussian ? std::sqrt(2 * spec.gamma) : 1.0;
    parallel_for(pieces, threads, [&](std::int64_t piece) {
      for (std::int64_t i = piece * kPiece; i < std::min(n_, (piece + 1) * kPiece); ++i) {
        T* out = data_.get() + i * d_;
        const double squared = pack_point(rows.row(chosen_[static_cast<std::size_t>(i)]), mean.data(), scale, d_, out);
        double sum = 0;
        if (!is_by_products(spec.kind))
          for (std::int64_t k = 0; k < d_; ++k) sum += std::fabs(static_cast<double>(out[k]));
        diagonal_[static_cast<std::size_t>(i)] = diagonal_of(spec, squared, sum);
        magnitude_[static_cast<std::size_t>(i)] = is_gaussian ? squared / 2 : magnitude_of(spec, squared, sum);
        if (is_gaussian) half_[static_cast<std::size_t>(i)] = static_cast<T>(squared / 2);
      }
    });
  }

  // Some points of another.
  DenseGram(const DenseGram& whole, std::span<const std::int64_t> part)
      : PointGram<T>(whole.points_, whole.given_rows(part), whole.spec_, whole.exact_),
        blas_(whole.blas_),
        data_(new T[static_cast<std::size_t>(n_ * d_)]) {
    if (!whole.half_.empty()) half_.resize(static_cast<std::size_t>(n_));
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t at = part[static_cast<std::size_t>(i)];
      std::copy_n(whole.data_.get() + at * d_, d_, data_.get() + i * d_);
      diagonal_[static_cast<std::size_t>(i)] = whole.diagonal_[static_cast<std::size_t>(at)];
      if (!half_.empty()) half_[static_cast<std::size_t>(i)] = whole.half_[static_cast<std::size_t>(at)];
      magnitude_[static_cast<std::size_t>(i)] = whole.magnitude_[static_cast<std::size_t>(at)];
    }
  }
  std::shared_ptr<const Gram<T>> part(std::span<const std::int64_t> chosen) const override {
    return std::make_shared<const DenseGram<T>>(*this, chosen);
  }

  void add_sums(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
                double* sums, int threads) const override {
    // Rows in chunks that stay in the third-level cache; a tile of columns is gathered once for each.
    constexpr std::size_t kChunk = 1024;
    const auto columns = static_cast<std::int64_t>(b.size());
    std::vector<T> a_points, a_halves;
    for (std::size_t from = 0; from < a.size(); from += kChunk) {
      const Packed rows = gather(a.subspan(from, std::min(kChunk, a.size() - from)), a_points, a_halves);
      parallel_for((columns + kTileColumns - 1) / kTileColumns, threads, [&](std::int64_t t) {
        static thread_local std::vector<T> scratch(static_cast<std::size_t>(kTileRows * kTileColumns)),
            values(static_cast<std::size_t>(kTileColumns));
        static thread_local std::vector<T> b_points, b_halves;
        const std::int64_t first = t * kTileColumns, width = std::min(kTileColumns, columns - first);
        const Packed tile_columns =
            gather(b.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(width)), b_points, b_halves);
        if (is_narrow_gaussian()) {
          std::vector<T*> nowhere(static_cast<std::size_t>(rows.count), values.data());
          return narrow_tile(rows, tile_columns, nowhere.data(), 0, change.data() + from, sums + first);
        }
        std::vector<T*> out(static_cast<std::size_t>(kTileRows), values.data());
        for (std::int64_t r = 0; r < rows.count; r += kTileRows)
          tile(rows.part(r, std::min(kTileRows, rows.count - r), d_), tile_columns, scratch.data(), out.data(),
               change.data() + from + r, sums + first, 0);
      });
    }
  }

  double cost() const override {
    return static_cast<double>(d_) * (is_by_products(spec_.kind) ? 1 : 8);  // pairs are not made by GEMM
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
    for (std::size_t r = 0; r < a.size(); ++r) rows[r] = out + static_cast<std::int64_t>(r) * stride;
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
    points.resize(rows.size() * static_cast<std::size_t>(d_));
    halves.resize(half_.empty() ? 0 : rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::copy_n(data_.get() + rows[r] * d_, d_, points.data() + static_cast<std::int64_t>(r) * d_);
      if (!half_.empty()) halves[r] = half_[static_cast<std::size_t>(rows[r])];
    }
    return {points.data(), halves.empty() ? nullptr : halves.data(), rows.data(), 0,
            static_cast<std::int64_t>(rows.size())};
  }

  // out[r][offset + c] = K(a_r, b_c), in tiles that stay in the cache; sums as in Gram::rows.
  void fill(const Packed& a, const Packed& b, T* const* out, const double* change, double* sums, int threads) const {
    parallel_for((b.count + kTileColumns - 1) / kTileColumns, threads, [&](std::int64_t t) {
      const std::int64_t from = t * kTileColumns;
      const Packed columns = b.part(from, std::min(kTileColumns, b.count - from), d_);
      if (is_narrow_gaussian()) return narrow_tile(a, columns, out, from, change, change ? sums + from : nullptr);
      static thread_local std::vector<T> scratch(static_cast<std::size_t>(kTileRows * kTileColumns));
      for (std::int64_t r = 0; r < a.count; r += kTileRows)
        tile(a.part(r, std::min(kTileRows, a.count - r), d_), columns, scratch.data(), out + r,
             change ? change + r : nullptr, sums, from);
    });
  }

  void tile(const Packed& a, const Packed& b, T* scratch, T* const* out, const double* change, double* sums,
            std::int64_t offset) const {
    const bool is_made_of_products = is_by_products(spec_.kind);
    if (is_made_of_products)
      blas_.products(a.points, b.points, static_cast<int>(a.count), static_cast<int>(b.count), static_cast<int>(d_),
                     scratch, static_cast<int>(b.count));
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
        const std::int64_t i = chosen_[static_cast<std::size_t>(a.which(r))];
        const std::int64_t j = chosen_[static_cast<std::size_t>(b.which(k))];
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

// Sparse rows: a few wanted rows are laid side by side, and one pass over the non-zeros of all others makes their
// values.
template <class T, class U>
class SparseGram final : public PointGram<T> {
  using PointGram<T>::n_, PointGram<T>::d_, PointGram<T>::spec_, PointGram<T>::diagonal_, PointGram<T>::chosen_,
      PointGram<T>::magnitude_;

 public:
  SparseGram(const CsrRows<U>& rows, const AnyRows& points, std::vector<std::int64_t> chosen, const KernelSpec& spec,
             const Blas<double>& exact)
      : PointGram<T>(points, std::move(chosen), spec, exact), rows_(rows), alone_(alone_sums(rows, spec.kind)) {
    for (std::int64_t i = 0; i < n_; ++i) {
      double squared = 0, sum = 0;
      const std::int64_t at = chosen_[static_cast<std::size_t>(i)];
      for (std::int64_t k = rows.start[at]; k < rows.start[at + 1]; ++k) {
        const auto x = static_cast<double>(rows.data[k]);
        squared += x * x;
        sum += std::fabs(x);
      }
      diagonal_[static_cast<std::size_t>(i)] = diagonal_of(spec, squared, sum);
      magnitude_[static_cast<std::size_t>(i)] = magnitude_of(spec, squared, sum);
    }
  }

  std::shared_ptr<const Gram<T>> part(std::span<const std::int64_t> chosen) const override {
    return std::make_shared<const SparseGram<T, U>>(rows_, this->points_, this->given_rows(chosen), spec_,
                                                    this->exact_);
  }

  void add_sums(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
                double* sums, int threads) const override {
    constexpr std::size_t kChunk = 64;
    std::vector<T> values(kChunk * b.size());
    std::vector<T*> out(kChunk);
    for (std::size_t r = 0; r < kChunk; ++r) out[r] = values.data() + r * b.size();
    for (std::size_t from = 0; from < a.size(); from += kChunk)
      fill(a.subspan(from, std::min(kChunk, a.size() - from)), b, out.data(), change.data() + from, sums, threads);
  }

  double cost() const override {
    return 4.0 * static_cast<double>(rows_.start[rows_.n]) / static_cast<double>(std::max<std::int64_t>(1, rows_.n));
  }

  void rows(std::span<const std::int64_t> wanted, const double* change, T* const* out, double* sums,
            int threads) const override {
    std::vector<std::int64_t> every(static_cast<std::size_t>(n_));
    for (std::int64_t j = 0; j < n_; ++j) every[static_cast<std::size_t>(j)] = j;
    fill(wanted, every, out, change, sums, threads);
  }

  void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, std::int64_t stride,
             int threads) const override {
    std::vector<T*> rows(a.size());
    for (std::size_t r = 0; r < a.size(); ++r) rows[r] = out + static_cast<std::int64_t>(r) * stride;
    fill(a, b, rows.data(), nullptr, nullptr, threads);
  }

 private:
  std::int64_t given(std::int64_t i) const { return chosen_[static_cast<std::size_t>(i)]; }

  void fill(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* const* out, const double* change,
            double* sums, int threads) const {
    // Pieces of the columns: their borders depend on neither threads nor rows, so neither do the sums.
    const auto columns = static_cast<std::int64_t>(b.size());
    const std::int64_t piece = std::max<std::int64_t>(256, (columns + 7) / 8);
    parallel_for((columns + piece - 1) / piece, threads, [&](std::int64_t part) {
      const std::int64_t from = part * piece, to = std::min(columns, from + piece);
      if (is_by_products(spec_.kind))
        by_products(a, b, from, to, out);
      else
        by_pairs(a, b, from, to, out);
      if (change)
        for (std::size_t r = 0; r < a.size(); ++r) add_scaled_row(out[r] + from, change[r], to - from, sums + from);
    });
  }

  void by_products(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::int64_t from, std::int64_t to,
                   T* const* out) const {
    SparseTile<T> tile(d_);
    std::vector<std::int64_t> loaded;
    std::vector<T> values(kSparseWidth);
    for (std::size_t r = 0; r < a.size(); r += kSparseWidth) {
      const std::size_t width = std::min<std::size_t>(a.size() - r, kSparseWidth);
      loaded.clear();
      for (std::size_t k = 0; k < width; ++k) loaded.push_back(given(a[r + k]));
      tile.load(rows_, loaded);
      for (std::int64_t c = from; c < to; ++c) {
        const std::int64_t at = given(b[static_cast<std::size_t>(c)]);
        tile.products(rows_, at, values.data());
        if (spec_.kind == KernelKind::rbf) {
          for (std::size_t k = 0; k < width; ++k) {
            const double sizes = alone_[static_cast<std::size_t>(at)] + alone_[static_cast<std::size_t>(loaded[k])];
            double squared = sizes - 2 * static_cast<double>(values[k]);
            if (std::is_same_v<T, double> && squared < kClose * sizes)
              squared = pair_sum(rows_, at, rows_, loaded[k], spec_.kind);
            values[k] = exp_of_negative(static_cast<T>(-spec_.gamma * std::max(squared, 0.0)));
          }
        } else {
          finish_products(values.data(), static_cast<std::int64_t>(width), spec_, values.data());
        }
        for (std::size_t k = 0; k < width; ++k) out[r + k][c] = values[k];
      }
      tile.clear(rows_, loaded);
    }
  }

  void by_pairs(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::int64_t from, std::int64_t to,
                T* const* out) const {
    std::vector<double> buffer(static_cast<std::size_t>(d_));
    for (std::size_t r = 0; r < a.size(); ++r) {
      const std::int64_t i = given(a[r]);
      for (std::int64_t c = from; c < to; ++c) {
        const std::int64_t j = given(b[static_cast<std::size_t>(c)]);
        const CsrRows<U> one{rows_.data, rows_.column, rows_.start + j, 1, d_};
        kernel_row(rows_, i, alone_[static_cast<std::size_t>(i)], one, {alone_[static_cast<std::size_t>(j)]}, spec_,
                   buffer, out[r] + c);
      }
    }
  }

  CsrRows<U> rows_;
  std::vector<double> alone_;
};

template <class T>
class GivenGram final : public Gram<T> {
 public:
  GivenGram(const DenseRows<T>& gram, std::vector<std::int64_t> chosen) : gram_(gram), chosen_(std::move(chosen)) {
    is_whole_ = size() == gram.n;
    for (std::int64_t i = 0; i < size(); ++i) {
      const std::int64_t at = chosen_[static_cast<std::size_t>(i)];
      is_whole_ = is_whole_ && at == i;
      diagonal_.push_back(static_cast<double>(gram.row(at)[at]));
    }
  }
  GivenGram(std::shared_ptr<RowsOnDemand<T>> rows, std::vector<double> diagonal)
      : on_demand_(std::move(rows)),
        chosen_(all_rows(on_demand_->size())),
        is_whole_(true),
        diagonal_(std::move(diagonal)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(chosen_.size()); }
  const std::vector<double>& diagonal() const override { return diagonal_; }
  double cost() const override { return 1; }
  const T* ready(std::int64_t i) const override { return is_whole_ ? row(i) : nullptr; }

  void rows(std::span<const std::int64_t> wanted, const double* change, T* const* out, double* sums,
            int threads) const override {
    parallel_for((size() + kPiece - 1) / kPiece, threads, [&](std::int64_t piece) {
      const std::int64_t from = piece * kPiece, to = std::min(size(), from + kPiece);
      for (std::size_t r = 0; r < wanted.size(); ++r) {
        const T* given = row(wanted[r]);
        for (std::int64_t j = from; j < to; ++j) out[r][j] = given[chosen_[static_cast<std::size_t>(j)]];
        if (change) add_scaled_row(out[r] + from, change[r], to - from, sums + from);
      }
    });
  }

  void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, std::int64_t stride,
             int) const override {
    for (std::size_t r = 0; r < a.size(); ++r)
      for (std::size_t c = 0; c < b.size(); ++c)
        out[static_cast<std::int64_t>(r) * stride + static_cast<std::int64_t>(c)] =
            row(a[r])[chosen_[static_cast<std::size_t>(b[c])]];
  }

  void add_sums(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
                double* sums, int threads) const override {
    const auto columns = static_cast<std::int64_t>(b.size());
    parallel_for((columns + kPiece - 1) / kPiece, threads, [&](std::int64_t piece) {
      const std::int64_t from = piece * kPiece, to = std::min(columns, from + kPiece);
      for (std::size_t r = 0; r < a.size(); ++r) {
        const T* given = row(a[r]);
        for (std::int64_t c = from; c < to; ++c)
          sums[c] +=
              change[r] * static_cast<double>(given[chosen_[static_cast<std::size_t>(b[static_cast<std::size_t>(c)])]]);
      }
    });
  }
  void exact(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
             double* sums, int threads) const override {
    add_sums(a, change, b, sums, threads);
  }
  std::shared_ptr<const Gram<T>> part(std::span<const std::int64_t> chosen) const override {
    auto some = std::make_shared<GivenGram<T>>(*this);
    some->is_whole_ = false;
    some->chosen_.clear();
    some->diagonal_.clear();
    for (const std::int64_t i : chosen) {
      some->chosen_.push_back(chosen_[static_cast<std::size_t>(i)]);
      some->diagonal_.push_back(diagonal_[static_cast<std::size_t>(i)]);
    }
    return some;
  }

 private:
  const T* row(std::int64_t i) const {
    const std::int64_t at = chosen_[static_cast<std::size_t>(i)];
    return on_demand_ ? on_demand_->row(at) : gram_.row(at);
  }

  DenseRows<T> gram_{};  // where no rows are made on demand
  std::shared_ptr<RowsOnDemand<T>> on_demand_;
  std::vector<std::int64_t> chosen_;
  bool is_whole_;
  std::vector<double> diagonal_;
};

}  // namespace

template <class T>
std::shared_ptr<const Gram<T>> gram_of_points(const AnyRows& points, std::vector<std::int64_t> chosen,
                                              const KernelSpec& spec, const Blas<T>& blas, const Blas<double>& exact,
                                              int threads) {
  return std::visit(
      [&](const auto& rows) -> std::shared_ptr<const Gram<T>> {
        using U = typename std::decay_t<decltype(rows)>::value_type;
        if constexpr (requires { rows.start; })
          return std::make_shared<const SparseGram<T, U>>(rows, points, std::move(chosen), spec, exact);
        else
          return std::make_shared<const DenseGram<T>>(rows, points, std::move(chosen), spec, blas, exact, threads);
      },
      points);
}

template <class T>
std::shared_ptr<const Gram<T>> gram_given(const DenseRows<T>& gram, std::vector<std::int64_t> chosen) {
  return std::make_shared<const GivenGram<T>>(gram, std::move(chosen));
}

template <class T>
RowsOnDemand<T>::RowsOnDemand(std::int64_t n, T* room, Make make)
    : n_(n),
      room_(room),
      make_(std::move(make)),
      row_(new std::atomic<const T*>[static_cast<std::size_t>(n)]()),
      is_taken_(new std::atomic<bool>[static_cast<std::size_t>(n)]()) {}

template <class T>
const T* RowsOnDemand<T>::made(std::int64_t i) {
  std::atomic<const T*>& mine = row_[static_cast<std::size_t>(i)];
  if (is_taken_[static_cast<std::size_t>(i)].exchange(true)) {  // another thread is at it
    const T* row = nullptr;
    while (!(row = mine.load(std::memory_order_acquire))) std::this_thread::yield();
    return row;
  }
  T* out = room_ + next_.fetch_add(1) * n_;
  make_(i, out);
  mine.store(out, std::memory_order_release);
  return out;
}

template <class T>
std::shared_ptr<const Gram<T>> gram_on_demand(std::shared_ptr<RowsOnDemand<T>> rows, std::vector<double> diagonal) {
  return std::make_shared<const GivenGram<T>>(std::move(rows), std::move(diagonal));
}

template class RowsOnDemand<float>;
template class RowsOnDemand<double>;
template std::shared_ptr<const Gram<float>> gram_on_demand(std::shared_ptr<RowsOnDemand<float>>, std::vector<double>);
template std::shared_ptr<const Gram<double>> gram_on_demand(std::shared_ptr<RowsOnDemand<double>>, std::vector<double>);
template std::shared_ptr<const Gram<float>> gram_of_points(const AnyRows&, std::vector<std::int64_t>, const KernelSpec&,
                                                           const Blas<float>&, const Blas<double>&, int);
template std::shared_ptr<const Gram<double>> gram_of_points(const AnyRows&, std::vector<std::int64_t>,
                                                            const KernelSpec&, const Blas<double>&, const Blas<double>&,
                                                            int);
template std::shared_ptr<const Gram<float>> gram_given(const DenseRows<float>&, std::vector<std::int64_t>);
template std::shared_ptr<const Gram<double>> gram_given(const DenseRows<double>&, std::vector<std::int64_t>);

}  // namespace margrove
