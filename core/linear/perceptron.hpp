// The perceptron in the primal.
//
//   find  w, b  with  y_i (w·x_i + b) > 0  for every row i,
//
// by visiting the rows and adding  eta s_i y_i (x_i, 1)  to (w, b) at each mistake  y_i f(x_i) <= 0, until a
// whole pass makes none. Given: rows, signs y (one line per machine; 0 leaves a row out), optional weights
// s_i > 0. Returned: (w, b), the counts alpha with  w = eta sum alpha_i s_i y_i x_i,  and the number of
// mistakes. Ends only on separable data; `run` therefore works in slices and the caller decides when it is
// enough. Reference: Rosenblatt 1958; Novikoff 1962 (mistakes <= (R/gamma)^2); Freund and Schapire 1999
// (voted).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "linear/passes.hpp"
#include "rows.hpp"

namespace margrove {

enum class Variant : int { last = 0, averaged = 1, voted = 2 };

struct PerceptronSettings {
  double eta = 1;
  bool fit_intercept = true;
  bool shuffle = true;
  Variant variant = Variant::last;
  std::int64_t patience = 0;    // give up after so many passes whose mistakes have not fallen ...
  double tolerance = 0;         // ... by this share of the rows; patience 0 never gives up
  std::int64_t kept_bytes = 0;  // room for what `averaged` and `voted` keep, per machine
};

// One machine's state between slices.
struct PerceptronMachine : PassRecord {
  PerceptronMachine(std::int64_t n, std::int64_t d, std::uint64_t seed);

  AlignedVector w;  // (d)
  double b = 0;
  std::vector<double> alpha;     // (n) mistakes made on each row
  bool expects_mistakes = true;  // many in the last pass; at the start nearly every row is one
  bool out_of_room = false;      // kept_bytes are full

  // The average over all steps is (w, b) - (lag_w, lag_b) / steps: a step taken at time t is missing from the
  // t - 1 weight vectors before it.
  std::int64_t steps = 0;
  std::vector<double> lag_w;
  double lag_b = 0;

  // `averaged` and `voted`: the row of each correction and the step at which it was made, from 1.
  std::vector<std::int64_t> makers, times;  // (mistakes)
  // `voted`: every weight vector that lived, (w, b) after each correction.
  std::vector<double> prototypes;  // (mistakes, d + 1)

  AlignedVector ring;                // scratch room for three rows, where rows are visited without guessing
  std::vector<std::uint32_t> noted;  // and for the rows of a stretch
};

class Perceptron {
 public:
  // sign: (machines, n); weight: (n) or empty. Both are copied by reference: they must outlive this object.
  Perceptron(AnyRows rows, std::span<const std::int8_t> sign, std::span<const double> weight,
             std::vector<std::uint64_t> seeds, PerceptronSettings settings);

  // Goes on with every machine that is not done until it has separated or stalled, has made `max_passes`
  // passes in all, or `seconds` are over. Machines share `threads` threads; each works alone, so threads
  // change no result.
  void run(std::int64_t max_passes, double seconds, int threads);

  const std::vector<PerceptronMachine>& machines() const { return machines_; }
  void start_from(std::size_t machine, std::span<const double> w, double b);

 private:
  AnyRows rows_;
  std::int64_t n_, d_;
  std::span<const std::int8_t> sign_;
  std::span<const double> weight_;
  PerceptronSettings settings_;
  std::vector<PerceptronMachine> machines_;
};

}  // namespace margrove
