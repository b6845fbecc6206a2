// The best weights and dual variables of a descent so far.
//
// The dual variables come to rest before the weights do, which go on swinging about their best: so the best of the line
// through the best weights so far and those of now is taken, where that may be what is missing to the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "linear/best_pair.hpp"
#include "linear/line_search.hpp"
#include "linear/margin_lift.hpp"
#include "linear/svm_task.hpp"

namespace margrove {

template <class Loss>
class DescentBest : public BestPair {
 public:
  DescentBest(std::int64_t n, std::int64_t d, const Loss& loss, double tol)
      : BestPair(std::vector<double>(d), 0.0, n), loss_(loss), tol_(tol) {}

  void forget() {
    forget_values();
    b_ = 0;
    std::fill(w_.begin(), w_.end(), 0.0);
    f_.clear();
  }

  // w = 0 and beta = 0, which need no look at the rows.
  void take_nothing(const LinearTask& task) {
    primal_ = 0;
    for (std::size_t i = 0; i < beta_.size(); ++i)
      primal_ += loss_.value(task.target[i], 0.0, task.factor * task.cost[i]);
  }

  // Weights with their f, and beta with its dual value. False where a value is not finite.
  bool take(const LinearTask& task, std::span<const double> w, double b, std::span<const double> f, double dual,
            std::span<const double> beta) {
    const double primal = take_weights(task, w, b, f, std::max(dual, dual_));
    if (!std::isfinite(primal) || !std::isfinite(dual)) return false;
    if (dual > dual_) keep_beta(dual, {beta.begin(), beta.end()});
    return true;
  }

  // After `take`: weights beyond the margin, where the rounding of f could be seen in the gap (margin_lift.hpp).
  // Without them a gap of 0 may be luck, which whoever sums f in another order need not have.
  template <class Rows>
  void lengthen(const Rows& rows, const LinearTask& task) {
    const double whole_cost = std::accumulate(task.cost.begin(), task.cost.end(), 0.0);
    const double longer = lengthened(rows, task, loss_, whole_cost, w_, b_, f_, tol_, primal_);
    if (longer == 1) return;
    b_ *= longer;
    for (double& weight : w_) weight *= longer;
    for (double& value : f_) value *= longer;
  }

 private:
  // Along the line of weights, the best so far at 0 and the present ones at 1. Chosen, not measured: as far beyond.
  static constexpr double kFarthest = 2;
  // They narrow the line to 2 * 0.618^6 = 0.11. Chosen, not measured: each is a sum over all rows.
  static constexpr int kLineTrials = 6;
  // Times the limit: better weights alone rarely close a larger gap. Chosen, not measured.
  static constexpr double kNearlyThere = 5;

  // The primal value of the best on the line; infinite or NaN where that overflows.
  double take_weights(const LinearTask& task, std::span<const double> w, double b, std::span<const double> f,
                      double dual) {
    if (f_.empty()) {
      f_.assign(f.size(), 0.0);  // of w = 0
      primal_ = std::numeric_limits<double>::infinity();
    }
    double along = 0, across = 0, before = 0;  // best·step, step·step, best·best
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double step = w[j] - w_[j];
      along += w_[j] * step;
      across += step * step;
      before += w_[j] * w_[j];
    }
    const double step_b = b - b_;
    const auto value = [&](double t) {
      const double own = b_ + t * step_b;
      double sum = 0.5 * (before + t * (2 * along + t * across)) + 0.5 * task.rho * own * own;
      for (std::size_t i = 0; i < f.size(); ++i)
        sum += loss_.value(task.target[i], f_[i] + t * (f[i] - f_[i]), task.factor * task.cost[i]);
      return sum;
    };
    double t = 1, found = value(1);
    const double gap = LinearStanding{found, dual, 0}.gap();
    if (gap > tol_ && gap <= kNearlyThere * tol_) {
      const Least least = golden_section(0, kFarthest, kLineTrials, value);
      if (least.value < found) {
        t = least.t;
        found = least.value;
      }
    }
    if (found < primal_) {
      if (t == 1) {  // as they are: the rounding of what was before is not kept
        keep_weights(found, w, b);
        f_.assign(f.begin(), f.end());
      } else {
        primal_ = found;
        for (std::size_t j = 0; j < w.size(); ++j) w_[j] += t * (w[j] - w_[j]);
        b_ += t * step_b;
        for (std::size_t i = 0; i < f.size(); ++i) f_[i] += t * (f[i] - f_[i]);
      }
    }
    return found;
  }

  Loss loss_;
  double tol_;
  std::vector<double> f_;  // of w and b; empty while they are 0 and nothing was taken
};

}  // namespace margrove
