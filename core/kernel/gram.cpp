#include "kernel/gram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "kernel/fast_exp.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kTileColumns =
    256;  // a tile of products with up to some hundred rows stays in the second-level cache
constexpr std::int64_t kTileRows = 256;

bool is_by_products(KernelKind kind) {
  return kind != KernelKind::laplacian && kind != KernelKind::chi2 && kind != KernelKind::intersection;
}

// exp(-gamma max(0, a + b_j - 2 p_j)) in place of the products p_j.
template <class T>
MARGROVE_INLINE void finish_gaussian_body(T* row, const T* b_norm, T a_norm, T gamma, std::int64_t width) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    const T squared = a_norm + b_norm[j] - 2 * row[j];
    row[j] = exp_of_negative(-gamma * (squared > 0 ? squared : 0));
  }
}
MARGROVE_CLONES void finish_gaussian(float* row, const float* b, float a, float gamma, std::int64_t width) {
  finish_gaussian_body(row, b, a, gamma, width);
}
MARGROVE_CLONES void finish_gaussian(double* row, const double* b, double a, double gamma, std::int64_t width) {
  finish_gaussian_body(row, b, a, gamma, width);
}

template <class T>
void finish_row(T* row, std::int64_t width, const KernelSpec& spec) {
  if (spec.kind == KernelKind::poly) {
    const auto degree = static_cast<int>(spec.degree);
    for (std::int64_t j = 0; j < width; ++j) {
      const double base = spec.gamma * row[j] + spec.coef0;
      double power = 1;
      for (int k = 0; k < degree; ++k) power *= base;
      row[j] = static_cast<T>(power);
    }
  } else if (spec.kind == KernelKind::sigmoid) {
    for (std::int64_t j = 0; j < width; ++j) row[j] = static_cast<T>(std::tanh(spec.gamma * row[j] + spec.coef0));
  }
}

// One point as doubles, wherever it lies.
void read_point(const AnyRows& points, std::int64_t i, double* out) {
  std::visit(
      [&](const auto& rows) {
        std::fill(out, out + rows.d, 0.0);
        add_row(rows, i, 1.0, out);
      },
      points);
}

}  // namespace

template <class T>
DenseGram<T>::DenseGram(const AnyRows& points, std::span<const std::int64_t> chosen, const KernelSpec& spec,
                        const Blas<T>& blas)
    : spec_(spec), blas_(blas) {
  std::int64_t all = 0;
  std::visit([&](const auto& rows) { all = rows.n, d_ = rows.d; }, points);
  n_ = chosen.empty() ? all : static_cast<std::int64_t>(chosen.size());
  const auto point = [&](std::int64_t i) { return chosen.empty() ? i : chosen[static_cast<std::size_t>(i)]; };
  std::vector<double> mean(static_cast<std::size_t>(d_)), row(static_cast<std::size_t>(d_));
  const bool is_gaussian = spec.kind == KernelKind::rbf;
  if (is_gaussian)
    for (std::int64_t i = 0; i < n_; ++i)
      std::visit([&](const auto& rows) { add_row(rows, point(i), 1.0 / static_cast<double>(n_), mean.data()); },
                 points);
  data_.resize(static_cast<std::size_t>(n_ * d_));
  if (is_gaussian) norm_.resize(static_cast<std::size_t>(n_));
  diagonal_.resize(static_cast<std::size_t>(n_), 1.0);
  for (std::int64_t i = 0; i < n_; ++i) {
    read_point(points, point(i), row.data());
    T* out = data_.data() + i * d_;
    double squared = 0, total = 0;
    for (std::int64_t k = 0; k < d_; ++k) {
      out[k] = static_cast<T>(row[static_cast<std::size_t>(k)] - mean[static_cast<std::size_t>(k)]);
      squared += static_cast<double>(out[k]) * static_cast<double>(out[k]);
      total += static_cast<double>(out[k]);
    }
    double& own = diagonal_[static_cast<std::size_t>(i)];
    switch (spec.kind) {
      case KernelKind::rbf:
        norm_[static_cast<std::size_t>(i)] = static_cast<T>(squared);
        break;
      case KernelKind::linear:
        own = squared;
        break;
      case KernelKind::poly:
        own = std::pow(spec.gamma * squared + spec.coef0, spec.degree);
        break;
      case KernelKind::sigmoid:
        own = std::tanh(spec.gamma * squared + spec.coef0);
        break;
      case KernelKind::intersection:
        own = total;
        break;
      default:
        break;
    }
  }
}

template <class T>
void DenseGram<T>::gather(std::span<const std::int64_t> rows, std::vector<T>& points, std::vector<T>& norms) const {
  points.resize(rows.size() * static_cast<std::size_t>(d_));
  norms.resize(norm_.empty() ? 0 : rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy_n(data_.data() + rows[r] * d_, d_, points.data() + static_cast<std::int64_t>(r) * d_);
    if (!norm_.empty()) norms[r] = norm_[static_cast<std::size_t>(rows[r])];
  }
}

template <class T>
void DenseGram<T>::tile(const T* a, const T* a_norm, std::int64_t count, const T* b, const T* b_norm,
                        std::int64_t width, T* out, std::int64_t stride) const {
  if (!is_by_products(spec_.kind)) {
    for (std::int64_t r = 0; r < count; ++r)
      kernel_row(DenseRows<T>{a, count, d_}, r, DenseRows<T>{b, width, d_}, spec_, out + r * stride);
    return;
  }
  blas_.products(a, b, static_cast<int>(count), static_cast<int>(width), static_cast<int>(d_), out,
                 static_cast<int>(stride));
  for (std::int64_t r = 0; r < count; ++r) {
    if (spec_.kind == KernelKind::rbf)
      finish_gaussian(out + r * stride, b_norm, a_norm[r], static_cast<T>(spec_.gamma), width);
    else
      finish_row(out + r * stride, width, spec_);
  }
}

template <class T>
void DenseGram<T>::rows(std::span<const std::int64_t> wanted, T* out, int threads) const {
  std::vector<T> points, norms;
  gather(wanted, points, norms);
  const auto count = static_cast<std::int64_t>(wanted.size());
  const std::int64_t tiles = (n_ + kTileColumns - 1) / kTileColumns;
  parallel_for(tiles, threads, [&](std::int64_t t) {
    const std::int64_t from = t * kTileColumns, width = std::min(kTileColumns, n_ - from);
    for (std::int64_t r = 0; r < count; r += kTileRows)
      tile(points.data() + r * d_, norms.data() + (norms.empty() ? 0 : r), std::min(kTileRows, count - r),
           data_.data() + from * d_, norm_.data() + (norm_.empty() ? 0 : from), width, out + r * n_ + from, n_);
  });
}

template <class T>
void DenseGram<T>::block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, int threads) const {
  std::vector<T> a_points, a_norms, b_points, b_norms;
  gather(a, a_points, a_norms);
  gather(b, b_points, b_norms);
  const auto count = static_cast<std::int64_t>(a.size()), width = static_cast<std::int64_t>(b.size());
  parallel_for((width + kTileColumns - 1) / kTileColumns, threads, [&](std::int64_t t) {
    const std::int64_t from = t * kTileColumns, part = std::min(kTileColumns, width - from);
    for (std::int64_t r = 0; r < count; r += kTileRows)
      tile(a_points.data() + r * d_, a_norms.data() + (a_norms.empty() ? 0 : r), std::min(kTileRows, count - r),
           b_points.data() + from * d_, b_norms.data() + (b_norms.empty() ? 0 : from), part, out + r * width + from,
           width);
  });
}

template <class T>
GivenGram<T>::GivenGram(const DenseRows<T>& gram, std::span<const std::int64_t> chosen)
    : gram_(gram), chosen_(chosen.begin(), chosen.end()) {
  if (chosen_.empty()) {
    chosen_.resize(static_cast<std::size_t>(gram.n));
    std::iota(chosen_.begin(), chosen_.end(), 0);
  }
  for (const std::int64_t i : chosen_) diagonal_.push_back(static_cast<double>(gram.row(i)[i]));
}

template <class T>
void GivenGram<T>::rows(std::span<const std::int64_t> wanted, T* out, int) const {
  for (const std::int64_t i : wanted)
    for (const std::int64_t j : chosen_) *out++ = gram_.row(chosen_[static_cast<std::size_t>(i)])[j];
}

template <class T>
void GivenGram<T>::block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, int) const {
  for (const std::int64_t i : a)
    for (const std::int64_t j : b)
      *out++ = gram_.row(chosen_[static_cast<std::size_t>(i)])[chosen_[static_cast<std::size_t>(j)]];
}

template class DenseGram<float>;
template class DenseGram<double>;
template class GivenGram<float>;
template class GivenGram<double>;

}  // namespace margrove
