// The best weights and the best pulls of a solve so far, with the values whose difference is the gap: what a solver
// answers with, whenever it is asked.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "linear/svm_task.hpp"

namespace margrove {

class BestPair {
 public:
  double primal() const { return primal_; }
  double dual() const { return dual_; }
  double gap() const { return LinearStanding{primal_, dual_, 0}.gap(); }
  const std::vector<double>& w() const { return w_; }
  double b() const { return b_; }
  const std::vector<double>& beta() const { return beta_; }

  // Whether the gap has become smaller by a hundredth since this was last true.
  bool has_come_closer() {
    const double now = gap();
    if (!(now < 0.99 * least_gap_)) return false;
    least_gap_ = now;
    return true;
  }

 protected:
  BestPair(std::vector<double> w, double b, std::size_t n) : w_(std::move(w)), b_(b), beta_(n) {}

  // Both values, and the pulls; the weights stay as they are.
  void forget_values() {
    primal_ = least_gap_ = std::numeric_limits<double>::infinity();
    dual_ = 0;
    std::fill(beta_.begin(), beta_.end(), 0.0);
  }

  double primal_ = std::numeric_limits<double>::infinity();
  double dual_ = 0;  // no pull at all is worth 0
  double least_gap_ = std::numeric_limits<double>::infinity();
  std::vector<double> w_;
  double b_;
  std::vector<double> beta_;
};

}  // namespace margrove
