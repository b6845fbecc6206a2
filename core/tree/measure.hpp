// Impurity as *purity*: U(S) such that  w(S) imp(S) = const − U(S), so that a test's gain is
//   gain = (Σ_b U(S_b) − U(S)) / w(S)
// and the best test is the one of the largest Σ_b U(S_b).
//   gini              Σ_k c_k² / w                     entropy   Σ_k c_k log2 c_k − w log2 w      error   max_k c_k
//   squared_error     s² / w                           gaussian_entropy   −½ w ln max(σ², floor)
// with class weights c_k, or for numbers s = Σ w (y − shift), q = Σ w (y − shift)².
// absolute_error has no such sums; it is scanned on its own (absolute.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "dispatch.hpp"

namespace margrove::tree {

enum class Criterion { gini, entropy, error, squared_error, gaussian_entropy, absolute_error };

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
  const double square = s * (s / weight);  // s² may be beyond what a double holds
  if (criterion == Criterion::squared_error) return square;
  const double variance = std::max((q - square) / weight, floor);
  return -0.5 * weight * std::log(variance);
}

struct Measure {
  Criterion criterion;
  int width;     // sums of a set of rows: K weights, or {s, q}
  double floor;  // least variance of gaussian_entropy

  double purity(const double* sum, double weight) const {
    return is_of_classes(criterion) ? class_purity(criterion, sum, width, weight)
                                    : number_purity(criterion, sum[0], sum[1], weight, floor);
  }
};

}  // namespace margrove::tree
