// A forest that is to be grown: what is the same for all of its trees.
//
// Tree t draws its rows and its columns under the seed  s_t = mixed(mixed(s) ^ mixed(t)) >> 32.  With bootstrap its
// i-th draw is the row  ⌊mixed(mixed(s_t + 1) ^ mixed(i)) · n / 2^64⌋,  and a row that is drawn c times has weight c,
// times its own if it has one. The tree is that of src/margrove/tree/problem.py for the rows drawn, with these weights
// and the seed s_t.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "forest/rank_table.hpp"
#include "tree/growing.hpp"

namespace margrove::forest {

struct ForestTask {
  std::vector<tree::Column> columns;
  std::int64_t n;
  std::span<const std::int32_t> label;  // (n) of classes, else empty
  int n_classes;                        // 0 where the target is a number
  std::span<const double> number;       // (n) of numbers, else empty
  std::span<const double> weight;       // (n) or empty: all one
  tree::Measure measure;
  std::int64_t max_depth, min_rows_to_split, min_rows, max_columns;  // max_columns 0: all
  double min_weight, min_weight_share;  // of a leaf: at least this, and this share of the weight of the tree's rows
  double min_impurity_decrease;
  bool is_random;  // thresholds are drawn, else every one is tried
  std::uint64_t seed;
  std::int64_t first, n_drawn;  // the number of the first tree; n_drawn 0: each tree has all rows

  std::vector<std::uint64_t> column_key;  // mixed(j)
  std::vector<std::uint32_t> by_class;    // of counts: all rows, class by class, and within a class ascending
  std::vector<double> x_log_x;            // of 0 .. all draws, where entropy is taken of counts

  std::uint64_t seed_of(std::int64_t t) const {
    return tree::mixed(tree::mixed(seed) ^ tree::mixed(static_cast<std::uint64_t>(t))) >> 32;
  }
  bool has_classes() const { return n_classes > 0; }
  bool has_counts() const { return has_classes() && weight.empty(); }  // weights are numbers of draws
  void prepare();
};

// How often each row is drawn for a tree of this seed. (n)
void count_draws(std::uint64_t tree_seed, std::int64_t n_drawn, std::span<std::uint32_t> count);

}  // namespace margrove::forest
