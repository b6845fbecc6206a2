// Newton's method for linear SVMs (svm_task.hpp states the losses),
//
//   min over w, b of  P(w, b) = 1/2 |w|^2 + 1/2 rho b^2 + sum C_i loss(z_i, f_i),   f_i = w·x_i + b.
//
// For a squared loss P is piecewise quadratic. The other losses are solved by the method of multipliers, each round of
// which is a piecewise quadratic problem too: the dual variable of row i is
//
//   beta_i = lambda_i + kappa C_i (z_i - f_i), cut to its bounds,    lambda the beta of the round before, kappa growing
//
// (lambda = 0 and kappa = 2 for a squared loss). With v = sum beta_i x_i and u = sum beta_i one iteration is
//
//   1. beta at f; the primal value P(w, b) and the dual value of beta, made feasible; the best of each are kept
//   2. where w is as good as this round needs: lambda <- beta, kappa grows, and again from 1
//   3. p = H^-1 (v - w, u - rho b), where over the free rows, whose beta lies strictly within its bounds,
//      H = diag(1, ..., 1, rho) + kappa sum C_i x_i x_i^T                           (newton_direction.hpp)
//   4. (w, b) <- (w, b) + t p with t near the minimum along p (line_search.hpp); f is moved along
//
// It ends where the gap between the best primal and the best dual value is at most tol of the primal value (and the KKT
// conditions are violated by no more than asked for), where no step leads further, or after so many steps.
//
// Rows are cut into ranges that do not depend on the number of threads, so neither does the result.
//
// Keerthi and DeCoste, A modified finite Newton method for fast solution of large scale linear SVMs, JMLR 6, 2005; for
// the multipliers Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm, 1976.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "blas.hpp"
#include "linear/newton_direction.hpp"
#include "linear/svm_solver.hpp"
#include "linear/svm_task.hpp"
#include "rows.hpp"

namespace margrove {

struct NewtonSettings {
  double tol = 1e-4;  // of the relative gap
  NewtonHessian hessian = NewtonHessian::columns;
  bool may_sample = true;  // whether a sample of the rows may be solved first
  double violation = 0;    // of the KKT conditions, asked for beside the gap; 0 asks for none
};

std::unique_ptr<LinearSolver> newton_solver(const AnyRows& rows, const LinearTask& task, NewtonSettings settings,
                                            const SymmetricBlas& blas, std::span<const double> w, double b,
                                            std::span<const double> beta);

}  // namespace margrove
