// Minima of convex functions of one variable t: the length of a step along a direction.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace margrove {

// The length of a Newton step: t near the minimum of a piecewise quadratic function whose derivatives are known.
// slope_at(t, bend) gives the derivative at t and sets `bend` to the second one; the derivative at 0 is -`descent`.
// Newton's iteration on the derivative, kept within the bracket [low, high] of the points tried so far, where the
// derivative is below 0 and above 0. 0 where there is no step.
template <class SlopeAt>
double step_length(double descent, SlopeAt slope_at) {
  // "Measured" as in svm_newton.cpp: 1,803 steps with the constants as they are.
  // Of `descent`: a slope this flat is the minimum. Measured: 1,791 steps with 0.01, at more trials each; 1,910 with
  // 0.2.
  constexpr double kEnoughDescent = 0.05;
  // Of `descent`: a whole step that leaves more of it was too short. Measured: 1,921 steps with 0.1, 1,791 with 0.9.
  constexpr double kHardlyChanged = 0.5;
  // Times t: how far it may go on where no end of the bracket is known. Measured: 3 to 100 are the same.
  constexpr double kLeap = 10;
  // Trials after which any t will do where the function has fallen. Measured: 1,819 steps with 4; 12 and 40 are the
  // same. Where it falls nowhere t goes on shrinking, ten times in each trial, until it is rounding.
  constexpr int kMostTrials = 12, kLastTrial = 60;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(descent > 0)) return 0;
  double low = 0, high = kInfinity, t = 1, bend = 0;
  for (int trial = 0;; ++trial) {
    const double slope = slope_at(t, bend);
    if (std::isnan(slope)) return 0;
    if (std::abs(slope) <= kEnoughDescent * descent) return t;
    // A whole step is enough, unless the slope has hardly changed: then the curvature was not that of the rows.
    if (t == 1 && slope < 0 && slope > -kHardlyChanged * descent) return t;
    (slope > 0 ? high : low) = t;
    if (trial >= kMostTrials && low > 0) return low;
    if (trial >= kLastTrial) return 0;
    const double guess = bend > 0 ? t - slope / bend : 0.0;
    if (high == kInfinity) {
      t = guess > low ? std::min(guess, kLeap * t) : kLeap * t;
    } else {
      t = guess > low && guess < high ? guess : low == 0 ? 0.1 * high : 0.5 * (low + high);
    }
  }
}

struct Least {
  double t, value;
};

// The least of the values seen by the golden section between `low` and `high`, after so many trials.
template <class Value>
Least golden_section(double low, double high, int trials, Value value) {
  constexpr double kGolden = 0.6180339887498949;  // (sqrt(5) - 1) / 2
  double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
  double at_left = value(left), at_right = value(right);
  for (int trial = 0; trial < trials; ++trial) {
    if (at_left <= at_right) {
      high = right;
      right = std::exchange(left, right - kGolden * (right - low));
      at_right = std::exchange(at_left, value(left));
    } else {
      low = left;
      left = std::exchange(right, left + kGolden * (high - left));
      at_left = std::exchange(at_right, value(right));
    }
  }
  return at_left <= at_right ? Least{left, at_left} : Least{right, at_right};
}

}  // namespace margrove
