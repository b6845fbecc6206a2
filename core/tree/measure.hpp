// Impurity as *purity*: U(S) such that  w(S) imp(S) = const − U(S), so that a test's gain is
//   gain = (Σ_b U(S_b) − U(S)) / w(S)
// and the best test is the one of the largest Σ_b U(S_b).
//   gini              Σ_k c_k² / w                     entropy   Σ_k c_k log2 c_k − w log2 w      error   max_k c_k
//   squared_error     s² / w                           gaussian_entropy   −½ w ln max(σ², floor)
//   poisson           s ln(s / w)
// with class weights c_k, or for numbers s = Σ w (y − shift), q = Σ w (y − shift)²; shift is 0 for poisson.
// absolute_error has no such sums; it is scanned on its own (absolute.cpp).
// With several targets, U is the mean of those of the targets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dispatch.hpp"

namespace margrove::tree {

enum class Criterion { gini, entropy, error, squared_error, gaussian_entropy, absolute_error, poisson };

inline bool is_of_classes(Criterion c) { return c <= Criterion::error; }

inline double x_log_x(double x) { return x > 0 ? x * std::log2(x) : 0.0; }

MARGROVE_INLINE double class_purity(Criterion criterion, const double* count, int n_classes, double weight) {
  if (weight <= 0) return 0;
  double u = 0;
  switch (criterion) {
    case Criterion::gini:
      for (int k = 0; k < n_classes; ++k) u += count[k] * count[k];
      return u / weight;
    case Criterion::entropy:
      for (int k = 0; k < n_classes; ++k) u += x_log_x(count[k]);
      return u - x_log_x(weight);
    default:
      for (int k = 0; k < n_classes; ++k) u = std::max(u, count[k]);
      return u;
  }
}

MARGROVE_INLINE double number_purity(Criterion criterion, double s, double q, double weight, double floor) {
  if (weight <= 0) return 0;
  if (criterion == Criterion::poisson) return s > 0 ? s * std::log(s / weight) : 0.0;
  const double square = s * (s / weight);  // s² may be beyond what a double holds
  if (criterion == Criterion::squared_error) return square;
  const double variance = std::max((q - square) / weight, floor);
  return -0.5 * weight * std::log(variance);
}

struct Measure {
  Criterion criterion;
  int width;                    // sums of a set of rows: K weights, or {s, q}; of several targets, one behind the other
  double floor;                 // least variance of gaussian_entropy
  std::vector<int> start = {};  // of several targets: where the sums of each begin, and the width at the end

  bool has_several() const { return !start.empty(); }
  std::size_t n_targets() const { return has_several() ? start.size() - 1 : 1; }

  double purity(const double* sum, double weight) const {
    if (!has_several()) return purity_of_one(sum, width, weight);
    double total = 0;
    for (std::size_t t = 0; t < n_targets(); ++t)
      total += purity_of_one(sum + start[t], start[t + 1] - start[t], weight);
    return total / static_cast<double>(n_targets());
  }

  // Whether a branch with these sums may be: under poisson a mean of zero predicts that nothing ever happens.
  bool is_possible(const double* sum, const double* all) const {
    if (criterion != Criterion::poisson) return true;
    for (std::size_t t = 0; t < n_targets(); ++t)
      if (!(sum[2 * t] > kLeastSum * all[2 * t])) return false;
    return true;
  }

  static constexpr double kLeastSum = 1e-12;  // of the node's sum: less is rounding

  double purity_of_one(const double* sum, int n_classes, double weight) const {
    return is_of_classes(criterion) ? class_purity(criterion, sum, n_classes, weight)
                                    : number_purity(criterion, sum[0], sum[1], weight, floor);
  }
};

}  // namespace margrove::tree
