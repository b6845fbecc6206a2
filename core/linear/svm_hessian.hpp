// The Hessian of a Newton step of a linear machine,
//
//   diag(own) + scale * sum C_i x_i x_i^T   over the free rows, x_i with a 1 behind it where there is an intercept,
//
// as a matrix that is factored, or as a product that conjugate gradients ask for. Both are given -gradient and answer
// with the step. Results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "index.hpp"
#include "linear/svm_rows.hpp"
#include "linear/svm_task.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace margrove {

inline double product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

inline std::int64_t hessian_size(std::int64_t d, const LinearTask& task) { return d + (task.has_intercept ? 1 : 0); }

// The curvature of the intercept. Where it is free and no row bends it any will do: the line search finds the length.
inline double bent(double curvature, double scale, const LinearTask& task) {
  if (curvature > 0) return curvature;
  const double largest = task.cost.empty() ? 0.0 : *std::max_element(task.cost.begin(), task.cost.end());
  return std::max(1e-12, scale * largest * static_cast<double>(task.cost.size()));
}

// What the Hessian has on its diagonal beside the rows: the penalty and, while steps are too long, a share of what
// every row, free or not, would make there (Levenberg and Marquardt's damping).
template <class Rows>
class OwnDiagonal {
 public:
  OwnDiagonal(const Rows& rows, const LinearTask& task) : rows_(rows), task_(task) {}

  std::vector<double> values(double scale, double damping) {
    std::vector<double> own(hessian_size(rows_.d, task_), 1.0);
    if (task_.has_intercept) own.back() = task_.rho;
    if (damping == 0) return own;
    if (squares_.empty()) {
      squares_.assign(rows_.d + 1, 0.0);
      std::vector<std::uint32_t> every(rows_.n);
      std::iota(every.begin(), every.end(), 0u);
      add_squares(rows_, every.data(), rows_.n, task_.cost.data(), squares_.data());
      squares_.back() = std::accumulate(task_.cost.begin(), task_.cost.end(), 0.0);
    }
    for (std::size_t j = 0; j < own.size(); ++j) own[j] += damping * scale * squares_[j];
    return own;
  }

 private:
  const Rows rows_;
  const LinearTask task_;
  std::vector<double> squares_;  // (d + 1): sum C_i x_ij^2 over all rows
};

// As a matrix, to which only rows are added that come or go.
template <class Rows>
class GramHessian {
 public:
  GramHessian(const Rows& rows, const LinearTask& task, const SymmetricBlas& blas)
      : rows_(rows),
        task_(task),
        blas_(blas),
        size_(hessian_size(rows.d, task)),
        gram_(size_ * size_),
        in_gram_(rows.n) {}

  void begin(const std::vector<std::uint8_t>& is_free, std::int64_t n_free) {
    list_.clear();
    list_at_ = 0;
    std::int64_t changes = 0;
    for (std::size_t i = 0; i < is_free.size(); ++i) changes += is_free[i] != in_gram_[i];
    if (changes >= n_free) {  // begin anew: less work, and no rounding of the past
      std::fill(gram_.begin(), gram_.end(), 0.0);
      std::fill(in_gram_.begin(), in_gram_.end(), std::uint8_t{0});
    }
    for (std::size_t i = 0; i < is_free.size(); ++i)
      if (is_free[i] != in_gram_[i]) list_.push_back(i);
  }

  // sum C_i x_ij^2 of the free rows, column by column.
  std::vector<double> squares() const {
    std::vector<double> found(size_);
    for (std::int64_t j = 0; j < size_; ++j) found[j] = gram_[at(j, j)];
    return found;
  }

  // True when all rows that came or went are added; else the next call goes on.
  bool go_on(const std::vector<std::uint8_t>& is_free, std::chrono::steady_clock::time_point until, int threads) {
    const std::int64_t count = length(list_);
    const std::int64_t width = std::max<std::int64_t>(1, stored(rows_) / std::max<std::int64_t>(1, rows_.n));
    const std::int64_t rows_of_part = std::max<std::int64_t>(kOuterRows, kWorkOfAPart / (width * width + 16));
    while (list_at_ < count) {
      const std::int64_t end = std::min(count, list_at_ + kGramParts * rows_of_part);
      const std::int64_t parts = std::clamp<std::int64_t>((end - list_at_) / (16 * kOuterRows), 1, kGramParts);
      while (length(parts_) < parts - 1) parts_.emplace_back(gram_.size());
      const std::int64_t from = list_at_;
      parallel_for(parts, threads, [&](std::int64_t part) {
        std::vector<double>& sums = part == 0 ? gram_ : parts_[part - 1];
        if (part > 0) std::fill(sums.begin(), sums.end(), 0.0);
        add_rows(is_free, from + (end - from) * part / parts, from + (end - from) * (part + 1) / parts, sums.data());
      });
      for (std::int64_t part = 1; part < parts; ++part)
        for (std::size_t k = 0; k < gram_.size(); ++k) gram_[k] += parts_[part - 1][k];
      list_at_ = end;
      if (list_at_ < count && std::chrono::steady_clock::now() >= until) return false;
    }
    for (const std::uint32_t i : list_) in_gram_[i] = is_free[i];
    return true;
  }

  // p <- the step for p = -gradient. The slope along it: 0 where nothing is to be gained, NaN where there is no step.
  double solve(const std::vector<double>& own, double scale, std::vector<double>& p) {
    double ridge = 0;
    for (int attempt = 0; attempt < kMostRidges; ++attempt) {
      factor_.resize(gram_.size());
      for (std::int64_t column = 0; column < size_; ++column)
        for (std::int64_t row = 0; row <= column; ++row) factor_[at(row, column)] = scale * gram_[at(row, column)];
      for (std::int64_t j = 0; j < size_; ++j) {
        double& diagonal = factor_[at(j, j)];
        diagonal = (diagonal + own[j]) * (1 + ridge);
        if (j == rows_.d) diagonal = bent(diagonal, scale, task_);
      }
      if (blas_.factor(factor_.data(), size_)) {
        std::vector<double> solution = p;
        blas_.solve(factor_.data(), size_, solution.data());
        const double slope = product(p, solution);
        if (std::isfinite(slope) && slope >= 0) {
          p = std::move(solution);
          return slope;
        }
      }
      ridge = ridge == 0 ? 1e-14 : ridge * 100;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  // Rows whose outer products are added by one call: with 256 columns 256 KiB, in L2.
  static constexpr std::int64_t kOuterRows = 128;
  // Parts of a list of rows added at the same time, whatever the number of threads, so that rounding does not depend on
  // it. Chosen, not measured: each needs a matrix of its own.
  static constexpr std::int64_t kGramParts = 4;
  // Multiplications between two looks at the clock. Chosen, not measured: some milliseconds of matrix products.
  static constexpr std::int64_t kWorkOfAPart = 1 << 26;
  static constexpr int kMostRidges = 12;  // as in row_hessian.hpp

  std::size_t at(std::int64_t row, std::int64_t column) const { return static_cast<std::size_t>(row + column * size_); }

  void add_rows(const std::vector<std::uint8_t>& is_free, std::int64_t from, std::int64_t to, double* sums) const {
    if constexpr (requires { rows_.row(0); }) {
      const std::int64_t width = size_;
      std::vector<double> batch(2 * kOuterRows * width);
      std::int64_t filled[2] = {0, 0};  // of rows that leave, and of rows that come
      const auto flush = [&](int comes) {
        double* vectors = batch.data() + comes * kOuterRows * width;
        blas_.add_outer_products(sums, vectors, width, filled[comes], comes ? 1.0 : -1.0);
        filled[comes] = 0;
      };
      for (std::int64_t k = from; k < to; ++k) {
        const std::int64_t i = list_[k];
        const int comes = is_free[i] ? 1 : 0;
        double* out = batch.data() + (comes * kOuterRows + filled[comes]) * width;
        const double root = std::sqrt(task_.cost[i]);
        const auto* x = rows_.row(i);
        for (std::int64_t j = 0; j < rows_.d; ++j) out[j] = root * x[j];
        if (task_.has_intercept) out[rows_.d] = root;
        if (++filled[comes] == kOuterRows) flush(comes);
      }
      for (const int comes : {0, 1})
        if (filled[comes] > 0) flush(comes);
    } else {
      const std::int64_t width = size_;
      for (std::int64_t k = from; k < to; ++k) {
        const std::int64_t i = list_[k];
        const double cost = task_.cost[i];
        const double scale = is_free[i] ? cost : -cost;
        const std::int64_t start = rows_.start[i], end = rows_.start[i + 1];
        for (std::int64_t a = start; a < end; ++a) {
          const double x = scale * rows_.data[a];
          const std::int64_t col = rows_.column[a];
          for (std::int64_t c = start; c <= a; ++c) {
            const std::int64_t other = rows_.column[c];
            sums[std::min(col, other) + std::max(col, other) * width] += x * static_cast<double>(rows_.data[c]);
          }
          if (task_.has_intercept) sums[col + rows_.d * width] += x;
        }
        if (task_.has_intercept) sums[rows_.d + rows_.d * width] += scale;
      }
    }
  }

  const Rows rows_;
  const LinearTask task_;
  const SymmetricBlas blas_;
  const std::int64_t size_;
  std::vector<double> gram_, factor_;       // gram: sum of (C_i/factor) x_i x_i^T
  std::vector<std::vector<double>> parts_;  // of it, while rows are added
  std::vector<std::uint8_t> in_gram_;
  std::vector<std::uint32_t> list_;  // rows that come or go
  std::int64_t list_at_ = 0;
};

// As a product with vectors: conjugate gradients, preconditioned by the diagonal.
template <class Rows>
class ProductHessian {
 public:
  ProductHessian(const Rows& rows, const LinearTask& task, std::int64_t parts)
      : rows_(rows), task_(task), partial_(parts, std::vector<double>(rows.d)), sums_(partial_.size()) {}

  // To solve for p = -gradient until the residual has fallen to `share`.
  void begin(const std::vector<std::uint8_t>& is_free, std::vector<double> own, double scale,
             const std::vector<double>& p, double share) {
    list_.clear();
    for (std::size_t i = 0; i < is_free.size(); ++i)
      if (is_free[i]) list_.push_back(i);
    own_ = std::move(own);
    scale_ = scale;
    share_ = share;
    solution_.assign(p.size(), 0.0);
    residual_ = p;
    diagonal_.clear();
    rounds_ = 0;
  }

  bool go_on(std::chrono::steady_clock::time_point until, int threads) {
    if (diagonal_.empty()) precondition(threads);
    const auto most = std::clamp<std::int64_t>(length(residual_), 50, 500);
    while (energy_ > least_ && energy_ > 0 && rounds_ < most) {
      multiply(threads);
      const double bend = product(direction_, image_);
      if (!(bend > 0)) break;
      const double length = energy_ / bend;
      double energy = 0;
      for (std::size_t j = 0; j < solution_.size(); ++j) {
        solution_[j] += length * direction_[j];
        residual_[j] -= length * image_[j];
        energy += residual_[j] * residual_[j] / diagonal_[j];
      }
      for (std::size_t j = 0; j < direction_.size(); ++j)
        direction_[j] = residual_[j] / diagonal_[j] + energy / energy_ * direction_[j];
      energy_ = energy;
      ++rounds_;
      if (std::chrono::steady_clock::now() >= until) return false;
    }
    return true;
  }

  // sum C_i x_ij^2 of the free rows, column by column.
  std::vector<double> squares() const {
    std::vector<double> found(diagonal_.size());
    for (std::size_t j = 0; j < found.size(); ++j) found[j] = std::max(0.0, (diagonal_[j] - own_[j]) / scale_);
    return found;
  }

  // p <- the step. The slope along it.
  double solve(std::vector<double>& p) const {
    const double slope = product(p, solution_);
    p = solution_;
    return slope;
  }

 private:
  void precondition(int threads) {
    over_list(threads, [&](const std::uint32_t* list, std::int64_t count, double* part) {
      add_squares(rows_, list, count, task_.cost.data(), part);
      double sum = 0;
      for (std::int64_t k = 0; k < count; ++k) sum += task_.cost[list[k]];
      return sum;
    });
    diagonal_.assign(residual_.size(), 0.0);
    const double sum = gather(diagonal_);
    const std::size_t d = rows_.d;
    for (std::size_t j = 0; j < d; ++j) diagonal_[j] += own_[j];
    if (task_.has_intercept) {
      diagonal_[d] = bent(sum + own_[d], scale_, task_);
      own_[d] = diagonal_[d] - sum;
    }
    direction_ = residual_;
    for (std::size_t j = 0; j < direction_.size(); ++j) direction_[j] /= diagonal_[j];
    energy_ = product(residual_, direction_);
    least_ = share_ * share_ * energy_;
  }

  // image <- Hessian * direction
  void multiply(int threads) {
    const std::size_t d = rows_.d;
    const double constant = task_.has_intercept ? direction_[d] : 0.0;
    over_list(threads, [&](const std::uint32_t* list, std::int64_t count, double* part) {
      return add_curvature(rows_, list, count, task_.cost.data(), direction_.data(), constant, part);
    });
    image_.assign(direction_.size(), 0.0);
    const double sum = gather(image_);
    for (std::size_t j = 0; j < d; ++j) image_[j] += own_[j] * direction_[j];
    if (task_.has_intercept) image_[d] = sum + own_[d] * constant;
  }

  // body(list, count, sums of columns) -> the sum of the constant column, on parts of the list.
  template <class Body>
  void over_list(int threads, Body body) {
    const auto count = length(list_), parts = length(partial_);
    parallel_for(parts, threads, [&](std::int64_t r) {
      std::vector<double>& part = partial_[r];
      std::fill(part.begin(), part.end(), 0.0);
      const std::int64_t from = count * r / parts, to = count * (r + 1) / parts;
      sums_[r] = body(list_.data() + from, to - from, part.data());
    });
  }

  double gather(std::vector<double>& out) const {
    for (const std::vector<double>& part : partial_)
      for (std::size_t j = 0; j < part.size(); ++j) out[j] += scale_ * part[j];
    return scale_ * std::accumulate(sums_.begin(), sums_.end(), 0.0);
  }

  const Rows rows_;
  const LinearTask task_;
  std::vector<std::vector<double>> partial_;  // (d) of each part of the list
  std::vector<double> sums_;                  // of each part, of the constant column
  std::vector<std::uint32_t> list_;           // the free rows
  std::vector<double> own_, diagonal_;        // (size)
  std::vector<double> solution_, residual_, direction_, image_;
  double scale_ = 0, share_ = 0, energy_ = 0, least_ = 0;  // energy: residual·M^-1 residual
  std::int64_t rounds_ = 0;
};

}  // namespace margrove
