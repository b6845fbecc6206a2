// A linear SVM with the penalty l1 (linear_svm/problem.py has the formulas):
//
//   min  ||w||_1 + |b| / s + sum_i C_i loss(z_i, w·x_i + b),
//
// the intercept being the weight of a constant column; s = infinity leaves it free. All losses are one:
//
//   loss_i(f) = max over lo_i <= beta <= hi_i of  beta (z_i - f) - eps |beta| - q beta^2 / (2 C_i),
//
// q = 1/2 and no bound but 0 for the squared losses, q = 0 and the bounds of the loss for the others. These, and
// squared ones where C is so large that every step would be short, are smoothed: a further term  - (beta - anchor_i)^2
// / (2 h C_i) is taken away again by rounds of  anchor <- beta, h <- larger (augmented Lagrangian: Rockafellar 1976).
// In the program h is the sharpness, 1/h the softness and 1/(q + 1/h) the steepness. So
//
//   beta_i = clip(shrink(base_i + sigma_i (z_i - f_i), sigma_i eps), lo_i, hi_i),   sigma_i = C_i / (q + 1/h),
//
// is a piecewise linear function of f
// and the loss piecewise quadratic. Each step of Newton's method minimises the quadratic piece around w plus the
// penalty (quadratic_l1.hpp) over a working set of columns, and looks along the way to that minimum for the least true
// value (Lee, Sun and Saunders 2014; Yuan, Ho and Lin 2012). Steps do not depend on the scale of the columns. It ends
// when the gap between the best w and the best beta seen, scaled to be feasible, is at most tol of the primal value.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "linear/best_pair.hpp"
#include "linear/design.hpp"
#include "resumable.hpp"

namespace margrove {

enum class L1Loss : int { hinge = 0, squared_hinge = 1, epsilon_insensitive = 2, squared_epsilon_insensitive = 3 };
enum class L1Ending : int { none = 0, converged = 1, max_steps = 2, stalled = 3, nonfinite = 4 };

struct L1Settings {
  L1Loss loss = L1Loss::squared_hinge;
  bool is_free = false;  // the constant column is not penalised
  double epsilon = 0;    // no part of the hinges
  double tol = 1e-4;
  std::int64_t max_steps = 1000;
};

struct L1Start {
  std::span<const double> target, cost;  // (n)
  std::span<const double> w;             // (columns of the design): the constant column's weight is the last
  std::span<const double> beta;          // (n) or empty
};

class L1Machine {
 public:
  // Whatever the spans look at must outlive this object.
  L1Machine(const Design& design, const L1Settings& settings, const L1Start& start);

  // Goes on until the end or `until`; true at the end.
  bool run(std::chrono::steady_clock::time_point until);

  // Computes the primal value anew from the best w. Nothing can be run after it.
  void finish();

  L1Ending ending() const { return ending_; }
  std::int64_t steps() const { return steps_; }
  double primal() const { return best_.primal(); }
  double dual() const { return best_.dual(); }
  const std::vector<double>& w() const { return best_.w(); }        // (columns)
  const std::vector<double>& beta() const { return best_.beta(); }  // (n), feasible

 private:
  Resumable solve();
  Resumable compute_values();
  Resumable compute_correlation();
  Resumable build_gram();
  Resumable solve_gram_model();
  Resumable solve_column_model();

  void weigh();
  void judge();
  void note_progress();
  double gap() const { return best_.primal() - best_.dual(); }
  double mean_excess() const;
  double needed_sharpness() const;
  void smooth(double sharpness);
  void tighten();
  void choose_columns();
  void line_search();
  double slope_at(double t) const;
  // What is added to the curvature of a column, so that a step does not leave the place where the model is true.
  double ridge_of(std::int32_t column) const { return ridge_ * steepness() * column_size_[column]; }
  // C / sigma, by its two terms, and sigma / C.
  double square_share() const { return is_squared_ ? 0.5 : 0.0; }
  double softness() const { return is_smoothed_ ? 1 / sharpness_ : 0.0; }
  double steepness() const { return 1 / (square_share() + softness()); }
  bool is_penalised(std::int64_t column) const { return !settings_.is_free || column != design_.points_columns(); }

  const Design& design_;
  const L1Settings settings_;
  const double epsilon_;  // 0 for losses of signs
  const std::span<const double> target_, cost_;
  const bool is_squared_, is_of_signs_;
  const std::int64_t n_, columns_;
  SliceClock clock_;
  Resumable work_;

  std::vector<double> w_, values_;                          // (columns), (n): f at w
  bool is_fresh_ = false;                                   // values_ are computed from w_, not updated
  std::vector<double> anchor_, base_, sigma_, low_, high_;  // (n); base: beta where f = z
  std::vector<double> beta_, curvature_;                    // (n) at f
  bool is_smoothed_ = false;
  double sharpness_ = 1, most_sharpness_ = 1;
  std::int64_t short_steps_ = 0;
  double ridge_ = 0;
  double smoothed_primal_ = 0, true_primal_ = 0, inner_gap_ = 0;
  std::vector<double> correlation_;                        // (columns) v = X' beta
  std::vector<double> correlation_up_, correlation_down_;  // and for a free intercept that of the parts > 0 and < 0
  std::vector<double> positive_, negative_;                // (n) those parts
  std::vector<double> column_size_;                        // (columns) sum C_i x_ij^2

  // The working set and its products.
  std::vector<std::int32_t> chosen_;
  std::vector<char> is_chosen_;  // (columns)
  ChosenRows rows_;
  std::vector<double> gram_, gram_weight_;  // (chosen, chosen), (n) the weights it is made with
  bool is_gram_of_chosen_ = false;
  double gram_mass_ = 0;
  std::vector<double> chosen_penalty_;

  // The step: 0 outside of the chosen columns; and what it does to f.
  std::vector<double> step_, value_step_;
  std::vector<std::int32_t> moved_;

  BestPair best_;
  double last_primal_ = std::numeric_limits<double>::infinity(), last_gap_ = last_primal_, least_gap_ = last_primal_;
  std::int64_t steps_ = 0, failures_ = 0, barren_ = 0;
  L1Ending ending_ = L1Ending::none;
};

// The machines of one problem, each worked on by one thread at a time: threads change no result.
class L1Svm {
 public:
  L1Svm(std::unique_ptr<Design> design, L1Settings settings) : design_(std::move(design)), settings_(settings) {}
  void add(const L1Start& start) { machines_.push_back(std::make_unique<L1Machine>(*design_, settings_, start)); }
  // True when every machine has come to its end.
  bool run(double seconds, int threads);
  const Design& design() const { return *design_; }
  const std::vector<std::unique_ptr<L1Machine>>& machines() const { return machines_; }

 private:
  std::unique_ptr<Design> design_;
  L1Settings settings_;
  std::vector<std::unique_ptr<L1Machine>> machines_;
};

}  // namespace margrove
