// The perceptron in the dual.
//
//   find  alpha >= 0  with  y_i f(x_i) > 0  for every row i,   f(x) = eta sum_j alpha_j s_j y_j (K(x_j, x) +
//   1),
//
// the 1 being the homogeneous coordinate (absent without an intercept). A mistake y_i f(x_i) <= 0 adds one to
// alpha_i. All decision values f(x_1) .. f(x_n) are kept and moved by one kernel row at each mistake, so
// judging a row is free and a kernel row is asked for only when a mistake is made on it. Given: a source of
// kernel rows, signs y (machines, n; 0 leaves a row out), optional weights s. Returned: alpha and the number
// of mistakes. Ends only on separable data; `run` works in slices. Reference: Aizerman, Braverman and
// Rozonoer 1964; Freund and Schapire 1999.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/row_source.hpp"
#include "linear/order.hpp"

namespace margrove {

struct KernelPerceptronMachine {
  KernelPerceptronMachine(std::int64_t n, std::uint64_t seed) : alpha(n), decision(n), order(n, seed) {}

  std::vector<double> alpha;     // (n) mistakes made on each row
  std::vector<double> decision;  // (n) f(x_i)
  std::int64_t passes = 0, mistakes = 0, pass_mistakes = 0;
  bool separated = false;
  VisitOrder order;
  std::int64_t position = 0;
  bool is_in_pass = false;  // a pass may be broken off before its first row: then it must not be shuffled again
};

struct KernelPerceptronSettings {
  double eta = 1;
  bool fit_intercept = true;
  bool shuffle = true;
};

template <class T>
class KernelPerceptron {
 public:
  KernelPerceptron(RowSource<T>& source, std::span<const std::int8_t> sign, std::span<const double> weight,
                   std::vector<std::uint64_t> seeds, KernelPerceptronSettings settings);

  // Goes on as Perceptron::run does, one machine after the other. Returns -1, or the row that must be
  // supplied first.
  std::int64_t run(std::int64_t max_passes, double seconds);

  const std::vector<KernelPerceptronMachine>& machines() const { return machines_; }

 private:
  bool walk_pass(KernelPerceptronMachine& m, const std::int8_t* sign, std::chrono::steady_clock::time_point until,
                 std::int64_t& wanted);

  RowSource<T>& source_;
  std::span<const std::int8_t> sign_;
  std::span<const double> weight_;
  KernelPerceptronSettings settings_;
  std::vector<KernelPerceptronMachine> machines_;
  std::size_t turn_ = 0;  // whose pass is under way
};

}  // namespace margrove
