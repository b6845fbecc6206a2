// Where C is huge, the losses of rows that lie on their margin are the rounding of f, C times over: enough to hide the
// gap. Weights longer by as much as that rounding lose nothing there and cost hardly more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "linear/svm_task.hpp"
#include "rows.hpp"

namespace margrove {

// Of 1 - z f: a smaller loss may be rounding. Chosen, not measured: far above eps, far below a loss that counts.
constexpr double kOnMargin = 1e-9;

// sum |w_j x_ij|, which the rounding of w·x_i is a share of.
template <class T>
double absolute_value(const DenseRows<T>& rows, std::int64_t i, const std::vector<double>& w) {
  double sum = 0;
  for (std::int64_t j = 0; j < rows.d; ++j) sum += std::abs(w[j] * static_cast<double>(rows.row(i)[j]));
  return sum;
}
template <class T>
double absolute_value(const CsrRows<T>& rows, std::int64_t i, const std::vector<double>& w) {
  double sum = 0;
  for (std::int64_t at = rows.start[i]; at < rows.start[i + 1]; ++at)
    sum += std::abs(w[rows.column[at]] * static_cast<double>(rows.data[at]));
  return sum;
}

// delta: (1 + delta) (w, b) have no loss in rows that (w, b) leave on the margin, whoever sums f. 0 where there are no
// such rows.
template <class Rows>
double lift_beyond_margin(const Rows& rows, const LinearTask& task, const std::vector<double>& w, double b,
                          const std::vector<double>& f) {
  // Of sum |w_j x_ij|. Chosen, not measured: the errors of additions partly cancel, whatever their order.
  constexpr double kRoundingOfAnySum = 8 * std::numeric_limits<double>::epsilon();
  double delta = 0;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double loss = 1 - task.target[i] * f[i];
    if (task.cost[i] == 0 || std::abs(loss) >= kOnMargin) continue;
    const double rounding = kRoundingOfAnySum * (absolute_value(rows, i, w) + std::abs(b));
    delta = std::max(delta, loss + rounding);
  }
  return delta;
}

// How many times (w, b) the weights beyond the margin are, with their primal value in the place of `primal`; 1 where
// the rounding of f could not be seen in a gap of `tol`, or where they cost more than that. They are preferred to
// weights that seem to be as good: a loss of 0 there is luck, which whoever sums f in another order need not have.
template <class Rows, class Loss>
double lengthened(const Rows& rows, const LinearTask& task, const Loss& loss, double whole_cost,
                  const std::vector<double>& w, double b, const std::vector<double>& f, double tol, double& primal) {
  // Of the gap asked for: what is smaller does not decide whether a solve has converged.
  constexpr double kUnseen = 1e-2;
  if constexpr (!Loss::kIsSquared && Loss::kIsOfSigns) {
    if (kOnMargin * task.factor * whole_cost <= kUnseen * tol * primal) return 1;
    const double delta = lift_beyond_margin(rows, task, w, b, f);
    if (!(delta > 0)) return 1;
    const double longer = 1 + delta;
    double value = 0.5 * task.rho * b * b;
    for (const double weight : w) value += 0.5 * weight * weight;
    value *= longer * longer;
    for (std::size_t i = 0; i < f.size(); ++i)
      value += loss.value(task.target[i], longer * f[i], task.factor * task.cost[i]);
    if (!(value <= (1 + kUnseen * tol) * primal)) return 1;
    primal = value;
    return longer;
  }
  return 1;
}

}  // namespace margrove
