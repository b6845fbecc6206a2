// Newton's method for linear machines. For a squared loss the primal itself is piecewise quadratic; the other losses
// are solved by the method of multipliers, whose every step is such a problem: the pull of a row is then
// lambda + kappa C (z - f), cut to its bounds, lambda the pull of the step before, kappa growing. The Hessian
//
//   diag(1, ..., 1, rho) + kappa sum C_i x_i x_i^T   over the rows whose pull is strictly within its bounds
//
// is either kept as a matrix, to which only rows are added that come or go, and factored; or, where those rows are
// fewer than columns, replaced by a matrix of them (row_hessian.hpp); or it is never formed, and conjugate gradients
// (preconditioned by its diagonal) go through those rows.
//
// Rows are cut into ranges that do not depend on the number of threads, so neither does the answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blas.hpp"
#include "linear/svm_task.hpp"
#include "rows.hpp"

namespace margrove {

enum class LinearEnding { going = 0, converged = 1, most_steps = 2, stalled = 3, nonfinite = 4 };

// A machine that can be asked to go on, whatever it does inside.
class LinearSolver {
 public:
  virtual ~LinearSolver() = default;
  // Goes on until it has ended or the time is over; at most until it has made so many steps.
  virtual void advance(std::chrono::steady_clock::time_point until, int threads, std::int64_t most_steps) = 0;
  virtual LinearEnding ending() const = 0;
  virtual LinearStanding standing() const = 0;
  virtual std::span<const double> w() const = 0;
  virtual double b() const = 0;
  // Whether the pulls that w implies are as good a proof as `beta`.
  virtual bool is_implied() const = 0;
  // The pulls whose dual value `standing` tells: within their bounds, and of sum 0 where the intercept is free.
  virtual std::vector<double> beta() const = 0;
  // Rows whose best pull so far lies strictly within its bounds.
  virtual std::int64_t n_free() const = 0;
  // Begins anew from where it is, with all costs multiplied.
  virtual void rescale(double factor) = 0;
};

// A matrix of the columns; or of the free rows, where they are few enough; or none, for conjugate gradients.
enum class NewtonHessian { columns, rows, none };

// Free rows up to which their matrix is made: 72 MB, and from 36 on for their products. Above, conjugate gradients.
constexpr std::int64_t kMostFreeRows = 3000;

struct NewtonSettings {
  double tol = 1e-4;  // of the relative gap
  NewtonHessian hessian = NewtonHessian::columns;
  bool may_sample = true;  // whether some rows may go ahead of the others
  double violation = 0;    // of the KKT conditions, asked for beside the gap; 0 asks for none
};

std::unique_ptr<LinearSolver> newton_solver(const AnyRows& rows, const LinearTask& task, NewtonSettings settings,
                                            const SymmetricBlas& blas, std::span<const double> w, double b,
                                            std::span<const double> beta);

}  // namespace margrove
