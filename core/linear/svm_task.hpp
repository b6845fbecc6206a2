// What a linear machine asks (src/margrove/linear_svm/problem.py has the formulas), row by row:
//
//   min  1/2 |w|^2 + 1/2 rho b^2 + sum C_i loss(z_i, f_i),   f_i = w·x_i + b
//
// w = sum beta_i x_i. For a given f the dual variable beta_i that is best for the (proximal) dual is
//
//   tau = lambda_i + sigma_i (z_i - f_i),  shrunk towards 0 by sigma_i epsilon,  cut to its bounds [low_i, high_i]
//
// For a squared loss lambda = 0 and sigma = 2C, and there is no bound where C would be one: then it is that of the
// problem itself. Otherwise sigma = kappa C and lambda is beta of the step before: the method of multipliers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>

#include "dispatch.hpp"

namespace margrove {

struct LinearTask {
  std::span<const double> target;  // (n): +1 or -1, or the numbers to predict
  std::span<const double> cost;    // (n): C_i over `factor`; 0 leaves a row out
  bool is_of_signs = true, is_squared = true, has_intercept = true;
  double epsilon = 0;
  double rho = 1;     // what the intercept costs; 0 leaves it free
  double factor = 1;  // of all costs
};

template <bool is_of_signs, bool is_squared>
struct LinearLoss {
  static constexpr bool kIsOfSigns = is_of_signs, kIsSquared = is_squared;
  double epsilon;

  MARGROVE_INLINE double low(double z, double C) const {
    if constexpr (is_of_signs) return z > 0 ? 0.0 : -bound(C);
    return -bound(C);
  }
  MARGROVE_INLINE double high(double z, double C) const {
    if constexpr (is_of_signs) return z > 0 ? bound(C) : 0.0;
    return bound(C);
  }

  // C loss(z, f).
  MARGROVE_INLINE double value(double z, double f, double C) const {
    const double excess = std::max(0.0, is_of_signs ? 1.0 - z * f : std::abs(z - f) - epsilon);
    return is_squared ? C * excess * excess : C * excess;
  }

  // What beta brings to the dual value, but for the square of a squared loss.
  MARGROVE_INLINE double linear_part(double z, double beta) const {
    return is_of_signs ? z * beta : z * beta - epsilon * std::abs(beta);
  }

  // What beta brings to the dual value.
  MARGROVE_INLINE double brought(double z, double beta, double C) const {
    double gain = linear_part(z, beta);
    if constexpr (is_squared) gain -= C > 0 ? beta * beta / (4 * C) : 0.0;
    return gain;
  }

  struct DualVariable {
    double beta;
    bool is_free;  // strictly within its bounds: it follows f, at the slope -sigma
  };
  MARGROVE_INLINE DualVariable dual_variable(double z, double f, double C, double lambda, double sigma) const {
    double tau = lambda + sigma * (z - f);
    if constexpr (!is_of_signs) tau -= std::clamp(tau, -sigma * epsilon, sigma * epsilon);
    const double low_end = low(z, C), high_end = high(z, C);
    const bool is_free = (tau > low_end) & (tau < high_end) & (is_of_signs | (tau != 0.0));
    return {std::min(std::max(tau, low_end), high_end), is_free};
  }

 private:
  MARGROVE_INLINE static double bound(double C) {
    if constexpr (is_squared) return C > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    return C;
  }
};

// body(loss) with the loss of a task as a type.
template <class Body>
auto with_loss(const LinearTask& task, Body body) {
  if (task.is_of_signs) return task.is_squared ? body(LinearLoss<true, true>{0.0}) : body(LinearLoss<true, false>{0.0});
  return task.is_squared ? body(LinearLoss<false, true>{task.epsilon}) : body(LinearLoss<false, false>{task.epsilon});
}

// Takes from the heavier side of beta what is too much for a sum of 0: first from variables within their bounds, which
// add least to the dual. take(i, amount), to be subtracted.
template <class Loss, class Take>
void take_excess(const Loss& loss, const LinearTask& task, std::span<const double> beta, Take take) {
  double excess = std::accumulate(beta.begin(), beta.end(), 0.0);
  const double side = excess > 0 ? 1 : -1;
  excess = std::abs(excess);
  for (const bool from_bounds : {false, true})
    for (std::size_t i = 0; i < beta.size() && excess > 0; ++i) {
      if (side * beta[i] <= 0) continue;
      const double z = task.target[i], C = task.factor * task.cost[i];
      if ((beta[i] <= loss.low(z, C) || beta[i] >= loss.high(z, C)) != from_bounds) continue;
      const double taken = std::min(excess, side * beta[i]);
      take(i, side * taken);
      excess -= taken;
    }
}

// The number of dual variables strictly within their bounds, and not on the kink of an epsilon-insensitive loss.
template <class Loss>
std::int64_t free_among(const Loss& loss, const LinearTask& task, std::span<const double> beta) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < beta.size(); ++i) {
    const double z = task.target[i], C = task.factor * task.cost[i];
    count += beta[i] > loss.low(z, C) && beta[i] < loss.high(z, C) && (Loss::kIsOfSigns || beta[i] != 0);
  }
  return count;
}

// Prepares beta for costs multiplied by `factor`: a variable at its bound moves with it, the others stay. `task` has
// the costs of before. (A squared loss has no such bound.)
inline void move_with_bounds(const LinearTask& task, double factor, std::span<double> beta) {
  for (std::size_t i = 0; i < beta.size(); ++i)
    if (std::abs(beta[i]) >= task.factor * task.cost[i] * (1 - 1e-12)) beta[i] *= factor;
}

// How a machine stands.
struct LinearStanding {
  double primal = 0, dual = 0;
  std::int64_t steps = 0;
  // (P - D) / P; 0 where P is.
  double gap() const { return primal > 0 ? std::max(0.0, (primal - dual) / primal) : 0.0; }
};

}  // namespace margrove
