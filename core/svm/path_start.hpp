// Where a step of a regularisation path begins: the solution α for smaller bounds, moved along the ray r α to
//
//   min over 0 <= r <= most of  ½ r² αᵀQα + r pᵀα,      most = the least C'/C of a support vector,
//
// except where most of the support vectors are at their bounds: they are likely to be there again, so r = most. With
// v = -y (Qα + p) the curvature is αᵀQα = -Σ α (p + y v), and v + y p is linear in α: no kernel value is needed.
// src/margrove/svm/problem.py has the same rule (`path_start`).
#pragma once

#include <algorithm>
#include <vector>

#include "svm/dual.hpp"

namespace margrove {

// Share of the support vectors, measured (docs/theory/search.md); MOST_OF_THEM of problem.py.
constexpr double kMostOfThem = 0.7;
constexpr double kOnNewBound = 1 - 1e-12;  // of the bound: r C differs from C' by the rounding of r

// r for a solution α and its v.
inline double ray_for(const Dual& dual, const std::vector<double>& v, double most) {
  double curve = 0, slope = 0, support = 0, bound = 0;
  for (std::size_t t = 0; t < v.size(); ++t) {
    if (dual.alpha[t] == 0) continue;
    curve -= dual.alpha[t] * (dual.p[t] + dual.y[t] * v[t]);
    slope += dual.alpha[t] * dual.p[t];
    support += 1;
    bound += dual.alpha[t] == dual.upper[t];
  }
  if (bound >= kMostOfThem * support || -slope >= most * curve) return most;
  return std::max(0.0, -slope / curve);
}

// α <- r α within bounds `upper`, and v with it. A variable that was at its bound, and is at its new one, is put there.
inline void on_ray(Dual& dual, std::vector<double>& v, const std::vector<double>& upper, double ray) {
  for (std::size_t t = 0; t < v.size(); ++t) {
    const double moved = ray * dual.alpha[t];
    const bool is_bound = dual.alpha[t] == dual.upper[t] && moved >= upper[t] * kOnNewBound;
    dual.alpha[t] = is_bound ? upper[t] : std::min(moved, upper[t]);
    const double fixed = dual.y[t] * dual.p[t];
    v[t] = ray * (v[t] + fixed) - fixed;
  }
}

}  // namespace margrove
