// Block decomposition for the dual of every support vector machine.
//
//   min  ½ αᵀQα + pᵀα   subject to  yᵀα = δ,  0 <= α_t <= C_t,      Q_st = y_s y_t K(x_s, x_t),
//
// over variables t = 1 .. m, each standing for the point point[t]. Given: the kernel matrix, y, p, C and a feasible
// start α. Returned: α, and v_t = -y_t (Qα + p)_t, by which everything is decided: with
//
//   I_up  = {t: y_t α_t can grow},   I_low = {t: y_t α_t can fall},
//
// α is optimal exactly if  violation = max_{I_up} v - min_{I_low} v <= 0, and the solve ends when it is <= tol. With
// `by_sign` pairs are chosen within one sign of y (so Σα of each sign stays as it starts) and the violation is the
// larger of the two. With `hulls` the violation is measured relative to the objective ½‖w‖², and the solve also ends
// when that is nothing.
//
// Each round takes the worst violators of both sides as a working set (half of the last one is kept), solves the
// problem over the set by SMO with second-order choice of pairs, computes the kernel rows of the members that moved, if
// they are not kept from before, and moves v. Kernel values are T, v is double.
//
// Reference: Platt 1998; Joachims 1998; Fan, Chen and Lin 2005 (second-order choice); Zanni et al. 2006 (large blocks).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernel/gram.hpp"
#include "svm/dual.hpp"
#include "svm/row_store.hpp"

namespace margrove {

struct DualSettings {
  double tol = 1e-3;
  double hulls_meet = 1e-11;  // ‖w‖² of two convex combinations, relative to the largest K(x, x)
  std::int64_t working_set = 1024;
  int threads = 1;
  bool shrinking = true;

  // ½‖w‖² that counts as nothing: the hulls meet. `largest` is the largest K(x, x).
  double least_objective(double largest) const { return hulls_meet * largest / 2; }
};

// cornered: no step brings the violation any further down.
enum class BlockEnding : int { running, converged, cornered };

template <class T>
class BlockSmo {
 public:
  using Clock = std::chrono::steady_clock;

  // `v` belongs to the start; variables that are not here may stand behind it.
  BlockSmo(std::shared_ptr<const Gram<T>> gram, std::shared_ptr<RowStore<T>> rows, Dual dual, std::vector<double> v,
           DualSettings settings);

  // Goes on until it ends, `max_steps` pair steps have been made in all, or the time is over.
  BlockEnding run(std::int64_t max_steps, Clock::time_point until);

  // The same problem with other bounds, from this α and its v, to another tolerance; steps are counted anew.
  void resume(std::vector<double> upper, std::vector<double> alpha, std::vector<double> v, double tol);

  // At any time a feasible α and its v.
  std::vector<double> alpha() const;
  const std::vector<double>& v() const { return v_; }
  double violation() const;  // relative to the objective for `hulls`
  // How far β of each point has moved in all, back and forth: what rounding of kernel values has entered v by.
  const std::vector<double>& moved() const { return moved_; }
  std::int64_t steps() const { return steps_; }
  std::int64_t rounds() const { return rounds_; }
  std::int64_t rows_computed() const { return rows_computed_; }

 private:
  // What is left to do of the present round: rows whose change v must still follow.
  struct Pending {
    std::vector<std::int64_t> points;
    std::vector<double> change;
    std::vector<double> sums;  // (n)
    std::size_t done = 0;
    bool is_open = false;
  };

  bool is_up(std::size_t t) const { return flags_[t] & 1; }
  bool is_low(std::size_t t) const { return flags_[t] & 2; }
  void mark(std::size_t t);
  double objective() const;
  double unit() const;  // what the violation is measured in
  Extremes extremes() const;
  void open_pending();
  bool advance_pending(Clock::time_point until);
  void choose_working_set(const Extremes& extremes);
  void make_rows(const std::vector<std::int64_t>& places);
  void read_block(const std::vector<std::int64_t>& fresh);
  std::int64_t solve_block(std::int64_t most_steps, double tolerance);
  bool goes_nowhere();

  std::shared_ptr<const Gram<T>> gram_;
  std::shared_ptr<RowStore<T>> rows_;
  Dual dual_;
  DualSettings settings_;
  std::int64_t n_, m_;
  std::int64_t size_;  // of the working set
  std::int64_t groups_;
  double largest_diagonal_ = 0;
  std::vector<double> v_;
  std::vector<double> moved_;        // (n)
  std::vector<std::uint8_t> flags_;  // 1: in I_up, 2: in I_low

  std::int64_t width_;                 // size, padded to whole vectors
  std::vector<std::int64_t> member_;   // (width) the variable in each place, -1 for none
  std::vector<std::int64_t> entered_;  // (width) the round in which it came
  std::vector<T> block_;               // (width, stride) kernel values of the members
  std::vector<T> made_;                // rows of the block on their way there
  std::int64_t stride_;
  std::vector<double> before_;  // (width) α of the members when the round began

  Pending pending_;
  BlockEnding ending_ = BlockEnding::running;
  std::int64_t steps_ = 0, rounds_ = 0, rows_computed_ = 0, watched_round_ = 0;
  double watched_objective_ = 0, watched_violation_ = 0;
};

}  // namespace margrove
