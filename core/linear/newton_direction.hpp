// The direction of a Newton step: which form of the Hessian it is made by, and how much that is damped.
//
//   columns   a matrix of the columns, to which only rows are added that come or go   (svm_hessian.hpp)
//   rows      a matrix of the free rows, where they are few                           (row_hessian.hpp)
//   none      products of the Hessian with vectors, for conjugate gradients           (svm_hessian.hpp)
//
// Where no more rows are free than there are columns, the matrix of the columns is nearly singular and its steps are
// rounding: then `columns` takes that of the rows too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blas.hpp"
#include "linear/row_hessian.hpp"
#include "linear/svm_hessian.hpp"
#include "linear/svm_task.hpp"

namespace margrove {

enum class NewtonHessian { columns, rows, none };

// Free rows up to which their matrix is made: 72 MB, and from 36 on for their products. Above, conjugate gradients.
constexpr std::int64_t kMostFreeRows = 3000;

template <class Rows>
class NewtonDirection {
 public:
  NewtonDirection(const Rows& rows, const LinearTask& task, NewtonHessian hessian, const SymmetricBlas& blas,
                  std::int64_t n_ranges)
      : rows_(rows), task_(task), hessian_(hessian), blas_(blas), own_(rows, task) {
    if (hessian == NewtonHessian::columns) {
      gram_ = std::make_unique<GramHessian<Rows>>(rows, task, blas);
    } else {
      product_ = std::make_unique<ProductHessian<Rows>>(rows, task, n_ranges);
    }
  }

  // For p = -gradient; `scale` is kappa times the factor of all costs, `gap` the relative gap so far.
  void begin(const std::vector<std::uint8_t>& is_free, std::int64_t n_free, double scale, double gap,
             const std::vector<double>& p) {
    scale_ = scale;
    is_by_rows_ = n_free <= most_free_rows();
    if (is_by_rows_) {
      if (!by_rows_) by_rows_ = std::make_unique<RowHessian<Rows>>(rows_, task_, blas_);
      by_rows_->begin(is_free);
    } else if (gram_) {
      gram_->begin(is_free, n_free);
    } else {
      const double share = std::min(kCgShare, std::sqrt(std::max(kLeastGap, gap)));
      product_->begin(is_free, own_.values(scale, damping_), scale, p, share);
    }
  }

  // True when the direction can be solved for; else the next call goes on.
  bool go_on(const std::vector<std::uint8_t>& is_free, std::chrono::steady_clock::time_point until, int threads) {
    if (is_by_rows_) return by_rows_->go_on(until, threads);
    return gram_ ? gram_->go_on(is_free, until, threads) : product_->go_on(until, threads);
  }

  // p <- the step from w and b for p = -gradient, f and beta being those of w and b. How steeply the function falls
  // along it: 0 where nothing is to be gained, NaN where there is no step.
  double solve(const std::vector<double>& f, const std::vector<double>& beta, const std::vector<std::uint8_t>& is_free,
               const std::vector<double>& w, double b, std::vector<double>& p) {
    if (is_by_rows_) return by_rows_->solve(scale_, f, beta, is_free, w, b, p);
    return gram_ ? gram_->solve(own_.values(scale_, damping_), scale_, p) : product_->solve(p);
  }

  // The matrix of the rows that the step was made by; null where it was another.
  const RowHessian<Rows>* by_rows() const { return is_by_rows_ ? by_rows_.get() : nullptr; }

  // The next step is damped more where this one, t p, was too long, and less where it was not. Steps by rows need no
  // damping: they are exact where the other matrices are nearly singular.
  void adapt_damping(double t) {
    if (is_by_rows_) {
      damping_ = 0;
    } else if (t < kShortStep) {
      damping_ = std::max(10 * damping_, kFirstDamping);
    } else if (t > kLongStep) {
      damping_ = damping_ <= kLeastDamping ? 0.0 : damping_ / 10;
    }
  }

  // Which matrix loses less to rounding cannot be known beforehand: that of the rows where columns are many, that of
  // the columns where rows are nearly alike. From now on the columns; false where that changes nothing.
  bool leave_rows() {
    if (!gram_ || !by_rows_ || avoids_rows_) return false;
    return avoids_rows_ = true;
  }

  // sum C_i x_ij^2 over the free rows, column by column.
  std::vector<double> squares() const {
    return is_by_rows_ ? by_rows_->squares() : gram_ ? gram_->squares() : product_->squares();
  }

 private:
  // Of a whole step: what is too long, what is not. On the tables of svm_newton.cpp damping changes nothing (1,791
  // steps without it, 1,803 with): it is for tables where few rows bend and steps would not come to an end.
  static constexpr double kShortStep = 0.1, kLongStep = 0.9;
  static constexpr double kFirstDamping = 1e-7, kLeastDamping = 1e-11;
  // Of the residual, where conjugate gradients end at the latest. Measured: 1,762 steps with 0.01, at more products
  // each; 1,871 with 0.5.
  static constexpr double kCgShare = 0.1;
  static constexpr double kLeastGap = 1e-12;  // whose root is the least share: beyond is rounding

  std::int64_t most_free_rows() const {
    if (hessian_ == NewtonHessian::rows) return kMostFreeRows;
    if (hessian_ == NewtonHessian::columns && !avoids_rows_) return std::min(rows_.d, kMostFreeRows);
    return -1;
  }

  const Rows rows_;
  const LinearTask task_;
  const NewtonHessian hessian_;
  const SymmetricBlas blas_;
  OwnDiagonal<Rows> own_;
  std::unique_ptr<GramHessian<Rows>> gram_;  // one of these two ...
  std::unique_ptr<ProductHessian<Rows>> product_;
  std::unique_ptr<RowHessian<Rows>> by_rows_;  // ... and this, once there is a step that few rows bend
  bool is_by_rows_ = false, avoids_rows_ = false;
  double scale_ = 0;
  double damping_ = 0;  // share of the diagonal that all rows would make, added to it (Levenberg and Marquardt)
};

}  // namespace margrove
