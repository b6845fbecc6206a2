// Dual coordinate descent for linear machines: the dual variable of one row after the other, in random order, is set to
// its best value while the others stay. For rows of very many columns, where a Hessian would be too large and few
// passes are enough.
//
// A free intercept requires dual variables that sum to 0, which no change of one keeps: the sum is penalised instead,
// around a centre that follows the intercept from pass to pass (the method of multipliers again).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "linear/svm_solver.hpp"
#include "rows.hpp"

namespace margrove {

struct DescentSettings {
  double tol = 1e-4;  // of the relative gap
  std::uint64_t seed = 0;
};

std::unique_ptr<LinearSolver> descent_solver(const AnyRows& rows, const LinearTask& task, DescentSettings settings,
                                             std::span<const double> beta);

}  // namespace margrove
