// What coordinate descent of one machine and of several side by side have in common: how far ahead rows are fetched,
// and when a pass is worth computing the gap for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace margrove {

struct DescentPace {
  static constexpr std::int64_t kAhead = 8;                 // visits ahead for which a row is fetched
  static constexpr std::int64_t kMostPassesUnchecked = 20;  // before the gap is computed, whatever it seems to be
  static constexpr double kSoonEnough = 1.5;                // times the limit, of the gap as it seems
  static constexpr double kRounding = 1e-15;                // of a value
  static constexpr std::int64_t kPatience = 2000;           // passes without a better gap before a solve has stalled
};

// Whether the gap, as it seemed row by row during a pass that ended at this dual value, is small enough to be computed;
// `wanted` is what it must have come down to since it last was.
inline bool seems_to_have_ended(double seeming_gap, double dual, double wanted, double tol) {
  const double limit = tol * std::max(std::abs(dual) + seeming_gap, 1e-300);
  return seeming_gap <= DescentPace::kSoonEnough * limit && seeming_gap <= wanted;
}

}  // namespace margrove
