// Block decomposition for the dual of every support vector machine.
//
//   min  ½ αᵀQα + pᵀα   subject to  yᵀα = δ,  0 <= α_t <= C_t,      Q_st = y_s y_t K(x_s, x_t),
//
// over variables t = 1 .. m, each standing for the point point[t]. Given: the kernel matrix, y, p, C and a feasible
// start α. Returned: α, and v_t = -y_t (Qα + p)_t, by which everything is decided: with
//
//   I_up  = {t: y_t α_t can grow},   I_low = {t: y_t α_t can fall},
//
// α is optimal exactly if  violation = max_{I_up} v - min_{I_low} v <= 0, and the solve ends when it is <= tol.
//
// Each round takes the worst violators of both sides as a working set (half of the last one is kept), solves the
// problem over the set by SMO with second-order choice of pairs, computes the kernel rows of the members that moved, if
// they are not kept from before, and moves v. Kernel values are T, v is double. Reference: Platt 1998; Joachims 1998;
// Fan, Chen and Lin 2005 (second-order choice); Zanni et al. 2006 (large blocks).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernel/gram.hpp"

namespace margrove {

struct DualProblem {
  std::vector<std::int8_t> y;       // (m) +1 or -1
  std::vector<double> p, upper;     // (m); upper may be infinite
  std::vector<double> alpha;        // (m) a feasible start
  std::vector<std::int64_t> point;  // (m)
};

struct DualSettings {
  double tol = 1e-3;
  std::int64_t cache_bytes = std::int64_t{1} << 30;
  std::int64_t working_set = 1024;
  int threads = 1;
};

// At most `capacity` kernel rows, kept in one piece of memory that is touched as rows come; the least recently used
// goes.
template <class T>
class KeptRows {
 public:
  KeptRows(std::int64_t n, std::int64_t bytes, std::int64_t least);
  std::int64_t capacity() const { return capacity_; }
  const T* find(std::int64_t i);
  T* make(std::int64_t i);                             // room for a row that is not kept; the caller fills it
  void touch_all(std::span<const std::int64_t> rows);  // so that none of them is given up for another

 private:
  std::int64_t n_, capacity_, clock_ = 0;
  std::unique_ptr<T[]> values_;
  std::vector<std::int64_t> slot_of_, row_in_, used_;
  std::int64_t filled_ = 0;
};

template <class T>
class BlockSmo {
 public:
  BlockSmo(std::shared_ptr<const Gram<T>> gram, DualProblem problem, DualSettings settings);

  // Goes on until the violation is within tol, no step is possible, `max_steps` pair steps have been made in all, or
  // `seconds` are over. Returns whether it has ended for good (converged or stalled).
  bool run(std::int64_t max_steps, double seconds);

  bool has_converged() const { return converged_; }
  bool has_stalled() const { return stalled_; }
  double violation() const { return violation_; }
  double objective() const;
  std::int64_t steps() const { return steps_; }
  std::int64_t rounds() const { return rounds_; }
  std::int64_t rows_computed() const { return rows_computed_; }
  const std::vector<double>& alpha() const { return problem_.alpha; }
  const std::vector<double>& v() const { return v_; }

 private:
  bool in_up(std::size_t t) const;
  bool in_low(std::size_t t) const;
  void start();
  double measure_violation() const;
  void choose_working_set();
  void read_block();
  std::int64_t solve_block(std::int64_t most_steps, double tolerance);
  void move_v(const std::vector<double>& before);
  void ensure_rows(const std::vector<std::int64_t>& points);

  std::shared_ptr<const Gram<T>> gram_;
  DualProblem problem_;
  DualSettings settings_;
  std::int64_t n_, m_;
  KeptRows<T> kept_;
  std::vector<double> v_;
  std::vector<std::int64_t> set_;  // the working set, variables
  std::vector<T> block_;           // (set, set) kernel values
  bool started_ = false, converged_ = false, stalled_ = false;
  double violation_ = 0;
  std::int64_t steps_ = 0, rounds_ = 0, rows_computed_ = 0;
};

}  // namespace margrove
