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

constexpr double kOnMargin = 1e-9;  // a loss below it may be rounding

// sum |w_j x_ij|, which the rounding of w·x_i is a share of.
template <class T>
double absolute_value(const DenseRows<T>& rows, std::int64_t i, const std::vector<double>& w) {
  double sum = 0;
  for (std::int64_t j = 0; j < rows.d; ++j)
    sum += std::abs(w[static_cast<std::size_t>(j)] * static_cast<double>(rows.row(i)[j]));
  return sum;
}
template <class T>
double absolute_value(const CsrRows<T>& rows, std::int64_t i, const std::vector<double>& w) {
  double sum = 0;
  for (std::int64_t at = rows.start[i]; at < rows.start[i + 1]; ++at)
    sum += std::abs(w[static_cast<std::size_t>(rows.column[at])] * static_cast<double>(rows.data[at]));
  return sum;
}

// delta: (1 + delta) (w, b) have no loss in rows that (w, b) leave on the margin, whoever sums f. 0 where there are no
// such rows.
template <class Rows>
double lift_beyond_margin(const Rows& rows, const LinearTask& task, const std::vector<double>& w, double b,
                          const std::vector<double>& f) {
  constexpr double kRoundingOfAnySum = 8 * std::numeric_limits<double>::epsilon();
  double delta = 0;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double loss = 1 - task.target[i] * f[i];
    if (task.cost[i] == 0 || std::abs(loss) >= kOnMargin) continue;
    const double rounding = kRoundingOfAnySum * (absolute_value(rows, static_cast<std::int64_t>(i), w) + std::abs(b));
    delta = std::max(delta, loss + rounding);
  }
  return delta;
}

}  // namespace margrove
