// What coordinate descent of one machine and of several side by side have in common: how far ahead rows are fetched,
// and when a pass is worth computing the gap for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace margrove {

struct DescentPace {
  // Visits ahead for which a row is fetched. Chosen, not measured: later it is not there in time, earlier it takes the
  // place of rows still needed.
  static constexpr std::int64_t kAhead = 8;
  // Passes before the gap is computed, however large it seems. Chosen, not measured: it reads all rows.
  static constexpr std::int64_t kMostPassesUnchecked = 20;
  // Times the limit: an estimated gap that small is computed exactly. Chosen, not measured: less may miss the end, more
  // computes it in vain.
  static constexpr double kSoonEnough = 1.5;
  // Of |f| + |z|: a violation this small is rounding, some 5 eps.
  static constexpr double kRounding = 1e-15;
  // Passes without a better gap before a solve has stalled. Chosen, not measured: a slow solve must not count as
  // stalled.
  static constexpr std::int64_t kPatience = 2000;
};

// Whether the gap, as it seemed row by row during a pass that ended at this dual value, is small enough to be computed;
// `wanted` is what it must have come down to since it last was.
inline bool seems_to_have_ended(double seeming_gap, double dual, double wanted, double tol) {
  const double limit = tol * std::max(std::abs(dual) + seeming_gap, 1e-300);
  return seeming_gap <= DescentPace::kSoonEnough * limit && seeming_gap <= wanted;
}

}  // namespace margrove
