// What growing a tree is made of, however the rows are kept: when a node is split, by which column, and what is written
// down. src/margrove/tree/problem.py says what is asked.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tree/scan.hpp"

namespace margrove::tree {

// Gains that differ by less, relative to the impurity, are equal: some 5,000 eps, rounding.
constexpr double kEqualGain = 1e-12;
constexpr double kNoFloor = -std::numeric_limits<double>::infinity();  // any gain is above it

enum class SplitScore { gain, gain_ratio, skew_adjusted };

struct GrowthRules {
  SplitScore score = SplitScore::gain;
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_rows_to_split = 2;
  std::int64_t max_leaves = 0;   // 0: no limit
  std::int64_t max_columns = 0;  // looked at in each node; 0: all
  double min_impurity_decrease = 0, min_gain = 0, majority = 1, complexity = 0;
  const Lists* sorted = nullptr;  // the columns, if they have been sorted before: `Lists::can_serve`
  bool keeps_order = false;       // several trees are grown of the same rows
  int n_bins = 0;                 // of thresholds at quantiles; 0: thresholds everywhere
  bool is_shuffled = false;       // each node looks at the columns in an order of its own
  std::uint64_t seed = 0;
};

// One node of the finished tree; the arrays of model.py are made of these.
struct Node {
  std::int64_t parent = -1;
  std::uint32_t branch = 0, n_branches = 0;
  std::int32_t column = -1, missing_branch = -1, default_branch = -1;
  double threshold = std::numeric_limits<double>::quiet_NaN(), gain = std::numeric_limits<double>::quiet_NaN();
  double n_tests = 0, n_candidates = 0, weight = 0;
  LevelTable levels;
  double least = 0, most = 0;  // what monotone columns above hold its prediction to
  std::int64_t rows = 0;
  std::uint32_t first_row = 0;  // where its rows begin in the grower's list of them, if it keeps one
  std::vector<std::int32_t> level_branch;
  std::vector<double> value;  // of classes: the weight of each
};

// The nodes in depth-first order, branches in theirs. A parent must stand before its children.
std::vector<Node> depth_first(std::vector<Node> nodes);

// In which order a node looks at the columns: theirs, or one of its own.
std::vector<std::uint32_t> column_order(const GrowthRules& growth, std::uint64_t path, std::size_t columns);

// Takes the columns' candidates one by one, in order, and keeps the best: see `split_score` in problem.py.
class Chooser {
 public:
  Chooser(const GrowthRules& growth, const NodeSums& node, std::size_t columns);

  // May take the candidate away.
  void add(std::uint32_t column, Candidate& candidate);
  // Whether nothing but the largest gain is wanted, and what a further column must surpass then.
  bool takes_largest() const { return growth_.score == SplitScore::gain && growth_.complexity <= 0; }
  double floor() const;
  bool has_any() const { return best_.found() || !all_.empty(); }
  // The best, if it gains enough; then `column` and `best` are to be asked. `weight` is that of all rows.
  bool decide(double weight);

  std::uint32_t column() const { return column_; }
  Candidate& best() { return best_; }
  double best_excess() const { return best_excess_; }
  double n_candidates() const { return n_candidates_; }

 private:
  struct Charged {
    std::uint32_t column;
    double excess;  // less what the test's description costs
    Candidate candidate;
  };
  const GrowthRules& growth_;
  const NodeSums& node_;
  const double column_bits_;
  Candidate best_;
  double best_excess_ = kNoFloor;
  std::uint32_t column_ = 0;
  double n_candidates_ = 0;
  std::vector<Charged> all_;
};

// The score of a group's test (flags.hpp) below which its excess is less than `floor`.
double score_bar(const ScanRules& rules, const NodeSums& node, double floor);
// Offers the chooser the tests of a group. Those with scores below `bar` cannot be chosen.
void choose_flags(const ScanRules& rules, const FlagGroup& group, const FlagCounts& counts, const NodeSums& node,
                  double bar, ScanSpace& space, Candidate& candidate, Chooser& chooser);

// What a grower knows of a node that is not written down yet.
struct OpenNode {
  NodeSums sums;
  std::int64_t depth = 0, parent = -1, order = 0;
  std::uint32_t branch = 0;
  std::uint64_t path = 0;
  bool is_open = false;  // it may be split, if there is a test worth it
  bool is_leaf = true;   // there is none
  std::uint32_t column = 0;
  Candidate test;
  double n_candidates = 0;
  double priority = 0;  // the excess less what the test's description costs

  // Takes the chosen test, unless it is not worth it. `weight` is that of all rows.
  void settle(Chooser& chooser, double weight);
  Node as_leaf() const;
  // With its test: `weights` are those of its branches; `n_codes` of its column, `threshold` NaN where it has none.
  Node as_inner(std::span<const double> weights, std::int64_t n_codes, double threshold) const;
};

// Best first: of two nodes the one whose split gains more, or that was opened earlier, comes out of a heap first.
inline bool is_less_urgent(const OpenNode& a, const OpenNode& b) {
  const double first = a.is_leaf ? kNoFloor : a.priority, second = b.is_leaf ? kNoFloor : b.priority;
  return first != second ? first < second : a.order > b.order;
}

// θ of a threshold test.
double threshold_of(const Lists& lists, std::size_t column, const Candidate& test);

// Whether a node stays a leaf whatever its columns offer.
bool is_closed(const NodeSums& sums, std::int64_t depth, const ScanRules& rules, const GrowthRules& growth);
// From the weight and the rows of each class: what the criterion makes of them.
void summarise_classes(const ScanRules& rules, NodeSums& sums);
// The same from the rows, where the target is a number or where there are several.
void summarise_rows(const ScanRules& rules, std::span<const std::uint32_t> rows, NodeSums& sums);
// Σ w (y − mean)² from {Σ w (y − shift), Σ w (y − shift)²}. The shift is the mean but for rounding, which is much where
// numbers lie far from zero.
inline double squares_around_mean(const double* sum, double weight) { return sum[1] - sum[0] * (sum[0] / weight); }

// `summarise_rows` of one target under squared error, where rows count the same: deep trees have many small nodes.
// number_at(i) is that of the i-th row.
template <class NumberAt>
void summarise_numbers(NumberAt number_at, std::size_t size, NodeSums& sums) {
  const double first = number_at(0);
  double sum = 0, squares = 0;
  bool is_pure = true;
  for (std::size_t i = 0; i < size; ++i) {
    is_pure &= number_at(i) == first;
    sum += number_at(i);
  }
  sums.rows = static_cast<std::int64_t>(size);
  sums.weight = static_cast<double>(size);
  sums.is_pure = is_pure;
  sums.shift = sum / sums.weight;
  sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double y = number_at(i) - sums.shift;
    sum += y;
    squares += y * y;
  }
  sums.sum.resize(2);
  sums.sum[0] = sum;
  sums.sum[1] = squares;
  sums.purity = number_purity(Criterion::squared_error, sum, squares, sums.weight, 0);
  sums.centre = sums.shift + sum / sums.weight;
  sums.mass = squares_around_mean(sums.sum.data(), sums.weight);
  sums.tolerance = kEqualGain * std::abs(sums.mass);
}

// A tree under way.
class Growing {
 public:
  virtual ~Growing() = default;
  // Goes on for about so many seconds. True when the tree is done.
  virtual bool run(double seconds) = 0;
  // Rows that have come to a leaf.
  virtual std::int64_t rows_settled() const = 0;
  // The tree, depth first. What was open stays a leaf.
  virtual std::vector<Node> take() = 0;
  // Begins another tree of the same rows, which are not sorted again, with these weights. Only if `keeps_order` was
  // said before the first.
  virtual void restart(std::span<const double> weight) = 0;
  // The rows of the tree that `take` gave: a leaf's are `rows` of them from its `first_row` on.
  virtual std::span<const std::uint32_t> row_tags() const = 0;
};

}  // namespace margrove::tree
