// The kernel matrix of sparse points: a few wanted rows are laid side by side, and one pass over the non-zeros of all
// others makes their values.
#include <algorithm>
#include <cmath>

#include "index.hpp"
#include "kernel/distance.hpp"
#include "kernel/finish.hpp"
#include "kernel/point_gram.hpp"
#include "kernel/sparse_tile.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

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
      const std::int64_t at = chosen_[i];
      for (std::int64_t k = rows.start[at]; k < rows.start[at + 1]; ++k) {
        const double x = rows.data[k];
        squared += x * x;
        sum += std::fabs(x);
      }
      diagonal_[i] = diagonal_of(spec, squared, sum);
      magnitude_[i] = magnitude_of(spec, squared, sum);
    }
  }

  std::shared_ptr<const Gram<T>> part(std::span<const std::int64_t> chosen) const override {
    return std::make_shared<const SparseGram<T, U>>(rows_, this->points_, this->given_rows(chosen), spec_,
                                                    this->exact_);
  }

  void add_sums(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
                double* sums, int threads) const override {
    constexpr std::size_t kChunk = 64;  // rows: a tile of them (kSparseWidth)
    std::vector<T> values(kChunk * b.size());
    std::vector<T*> out(kChunk);
    for (std::size_t r = 0; r < kChunk; ++r) out[r] = values.data() + r * b.size();
    for (std::size_t from = 0; from < a.size(); from += kChunk)
      fill(a.subspan(from, std::min(kChunk, a.size() - from)), b, out.data(), change.data() + from, sums, threads);
  }

  double cost() const override { return 4.0 * rows_.start[rows_.n] / std::max<std::int64_t>(1, rows_.n); }

  void rows(std::span<const std::int64_t> wanted, const double* change, T* const* out, double* sums,
            int threads) const override {
    std::vector<std::int64_t> every(n_);
    for (std::int64_t j = 0; j < n_; ++j) every[j] = j;
    fill(wanted, every, out, change, sums, threads);
  }

  void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, std::int64_t stride,
             int threads) const override {
    std::vector<T*> rows(a.size());
    for (std::size_t r = 0; r < a.size(); ++r) rows[r] = out + r * stride;
    fill(a, b, rows.data(), nullptr, nullptr, threads);
  }

 private:
  std::int64_t given(std::int64_t i) const { return chosen_[i]; }

  void fill(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* const* out, const double* change,
            double* sums, int threads) const {
    // Pieces of the columns: their borders depend on neither threads nor rows, so neither do the sums.
    const auto columns = length(b);
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
        const std::int64_t at = given(b[c]);
        tile.products(rows_, at, values.data());
        if (spec_.kind == KernelKind::rbf) {
          for (std::size_t k = 0; k < width; ++k) {
            const double sizes = alone_[at] + alone_[loaded[k]];
            double squared = sizes - 2 * static_cast<double>(values[k]);
            if (std::is_same_v<T, double> && squared < kClose * sizes)
              squared = pair_sum(rows_, at, rows_, loaded[k], spec_.kind);
            values[k] = exp_of_negative(static_cast<T>(-spec_.gamma * std::max(squared, 0.0)));
          }
        } else {
          finish_products(values.data(), width, spec_, values.data());
        }
        for (std::size_t k = 0; k < width; ++k) out[r + k][c] = values[k];
      }
      tile.clear(rows_, loaded);
    }
  }

  void by_pairs(std::span<const std::int64_t> a, std::span<const std::int64_t> b, std::int64_t from, std::int64_t to,
                T* const* out) const {
    std::vector<double> buffer(d_);
    for (std::size_t r = 0; r < a.size(); ++r) {
      const std::int64_t i = given(a[r]);
      for (std::int64_t c = from; c < to; ++c) {
        const std::int64_t j = given(b[c]);
        const CsrRows<U> one{rows_.data, rows_.column, rows_.start + j, 1, d_};
        kernel_row(rows_, i, alone_[i], one, {alone_[j]}, spec_, buffer, out[r] + c);
      }
    }
  }

  CsrRows<U> rows_;
  std::vector<double> alone_;
};

}  // namespace

template <class T, class U>
std::shared_ptr<const Gram<T>> sparse_gram(const CsrRows<U>& rows, const AnyRows& points,
                                           std::vector<std::int64_t> chosen, const KernelSpec& spec,
                                           const Blas<double>& exact) {
  return std::make_shared<const SparseGram<T, U>>(rows, points, std::move(chosen), spec, exact);
}

#define MARGROVE_SPARSE_GRAM(T, U)                                                                                  \
  template std::shared_ptr<const Gram<T>> sparse_gram(const CsrRows<U>&, const AnyRows&, std::vector<std::int64_t>, \
                                                      const KernelSpec&, const Blas<double>&);
MARGROVE_SPARSE_GRAM(float, float)
MARGROVE_SPARSE_GRAM(float, double)
MARGROVE_SPARSE_GRAM(double, float)
MARGROVE_SPARSE_GRAM(double, double)
#undef MARGROVE_SPARSE_GRAM

}  // namespace margrove
