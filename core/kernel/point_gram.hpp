// What the kernel matrices of points share: which points they are of, and exact sums.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "blas.hpp"
#include "index.hpp"
#include "kernel/block.hpp"
#include "kernel/decision.hpp"
#include "kernel/gram.hpp"
#include "rows.hpp"

namespace margrove {

// sums_j += change row_j
void add_scaled_row(const float* row, double change, std::int64_t width, double* sums);
void add_scaled_row(const double* row, double change, std::int64_t width, double* sums);

template <class T>
class PointGram : public Gram<T> {
 public:
  PointGram(const AnyRows& points, std::vector<std::int64_t> chosen, const KernelSpec& spec, const Blas<double>& exact)
      : points_(points),
        chosen_(std::move(chosen)),
        n_(length(chosen_)),
        d_(std::visit([](const auto& rows) { return rows.d; }, points)),
        spec_(spec),
        exact_(exact),
        diagonal_(chosen_.size(), 1.0),
        magnitude_(chosen_.size()) {}
  std::int64_t size() const override { return n_; }
  const std::vector<double>& diagonal() const override { return diagonal_; }
  double magnitude(std::int64_t i) const override { return magnitude_[i]; }
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
    for (const std::int64_t i : list) rows.push_back(chosen_[i]);
    return rows;
  }

 protected:
  // x·w with w = sum of change x: no kernel value is needed.
  void exact_linear(const std::vector<std::int64_t>& support, std::span<const double> change,
                    const std::vector<std::int64_t>& checked, double* sums) const {
    std::vector<double> w(d_);
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

// The kernel matrix of the points `chosen` of `points`, which `rows` is a view of.
template <class T, class U>
std::shared_ptr<const Gram<T>> dense_gram(const DenseRows<U>& rows, const AnyRows& points,
                                          std::vector<std::int64_t> chosen, const KernelSpec& spec, const Blas<T>& blas,
                                          const Blas<double>& exact, int threads);
template <class T, class U>
std::shared_ptr<const Gram<T>> sparse_gram(const CsrRows<U>& rows, const AnyRows& points,
                                           std::vector<std::int64_t> chosen, const KernelSpec& spec,
                                           const Blas<double>& exact);

}  // namespace margrove
