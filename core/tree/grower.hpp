// Growing a tree: src/margrove/tree/problem.py says what is asked.
//
// Every open node owns a piece of each column's list. To split it, the rows of one branch are marked, each piece is
// partitioned, and its parts are at once searched for the branches' own tests while they are in the cache. Large nodes
// share the columns among the threads; the subtrees below them are jobs, each done by one thread. What becomes of a
// node depends on its rows alone, so the tree is the same for any number of threads. A node of few rows is grown, with
// everything below it, by `SmallTrees` (small.hpp).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "tree/coarse.hpp"
#include "tree/coded.hpp"
#include "tree/growing.hpp"
#include "tree/lists.hpp"

namespace margrove::tree {

class Grower : public Growing {
 public:
  // The spans are looked at for as long as the grower lives. `label` is empty where the target is a number, and where
  // there are several, which the rules have then.
  Grower(std::vector<Column> columns, std::int64_t n, std::span<const std::int32_t> label, int n_classes,
         ScanRules rules, GrowthRules growth, int threads);
  ~Grower() override;

  bool run(double seconds) override;
  std::int64_t rows_settled() const override { return settled_.load(); }
  std::vector<Node> take() override;
  void restart(std::span<const double> weight) override;
  std::span<const std::uint32_t> row_tags() const override {
    return {rows_.tag, sums_rows() ? static_cast<std::size_t>(n_) : 0};
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Output = std::vector<Node>;
  struct Range;
  struct Open;
  struct Space;
  struct Job;
  struct Branches;

  // Where the target is a number, and where rows have weights, a node is summed up from its rows: what is left of the
  // parent's sums would be rounding where the siblings took all but the lightest.
  bool sums_rows() const { return !n_classes_ || !rules_.weight.empty(); }
  bool has_row_list() const { return rows_.tag != nullptr; }
  void prepare();
  void list_rows(Open& root);
  bool may_flag() const;
  void plant();
  bool start(Time until);
  void open_root();
  void weigh(Open& node);
  bool run_best_first(Time until);
  void summarise(Open& node) const;
  bool can_share(const Open& node) const;
  bool can_share_runs() const;
  void make_room_to_share(std::size_t scans);
  template <class Body>
  void share_columns(const Open& node, std::size_t n_branches, Body body);
  void search(Open& node, Space& space);
  // What a node's rows are by the flags of a group.
  void count(const FlagGroup& group, const Open& node, FlagCounts& counts) const;
  void choose(const Range& range, const FlagCounts& counts, const Open& node, Chooser& chooser, Space& space) const;
  // What the columns of a block offer; `floor` is raised.
  void search_block(const CodedBlock& block, const Open& node, Space& space, const Chooser& chooser, double& floor,
                    std::vector<Candidate>& found) const;
  static void offer_block(const CodedBlock& block, std::vector<Candidate>& found, Chooser& chooser);
  void scan_range(const Range& range, const Open& node, double floor, Space& space, Candidate& found) const;
  // Writes the node with its test down, and finds its children with theirs.
  void split(Open& node, Output& output, Space& space, bool is_shared, std::vector<Open>& children);
  Branches branch_out(const Open& node, Space& space, std::vector<Open>& children) const;
  Branches branch_by_flag(const Open& node, const FlagGroup& group, Space& space, std::vector<Open>& children) const;
  Branches branch_by_code(const Open& node, const CodedBlock& block, Space& space, std::vector<Open>& children) const;
  static void imply(const Open& node, std::uint32_t implied, std::vector<Open>& children);
  void add_rows(NodeSums& sums, const std::uint32_t* tag, std::uint32_t size) const;
  void bound_children(const Open& node, std::vector<Open>& children) const;
  void search_children(const Open& node, const Branches& branches, std::vector<Open>& children, Space& space,
                       bool is_shared);
  void partition(const Range& range, const Branches& branches, const Space& marker, Space& space) const;
  void leave(const Open& node, Output& output);
  // Writes down a leaf, or a subtree of few rows. False if the node has to be split.
  bool finish(const Open& node, Output& output, Space* space);
  std::size_t most_nodes() const;
  void write(const Open& node, const std::vector<Open>& children, Output& output) const;
  void copy_lists();
  const List& list(std::uint32_t column) const;
  const FlagGroup* group_of(const Range& range) const;
  const CodedBlock* block_of(const Range& range) const;
  Piece piece(const Range& range) const;

  std::vector<Column> columns_;
  std::int64_t n_;
  std::span<const std::int32_t> label_;
  int n_classes_;
  ScanRules rules_;
  GrowthRules growth_;
  int threads_;
  std::unique_ptr<Lists> lists_;
  // Where the order is to be kept for further trees, nodes below the root own pieces of a copy of the lists.
  LargeMemory<std::uint32_t> copy_memory_;
  std::vector<List> copies_;
  bool has_copied_ = false;
  std::unique_ptr<Coarse> coarse_;  // made for the second tree of the same rows
  std::unique_ptr<Coded> coded_;    // where there will be further ones
  bool may_be_small_ = false;       // subtrees of few rows are grown on their own
  List rows_;  // all rows in their order; kept if nodes are summed up from rows, or if a list leaves rows out
  std::vector<std::uint32_t> row_memory_;
  std::vector<std::int64_t> whole_weight_;  // of each row, in units of its node
  double weight_ = 0;
  std::vector<std::unique_ptr<Space>> spaces_;    // one for each thread
  std::vector<Candidate> found_;                  // of a node that the threads share, kept: there may be thousands
  std::vector<FlagCounts> counts_;                // the same of its groups
  std::vector<std::vector<Candidate>> of_block_;  // and of the columns of its blocks
  std::vector<Open> stack_;
  Output output_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::atomic<std::size_t> next_job_{0};
  std::atomic<std::int64_t> settled_{0};
  std::int64_t leaves_ = 1, opened_ = 0;
  bool is_started_ = false;
};

}  // namespace margrove::tree
