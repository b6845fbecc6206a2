// The best weights and dual variables of Newton's method so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "linear/best_pair.hpp"

namespace margrove {

class NewtonBest : public BestPair {
 public:
  NewtonBest(std::vector<double> w, double b, std::int64_t n, bool is_squared, double tol)
      : BestPair(std::move(w), b, n), is_squared_(is_squared), tol_(tol) {}

  // Whether beta is another than the one that the weights imply.
  bool has_own_beta() const { return has_own_beta_; }

  void forget() {
    forget_values();
    has_own_beta_ = false;
  }

  // Weights, `longer` times (w, b), and the beta that (w, b) imply: `beta()` gives it if it is taken. For a
  // squared loss w alone proves its gap, so the two must belong together; elsewhere each is kept at its best.
  template <class Beta>
  void take(double primal, double dual, const std::vector<double>& w, double b, double longer, Beta beta) {
    // A beta of its own is not needed where the one that w implies proves as much.
    if (has_own_beta_ && dual >= dual_ - kImpliedShare * tol_ * primal) has_own_beta_ = false;
    const double gap_now = LinearStanding{primal, std::max(0.0, dual), 0}.gap();
    // Where nothing is lost at all the primal value is rounding, and so is every gap: then the weights are the best.
    const bool is_best = (has_own_beta_ ? primal < primal_ : gap_now < least_gap_) || primal < kNothingLeft * primal_;
    if (is_squared_ ? is_best : primal < primal_) keep_weights(primal, w, b, longer);
    const bool follows_w = is_squared_ && !has_own_beta_;  // whether the best beta is that of the best weights
    if (dual <= 0) {
      if (follows_w && is_best) {  // beta = 0 proves more
        dual_ = 0;
        std::fill(beta_.begin(), beta_.end(), 0.0);
      }
    } else if (is_squared_ ? follows_w && is_best : dual > dual_) {
      keep_beta(dual, beta());
    }
  }

  // A beta without weights.
  void take_beta(double dual, std::vector<double> beta) {
    if (!(dual > dual_)) return;
    keep_beta(dual, std::move(beta));
    has_own_beta_ = true;
  }

 private:
  static constexpr double kNothingLeft = 1e-9;   // of a primal value
  static constexpr double kImpliedShare = 1e-2;  // of the gap that is asked for

  bool has_own_beta_ = false;
  const bool is_squared_;
  const double tol_;
};

}  // namespace margrove
