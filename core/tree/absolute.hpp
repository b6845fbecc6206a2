// The weighted median and the distance from it: min_m Σ w |y − m|, reached at the lower and at the upper median and
// everywhere between. The median is their mean.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace margrove::tree {

using Weighted = std::pair<double, double>;  // y, w

// Of a weight: sums that differ by less are equal. `_HALF` of src/margrove/tree/impurity.py.
constexpr double kEqualWeight = 1e-12;

// Reorders `rows`, of which there must be some.
inline double weighted_median(std::vector<Weighted>& rows) {
  std::sort(rows.begin(), rows.end());
  double half = 0;
  for (const Weighted& row : rows) half += row.second;
  half /= 2;
  double below = 0;
  auto row = rows.begin();
  while ((below += row->second) < half * (1 - kEqualWeight)) ++row;
  const bool is_even = below <= half * (1 + kEqualWeight) && row + 1 != rows.end();
  return is_even ? std::midpoint(row->first, row[1].first) : row->first;
}

inline double absolute_error(std::vector<Weighted>& rows) {
  const double median = weighted_median(rows);
  double error = 0;
  for (const Weighted& row : rows) error += row.second * (row.first < median ? median - row.first : row.first - median);
  return error;
}

// Σ w |y − median| of rows that are added one by one: two heaps that meet at the median.
class GrowingMedian {
 public:
  void clear() {
    low_.clear();
    high_.clear();
    low_weight_ = high_weight_ = low_sum_ = high_sum_ = 0;
  }
  void add(double y, double w) {
    if (low_.empty() || y <= low_.front().first) {
      push_low({y, w});
    } else {
      push_high({y, w});
    }
    // The lower median is the largest of the low side: its weight is at least half, and less than half without it.
    while (low_weight_ < high_weight_) {
      const Weighted moved = pop_high();
      push_low(moved);
    }
    while (low_weight_ - low_.front().second >= high_weight_ + low_.front().second) {
      const Weighted moved = pop_low();
      push_high(moved);
    }
  }
  double median() const {
    if (low_.empty()) return 0.0;
    const bool is_even = !high_.empty() && low_weight_ <= high_weight_ * (1 + 2 * kEqualWeight);
    return is_even ? std::midpoint(low_.front().first, high_.front().first) : low_.front().first;
  }
  double error() const {
    if (low_.empty()) return 0;
    const double median = low_.front().first;
    return median * low_weight_ - low_sum_ + high_sum_ - median * high_weight_;
  }

 private:
  static bool less(const Weighted& a, const Weighted& b) { return a.first < b.first; }
  static bool greater(const Weighted& a, const Weighted& b) { return a.first > b.first; }
  void push_low(Weighted row) {
    low_.push_back(row);
    std::push_heap(low_.begin(), low_.end(), less);
    low_weight_ += row.second;
    low_sum_ += row.first * row.second;
  }
  void push_high(Weighted row) {
    high_.push_back(row);
    std::push_heap(high_.begin(), high_.end(), greater);
    high_weight_ += row.second;
    high_sum_ += row.first * row.second;
  }
  Weighted pop_low() {
    std::pop_heap(low_.begin(), low_.end(), less);
    const Weighted row = low_.back();
    low_.pop_back();
    low_weight_ -= row.second;
    low_sum_ -= row.first * row.second;
    return row;
  }
  Weighted pop_high() {
    std::pop_heap(high_.begin(), high_.end(), greater);
    const Weighted row = high_.back();
    high_.pop_back();
    high_weight_ -= row.second;
    high_sum_ -= row.first * row.second;
    return row;
  }

  std::vector<Weighted> low_, high_;
  double low_weight_ = 0, high_weight_ = 0, low_sum_ = 0, high_sum_ = 0;
};

}  // namespace margrove::tree
