// The best test of one column at one node: a walk through the column's list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tree/draws.hpp"
#include "tree/flags.hpp"
#include "tree/lists.hpp"
#include "tree/measure.hpp"

namespace margrove::tree {

// The rows of a node as the criterion sees them.
struct NodeSums {
  std::int64_t rows = 0;
  double weight = 0;
  std::vector<double> sum;          // weight of each class; for numbers {Σ w (y − shift), Σ w (y − shift)²}
  std::vector<std::uint32_t> seen;  // rows of each class
  std::int64_t whole = 0;           // Σ x² of these for gini, Σ x log2 x in fixed point for entropy
  // Where gini is taken of weights: as whole multiples of `unit`, those of the classes and of all rows.
  std::vector<std::int64_t> whole_sum;
  std::int64_t whole_weight = 0;
  double unit = 0;
  double shift = 0;            // the mean of the node's numbers, around which sums lose no digits
  std::vector<double> shifts;  // the same of several targets
  double centre = 0;           // what the node predicts where the target is one number: mean or median
  double purity = 0;           // U(S)
  double mass = 0;             // w(S) imp(S): what excesses are compared with
  double tolerance = 0;        // excesses that differ by less are equal
  bool is_pure = false;
  double least = -std::numeric_limits<double>::infinity();  // bounds on the prediction, of monotone columns above
  double most = std::numeric_limits<double>::infinity();
};

// Of the weight of a node, what a level is taken to weigh at least: less is rounding.
constexpr double kLeastLevel = std::numeric_limits<double>::epsilon();

// Of a subset test: what all levels that occur in the node tell, whichever subset was chosen (tree/association.py).
struct LevelTable {
  double n_levels = 0;  // 0: no subset test
  double association = std::numeric_limits<double>::quiet_NaN();
  double inverse_weight = 0;  // Σ 1/w over the levels
};

constexpr double kNoCut = std::numeric_limits<double>::quiet_NaN();

// One column's best test at a node. `excess` is w · gain = Σ_b U(S_b) − U(S).
struct Candidate {
  double excess = -std::numeric_limits<double>::infinity();
  double split_information = 0;
  double n_tests = 0;
  LevelTable levels;
  std::uint32_t cut_key = 0;                                // of a threshold: keys up to this one go left
  std::uint32_t left_row = 0, right_row = 0;                // of a threshold: rows of its two neighbours
  bool is_present_test = false;                             // of a threshold: present cells left, missing ones right
  bool is_missing_left = false;                             // of a threshold, where the node has missing cells
  std::vector<std::uint32_t> keys;                          // of categories and intervals: the keys that occur, ...
  std::vector<std::uint32_t> branch;                        // ... and the branch of each; missing is kMissing
  double theta = std::numeric_limits<double>::quiet_NaN();  // of a threshold, where it is not halfway
  bool has_missing = false;                                 // some rows of the node have no value
  bool is_constant = true;                                  // all rows of the node have the same key
  bool found() const { return excess > -std::numeric_limits<double>::infinity(); }
  // As how many tests the column counts where p-values are corrected: a subset's p has paid for the choice already.
  double n_choices() const { return levels.n_levels > 0 ? 1 : n_tests; }
};

enum class Thresholds { every, gaussian, logistic, random };

// What is the same for all columns and nodes of a tree.
struct ScanRules {
  Measure measure;
  Tags tags;
  std::span<const double> weight;              // (n) or empty: all one
  const std::int64_t* whole_weight = nullptr;  // (n) where gini is taken of weights: multiples of the node's `unit`
  std::span<const double> number;              // (n), the target where it is a number
  std::span<const std::int32_t> labels;        // (n, targets) where there are several, of classes; else `number` is
  std::int64_t min_rows = 1;                   // in each branch
  double min_weight = 0;
  double value_slack = 0;  // by which rounding may break a monotone order
  bool needs_split_information = false;
  Thresholds thresholds = Thresholds::every;
  std::vector<std::int64_t> x_log_x;  // x log2 x in fixed point, x = 0 .. n: exact and the same in any order
  double x_log_x_unit = 1;

  void prepare(std::int64_t n);
  double weight_of(std::uint32_t row) const { return weight.empty() ? 1.0 : weight[row]; }
};

// What a thread needs to scan; nothing in it outlives a scan.
struct ScanSpace {
  std::vector<std::uint32_t> left;  // rows of each class
  std::vector<double> left_sum, block_sum, missing_sum;
  std::vector<std::int64_t> first, second;                           // a chunk's running sums
  std::vector<double> squares, products;                             // a chunk's, of weights
  std::vector<double> totals;                                        // weights of the classes, in all
  std::vector<std::int64_t> whole_left, whole_block, whole_missing;  // weights of the classes
  std::vector<double> level_sum;                                     // of categories: the sums of each level
  std::vector<double> ahead, ahead_median;                           // of absolute error
};

// The rows that a column's list leaves out: their key and, of numbers, their value.
struct Mode {
  std::uint32_t key;
  double value;
};

// A part of a column's list that belongs to one node.
struct Piece {
  const std::uint32_t* key;
  const std::uint32_t* tag;
  std::uint32_t size;
};

// `floor` is an excess that a test must surpass to be of interest; a column may answer that it has none such.
// `draw` is a random number of the node and the column, from which a random threshold is made.
void scan(const ScanRules& rules, const Column& column, Mode mode, const Piece& piece, const NodeSums& node,
          double floor, ScanSpace& space, Candidate& best, std::uint64_t draw = 0);

// The same of a column whose tests have been counted. Only criteria of class counts, without weights.
void scan_flags(const ScanRules& rules, const FlagGroup::Member& member, const FlagCounts& counts, const NodeSums& node,
                double floor, ScanSpace& space, Candidate& best);
// Whether gini of such a node is looked at by `TwoClasses`.
bool is_of_two_classes(const NodeSums& node);

// The tests on categories and intervals (levels.cpp).
void scan_levels(const ScanRules& rules, const Column& column, std::uint32_t mode_key, const Piece& piece,
                 const NodeSums& node, ScanSpace& space, Candidate& best);
// Thresholds under absolute error (absolute.cpp); only that at `cut`, unless it is NaN.
void scan_absolute(const ScanRules& rules, const Column& column, const Piece& piece, const NodeSums& node, double cut,
                   ScanSpace& space, Candidate& best);

// Whether two branches of a monotone column go its way, within the bounds of columns above.
inline bool is_in_order(const ScanRules& rules, const Column& column, const NodeSums& node, double left, double right) {
  const double slack = rules.value_slack;
  return std::min(left, right) >= node.least - slack && std::max(left, right) <= node.most + slack &&
         (right - left) * column.monotone >= -slack;
}

// Adds a row to the sums of some rows of a node. Returns its weight.
inline double add_row(const ScanRules& rules, const NodeSums& node, std::uint32_t tag, double* sum) {
  const std::uint32_t row = rules.tags.row(tag);
  const double w = rules.weight_of(row);
  if (rules.measure.has_several()) {
    const std::size_t n_targets = rules.measure.n_targets();
    for (std::size_t t = 0; t < n_targets; ++t) {
      const std::size_t at = row * n_targets + t;
      double* own = sum + rules.measure.start[t];
      if (!rules.labels.empty()) {
        own[rules.labels[at]] += w;
        continue;
      }
      const double y = rules.number[at] - node.shifts[t];
      own[0] += w * y;
      own[1] += w * y * y;
    }
  } else if (is_of_classes(rules.measure.criterion)) {
    sum[rules.tags.label_of(tag)] += w;
  } else {
    const double y = rules.number[row] - node.shift;
    sum[0] += w * y;
    sum[1] += w * y * y;
  }
  return w;
}

// The branch of a key, and how many branches there are.
std::uint32_t branch_of(const Candidate& test, std::uint32_t key);
std::uint32_t branches_of(const Candidate& test);

inline double split_information(double left, double right) {
  const double w = left + right;
  return (x_log_x(w) - x_log_x(left) - x_log_x(right)) / w;
}

}  // namespace margrove::tree
