// The best weights and the best dual variables of a solve so far, with the values whose difference is the gap: what a
// solver answers with, whenever it is asked.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "linear/svm_task.hpp"

namespace margrove {

class BestPair {
 public:
  BestPair(std::vector<double> w, double b, std::int64_t n) : w_(std::move(w)), b_(b), beta_(n) {}

  double primal() const { return primal_; }
  double dual() const { return dual_; }
  double gap() const { return LinearStanding{primal_, dual_, 0}.gap(); }
  const std::vector<double>& w() const { return w_; }
  double b() const { return b_; }
  const std::vector<double>& beta() const { return beta_; }
  std::vector<double>& beta() { return beta_; }

  // Whether the gap has become smaller by a hundredth since this was last true.
  bool has_come_closer() {
    const double now = gap();
    if (!(now < kCloser * least_gap_)) return false;
    least_gap_ = now;
    return true;
  }

  // `longer` times (w, b), whose primal value this is.
  void keep_weights(double primal, std::span<const double> w, double b, double longer = 1) {
    primal_ = primal;
    b_ = longer * b;
    std::transform(w.begin(), w.end(), w_.begin(), [longer](double weight) { return longer * weight; });
  }
  void keep_beta(double dual, std::vector<double> beta) {
    dual_ = dual;
    beta_ = std::move(beta);
  }
  // The same weights, whose primal value is another.
  void set_primal(double primal) { primal_ = primal; }

  // Both values, and beta; the weights stay as they are.
  void forget_values() {
    primal_ = least_gap_ = std::numeric_limits<double>::infinity();
    dual_ = 0;
    std::fill(beta_.begin(), beta_.end(), 0.0);
  }

 protected:
  static constexpr double kCloser = 0.99;  // of the least gap so far: less is no progress. Chosen, not measured

  double primal_ = std::numeric_limits<double>::infinity();
  double dual_ = 0;  // that of beta = 0
  double least_gap_ = std::numeric_limits<double>::infinity();
  std::vector<double> w_;
  double b_;
  std::vector<double> beta_;
};

}  // namespace margrove
