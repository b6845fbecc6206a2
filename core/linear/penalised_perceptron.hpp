// The perceptron with a penalty, as scikit-learn's stochastic gradient descent has it.
//
// Given: rows, signs y and weights s as in linear/perceptron.hpp, a penalty alpha and the share rho of l1 in it. At the
// visit of row i, with  kept = max(0, 1 - eta alpha (1 - rho))  and  toll = eta alpha rho:
//
//   is_mistake = not y_i (w·x_i + b) > 0
//   w <- kept w;  a mistake adds  eta s_i y_i (x_i, 1)  to (w, b)
//   each w_j pays what it owes of the l1 penalty, but not beyond 0; what it owes grows by toll with every visit
//
// Returned: (w, b) and the number of mistakes. A machine has separated when after a pass without a mistake the shrunken
// w separates the rows. Reference: Tsuruoka, Tsujii and Ananiadou 2009; the same walk in Python is
// margrove.linear.reference.perceptron.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "linear/passes.hpp"
#include "rows.hpp"

namespace margrove {

struct PenalisedSettings {
  double eta = 1, alpha = 0, l1_ratio = 0;
  bool fit_intercept = true;
  bool shuffle = true;
  std::int64_t patience = 0;  // as in PerceptronSettings
  double tolerance = 0;
};

// The penalty of the m-th visit since all columns were brought up to date. A column that no row of these visits has, or
// that no correction has moved, need not be touched: in units of power[m], shrinking leaves it as it is, and paying
// takes the same amount from every column that is not yet 0:
//
//   w_j = power[m] v_j,   |v_j| at visit m = max(0, |v_j| at visit k - (debt[m] - debt[k])).
struct Shrinkage {
  Shrinkage(const PenalisedSettings& settings, std::int64_t n, bool is_sparse);

  double kept, toll;
  bool is_lazy;                     // else every visit goes over all columns, and the tables are empty
  std::vector<double> power, debt;  // kept^m, and the sum of toll / kept^k over k = 1 .. m
};

// One machine's state between slices.
struct PenalisedMachine : PassRecord {
  PenalisedMachine(std::int64_t n, std::int64_t d, std::uint64_t seed, const Shrinkage& shrinkage);

  // Brings all columns up to date, and w to its own units.
  void settle(const Shrinkage& shrinkage);

  AlignedVector w;  // (d); in units of power[visit] if the shrinkage is lazy
  double b = 0;
  double owed = 0;                   // by each column in all, before `visit`
  std::vector<double> paid;          // (d), signed, in units of w; empty without l1
  std::vector<std::uint32_t> since;  // (d), the visit at which a column was last up to date; empty if not lazy
  std::uint32_t visit = 0;           // since all columns were up to date
  bool is_checking = false;          // a clean pass is over, and its w is tested on every row
};

class PenalisedPerceptron {
 public:
  // As for Perceptron, sign and weight must outlive this object.
  PenalisedPerceptron(AnyRows rows, std::span<const std::int8_t> sign, std::span<const double> weight,
                      const std::vector<std::uint64_t>& seeds, PenalisedSettings settings);

  // As Perceptron::run.
  void run(std::int64_t max_passes, double seconds, int threads);

  const std::vector<PenalisedMachine>& machines() const { return machines_; }
  void start_from(std::size_t machine, std::span<const double> w, double b);
  AlignedVector weights(std::size_t machine) const;  // a copy, up to date

 private:
  AnyRows rows_;
  std::int64_t n_, d_;
  std::span<const std::int8_t> sign_;
  std::span<const double> weight_;
  PenalisedSettings settings_;
  Shrinkage shrinkage_;
  std::vector<PenalisedMachine> machines_;
};

}  // namespace margrove
