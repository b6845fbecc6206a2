// The dual that every support vector machine asks, and what is read off it: see block_smo.hpp for the formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace margrove {

struct Dual {
  std::vector<std::int8_t> y;       // (m) +1 or -1
  std::vector<double> p, upper;     // (m); upper may be infinite
  std::vector<double> alpha;        // (m) a feasible start
  std::vector<std::int64_t> point;  // (m)
  bool by_sign = false, hulls = false;

  // Pairs are chosen within a group: the signs where `by_sign`, otherwise all.
  int group_of(std::size_t t) const { return by_sign && y[t] < 0 ? 1 : 0; }
  bool is_up(std::size_t t) const { return y[t] > 0 ? alpha[t] < upper[t] : alpha[t] > 0; }
  bool is_low(std::size_t t) const { return y[t] > 0 ? alpha[t] > 0 : alpha[t] < upper[t]; }
  bool is_free(std::size_t t) const { return alpha[t] > 0 && alpha[t] < upper[t]; }
};

// The largest v over I_up and the smallest over I_low, of each group.
struct Extremes {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double up[2] = {-kInfinity, -kInfinity}, low[2] = {kInfinity, kInfinity};

  void include(int group, bool is_up, bool is_low, double v) {
    if (is_up) up[group] = std::max(up[group], v);
    if (is_low) low[group] = std::min(low[group], v);
  }
  // The violation: -infinity where nothing can move.
  double gap() const { return std::max(up[0] - low[0], up[1] - low[1]); }
};

// Those of all variables.
inline Extremes extremes_of(const Dual& dual, const std::vector<double>& v) {
  Extremes found;
  for (std::size_t t = 0; t < v.size(); ++t) found.include(dual.group_of(t), dual.is_up(t), dual.is_low(t), v[t]);
  return found;
}

inline double largest_absolute(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// ½ αᵀQα + pᵀα = ½ Σ α_t (p_t - y_t v_t)
inline double objective_of(const Dual& dual, const std::vector<double>& alpha, const std::vector<double>& v) {
  double sum = 0;
  for (std::size_t t = 0; t < v.size(); ++t)
    if (alpha[t] != 0) sum += alpha[t] * (dual.p[t] - dual.y[t] * v[t]);
  return sum / 2;
}

// α is at a bound but for rounding: a variable that rounding alone makes free would pin b. The first is of the bound,
// as scaled models (ν) are no closer; the second, some 500 eps, of the largest α (both as in svm/kkt.py).
constexpr double kAtUpper = 1e-10, kAtZero = 1e-13;

// b: the mean of v over the free variables, or the middle of the interval that the others leave.
inline double offset_of(const Dual& dual, const std::vector<double>& v) {
  const double largest = dual.alpha.empty() ? 0.0 : *std::max_element(dual.alpha.begin(), dual.alpha.end());
  double sum = 0;
  std::int64_t free = 0;
  Extremes found;
  for (std::size_t t = 0; t < v.size(); ++t) {
    const bool can_grow = dual.alpha[t] < dual.upper[t] * (1 - kAtUpper);
    const bool can_fall = dual.alpha[t] > kAtZero * largest;
    if (can_grow && can_fall) sum += v[t], ++free;
    if (dual.upper[t] > 0)
      found.include(0, dual.y[t] > 0 ? can_grow : can_fall, dual.y[t] > 0 ? can_fall : can_grow, v[t]);
  }
  if (free > 0) return sum / free;
  if (found.up[0] == -Extremes::kInfinity && found.low[0] == Extremes::kInfinity) return 0;
  if (found.up[0] == -Extremes::kInfinity) return found.low[0];
  return found.low[0] == Extremes::kInfinity ? found.up[0] : (found.up[0] + found.low[0]) / 2;
}

// Spreads ties and choices over all rows: a file is often sorted.
inline std::uint64_t scattered(std::int64_t t) { return static_cast<std::uint64_t>(t) * 0x9E3779B97F4A7C15ull; }

}  // namespace margrove
