// Growing the trees of a forest, one at a time, on one thread.
//
// A tree's rows lie in one list, those of a node side by side, in ascending order. Nodes are grown depth first. A node
// fetches the ranks of a column for its rows, sorts them and walks through them; columns that are constant in a node
// are passed over in all nodes below it. Nothing is allocated per node.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "forest/best_search.hpp"
#include "forest/column_draw.hpp"
#include "forest/kernels.hpp"
#include "forest/random_search.hpp"
#include "forest/task.hpp"

namespace margrove::forest {

// The arrays of a finished tree, depth first.
struct GrownTree {
  std::vector<std::int32_t> feature, right;  // of a leaf: -1, and its number
  std::vector<double> threshold;             // NaN at a leaf
  std::vector<double> leaf_weight;
  std::vector<std::int32_t> leaf_rows;
  std::vector<std::int32_t> leaf_shape;  // of classes: k where all rows are of class k, else K + its row in `shares`
  std::vector<double> shares;            // (rows, K)
  std::vector<double> mean, impurity;    // of numbers, by leaf
  std::vector<double> decrease;          // (d): Σ weight · gain over the nodes of each column
};

class TreeGrower {
 public:
  // The task and the table must outlive this; the table is sorted before the first tree.
  TreeGrower(const ForestTask& task, const RankTable& table, const CellRows& cells);

  // Begins tree t.
  void plant(std::int64_t t);
  // True when the tree is done.
  bool run(std::chrono::steady_clock::time_point until);
  // The tree, whose arrays are as large as they need to be.
  GrownTree take();

 private:
  struct Open {
    std::uint32_t begin, size;
    std::int64_t depth;
    std::uint64_t path;
    std::int64_t parent;  // of a second branch its node, else -1
    std::uint32_t alive_begin, alive_end;
  };
  void draw_rows(std::int64_t t);
  void choose_bits();
  void grow(const Open& node);
  void add_leaf(const Open& node);
  void split(const Open& node, std::uint32_t column, const Found& test);

  void summarise(const Open& node);
  void summarise_counts(const Open& node);
  void summarise_weights(const Open& node);
  void summarise_numbers(const Open& node);
  bool is_closed(const Open& node) const;

  // The best test of the node's columns. False if there is none that gains enough.
  bool search(const Open& node, std::uint32_t& column, Found& best);
  bool search_columns(const Open& node, std::uint32_t& column, Found& best);
  bool list_alive(const Open& node);
  // The best test of a column that surpasses `floor`. False if it is constant.
  bool scan_column(const Open& node, std::uint32_t column, double floor, Found& found);
  template <class Cell>
  bool scan_cells(const Open& node, std::uint32_t column, double floor, Found& found);
  template <class Use>
  void with_kernel(const Open& node, double floor, Found& found, Use use);
  template <class Use>
  void with_class_kernel(const Open& node, double floor, Found& found, Use use);
  PlaceReader places_of(const Open& node) const;
  // What a cell carries beside its rank.
  std::uint32_t load_of(std::uint32_t at, std::uint32_t begin) const { return has_counts_ ? load_[at] : at - begin; }
  std::uint32_t partition(const Open& node, std::uint32_t column, const Found& test, double& threshold);

  const ForestTask& task_;
  const RankTable& table_;
  const CellRows& rows_;
  const bool has_counts_;
  const std::size_t width_;  // classes, or 2

  // Of the tree's rows, in the order of the nodes.
  std::vector<std::uint32_t> row_;
  std::vector<std::uint32_t> load_;  // of counts class << bits | draws, of weights the class
  std::vector<double> weight_, number_;
  int count_bits_ = 1, load_bits_ = 1;
  double total_weight_ = 0;

  std::vector<Open> stack_;
  std::vector<std::uint32_t> alive_;  // columns that are not known to be constant, of the nodes on the stack
  BestSearch best_;
  RandomSearch random_;
  bool is_gini_ = false;  // whether best_ searches the nodes of this tree
  bool is_best_ = false;  // whether it has searched the last node
  ColumnDraw draw_;
  NodeSums sums_;
  GrownTree tree_;

  // Room for a node's work.
  std::vector<std::uint32_t> count_;  // (n)
  std::vector<std::uint64_t> cells_, other_;
  std::vector<std::int64_t> whole_;     // of each of the node's rows
  std::vector<NumberRow> number_rows_;  // the same
  std::vector<std::int64_t> left_whole_;
  std::vector<double> left_;
  std::vector<std::uint32_t> key_, spare_row_, spare_load_;
  std::vector<double> spare_weight_, spare_number_;
  std::vector<std::uint32_t> constant_;
};

}  // namespace margrove::forest
