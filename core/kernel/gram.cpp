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

// exp(-gamma max(0, a + b_j - 2 p_j)) from the products p_j.
template <class T>
MARGROVE_INLINE void finish_gaussian_body(const T* products, const T* b_norm, T a_norm, T gamma, std::int64_t width,
                                          T* out) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    const T squared = a_norm + b_norm[j] - 2 * products[j];
    out[j] = exp_of_negative(-gamma * (squared > 0 ? squared : 0));
  }
}
MARGROVE_CLONES void finish_gaussian(const float* products, const float* b, float a, float gamma, std::int64_t width,
                                     float* out) {
  finish_gaussian_body(products, b, a, gamma, width, out);
}
MARGROVE_CLONES void finish_gaussian(const double* products, const double* b, double a, double gamma,
                                     std::int64_t width, double* out) {
  finish_gaussian_body(products, b, a, gamma, width, out);
}

template <class T>
void finish_products(const T* products, std::int64_t width, const KernelSpec& spec, T* out) {
  switch (spec.kind) {
    case KernelKind::poly:
      for (std::int64_t j = 0; j < width; ++j) {
        const double base = spec.gamma * products[j] + spec.coef0;
        double power = 1;
        for (int k = 0; k < static_cast<int>(spec.degree); ++k) power *= base;
        out[j] = static_cast<T>(power);
      }
      return;
    case KernelKind::sigmoid:
      for (std::int64_t j = 0; j < width; ++j)
        out[j] = static_cast<T>(std::tanh(spec.gamma * products[j] + spec.coef0));
      return;
    default:
      std::copy(products, products + width, out);
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
typename DenseGram<T>::Packed DenseGram<T>::everything() const {
  return {data_.data(), norm_.empty() ? nullptr : norm_.data(), n_};
}

template <class T>
typename DenseGram<T>::Packed DenseGram<T>::gather(std::span<const std::int64_t> rows, std::vector<T>& points,
                                                   std::vector<T>& norms) const {
  points.resize(rows.size() * static_cast<std::size_t>(d_));
  norms.resize(norm_.empty() ? 0 : rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy_n(data_.data() + rows[r] * d_, d_, points.data() + static_cast<std::int64_t>(r) * d_);
    if (!norm_.empty()) norms[r] = norm_[static_cast<std::size_t>(rows[r])];
  }
  return {points.data(), norms.empty() ? nullptr : norms.data(), static_cast<std::int64_t>(rows.size())};
}

template <class T>
void DenseGram<T>::tile(const Packed& a, const Packed& b, T* scratch, T* const* out, std::int64_t offset) const {
  if (!is_by_products(spec_.kind)) {
    for (std::int64_t r = 0; r < a.count; ++r)
      kernel_row(DenseRows<T>{a.points, a.count, d_}, r, DenseRows<T>{b.points, b.count, d_}, spec_, out[r] + offset);
    return;
  }
  blas_.products(a.points, b.points, static_cast<int>(a.count), static_cast<int>(b.count), static_cast<int>(d_),
                 scratch, static_cast<int>(b.count));
  for (std::int64_t r = 0; r < a.count; ++r) {
    const T* products = scratch + r * b.count;
    if (spec_.kind == KernelKind::rbf)
      finish_gaussian(products, b.norms, a.norms[r], static_cast<T>(spec_.gamma), b.count, out[r] + offset);
    else
      finish_products(products, b.count, spec_, out[r] + offset);
  }
}

template <class T>
void DenseGram<T>::fill(const Packed& a, const Packed& b, T* const* out, int threads) const {
  parallel_for((b.count + kTileColumns - 1) / kTileColumns, threads, [&](std::int64_t t) {
    std::vector<T> scratch(static_cast<std::size_t>(kTileRows * kTileColumns));
    const std::int64_t from = t * kTileColumns;
    const Packed columns = b.part(from, std::min(kTileColumns, b.count - from), d_);
    for (std::int64_t r = 0; r < a.count; r += kTileRows)
      tile(a.part(r, std::min(kTileRows, a.count - r), d_), columns, scratch.data(), out + r, from);
  });
}

template <class T>
void DenseGram<T>::rows(std::span<const std::int64_t> wanted, T* const* out, int threads) const {
  std::vector<T> points, norms;
  fill(gather(wanted, points, norms), everything(), out, threads);
}

template <class T>
void DenseGram<T>::block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, int threads) const {
  std::vector<T> a_points, a_norms, b_points, b_norms;
  std::vector<T*> rows(a.size());
  for (std::size_t r = 0; r < a.size(); ++r) rows[r] = out + r * b.size();
  fill(gather(a, a_points, a_norms), gather(b, b_points, b_norms), rows.data(), threads);
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
void GivenGram<T>::rows(std::span<const std::int64_t> wanted, T* const* out, int) const {
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    const T* given = gram_.row(chosen_[static_cast<std::size_t>(wanted[r])]);
    for (std::size_t j = 0; j < chosen_.size(); ++j) out[r][j] = given[chosen_[j]];
  }
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
