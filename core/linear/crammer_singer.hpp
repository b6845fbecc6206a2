// All classes told apart by one machine (Crammer and Singer 2001; linear_svm/problem.py has the formulas). The dual,
//
//   max  sum_i beta_{i z_i} - 1/2 sum_k ||w_k||^2,   w_k = sum_i beta_ik x_i,
//   beta_ik <= C_i if k = z_i else <= 0,   sum_k beta_ik = 0,
//
// is maximised row by row: the K variables of a row are set to their exact best, a projection onto a simplex (Keerthi
// et al. 2008; Michelot 1986). The intercept is a constant column of x. Rows that no longer move are left out of the
// passes until the next look at the gap, P - D, which goes over all rows. Ends when the gap is at most tol of P.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "linear/order.hpp"
#include "resumable.hpp"
#include "rows.hpp"

namespace margrove {

struct CrammerSingerSettings {
  std::int64_t classes = 2;
  double constant = 1;  // the constant column's value; 0 for none
  double tol = 1e-4;
  std::int64_t max_passes = 1000;
  std::uint64_t seed = 0;
};

enum class PassesEnding : int { none = 0, converged = 1, max_passes = 2, stalled = 3, nonfinite = 4 };

class CrammerSinger {
 public:
  // codes and cost: (n), and must outlive this object. beta: (n, K), feasible, or empty.
  CrammerSinger(AnyRows rows, std::span<const std::int32_t> codes, std::span<const double> cost,
                std::span<const double> beta, const CrammerSingerSettings& settings);

  // Goes on until the end or for `seconds`; true at the end. Threads share the looks at the gap and change no result.
  bool run(double seconds, int threads);

  // Computes w anew from beta, and both values. Nothing can be run after it.
  void finish(int threads);

  PassesEnding ending() const { return ending_; }
  std::int64_t passes() const { return passes_; }  // visits, in passes over all rows
  double primal() const { return primal_; }
  double dual() const { return dual_; }
  const std::vector<double>& beta() const { return beta_; }  // (n, K)
  double weight(std::int64_t k, std::int64_t column) const;  // of class k; the constant column is d

 private:
  template <class Rows>
  Resumable solve(const Rows& rows);
  template <class Rows>
  void compute_weights(const Rows& rows);
  template <class Rows>
  double look(const Rows& rows, std::int64_t piece);
  template <class Rows>
  bool visit(const Rows& rows, std::int64_t i);
  void settle_gap(const std::vector<double>& losses);

  AnyRows rows_;
  std::span<const std::int32_t> codes_;
  std::span<const double> cost_;
  CrammerSingerSettings settings_;
  std::int64_t n_ = 0, d_ = 0;
  std::int64_t stride_;                 // K, filled up to whole vectors
  std::vector<double> w_;               // (d + 1, stride): a column's weights side by side
  std::vector<double> beta_;            // (n, K)
  std::vector<double> size_;            // (n) ||x_i||^2 with the constant
  std::vector<std::uint8_t> idle_;      // (n) visits without a change, up to kIdle
  std::vector<std::uint8_t> is_awake_;  // (n) not at its best when last looked at
  std::vector<std::uint32_t> active_;
  std::vector<double> decision_, others_, step_;  // (stride) of the row under way
  double pass_gain_ = 0;                          // of the dual value, in the pass under way
  double primal_ = std::numeric_limits<double>::infinity(), dual_ = 0;
  std::int64_t passes_ = 0, looks_without_gain_ = 0;
  double last_dual_ = -1, least_gap_ = std::numeric_limits<double>::infinity();
  PassesEnding ending_ = PassesEnding::none;
  SplitMix64 random_;
  SliceClock clock_;
  int threads_ = 1;
  Resumable work_;
};

}  // namespace margrove
