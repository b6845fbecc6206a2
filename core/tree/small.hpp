// Subtrees of few rows. Most nodes of a deep tree are in these, and their cost is per column, not per row.
//
// Each cell is replaced once by its rank among the subtree's values of its column: one byte. At a node the ranks of
// sixteen columns are sorted side by side by a network of exchanges, and their tests are scored side by side too, in
// single precision. Only a column whose best score is as good as the best of all, up to what such scores may be wrong
// by, is then scanned (scan.hpp). So the test found is the one that scanning all columns finds, to the last bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/growing.hpp"
#include "tree/lists.hpp"

namespace margrove::tree {

class SmallTrees {
 public:
  // The most rows of a subtree. Measured on letter and magic04: with 64 deep regression trees take up to a tenth
  // longer, and 181 is no faster. Ranks are bytes, and sums of numbers of 16 bits times the rows fit 31 bits.
  static constexpr std::uint32_t kMostRows = 128;
  static_assert(kMostRows <= 256 && kMostRows * kMostRows * 65535u < (1u << 31));
  static constexpr std::uint32_t kLanes = 16;  // columns side by side: 16-bit numbers in a vector of AVX2

  // Whether trees of these columns and rules may be grown so: no cell may be missing.
  static bool can_grow(std::span<const Column> columns, std::span<const List> lists, const ScanRules& rules,
                       const GrowthRules& growth);

  // What is handed over must outlive this. `weight` is that of all rows.
  SmallTrees(std::span<const Column> columns, const Lists& lists, const ScanRules& rules, const GrowthRules& growth,
             std::int64_t n, double weight);

  // Takes the rows of the next subtree, by their tags ...
  void begin(std::span<const std::uint32_t> tags);
  // ... and its columns one by one, ascending: the part of the list that belongs to its rows.
  void add(std::uint32_t column, const Piece& piece);
  void add(const FlagGroup& group);
  // Grows it below `root`, whose rows have been summed up, and writes its nodes down. The rows of a leaf begin at
  // `first_row` + its place in `tags()`.
  void grow(const OpenNode& root, std::uint32_t first_row, std::vector<Node>& output);
  // The rows, those of a leaf side by side.
  std::span<const std::uint32_t> tags() const { return ordered_tags_; }

 private:
  struct Waiting {
    std::uint32_t begin, size, branch;
    std::int64_t depth, parent;
  };
  void sum_up(const Waiting& node);
  void search(const Waiting& node);
  void search_pair(const Waiting& node);
  // Those of column c, kLanes apart.
  std::uint8_t* rank_of(std::size_t c) { return ranks_.data() + c / kLanes * kLanes * tags_.size() + c % kLanes; }
  void score_classes(std::uint32_t begin, std::uint32_t size);
  void score_numbers(std::uint32_t begin, std::uint32_t size);
  void count_flags(const Waiting& node, std::size_t g, bool is_two);
  const std::uint64_t* flags_of(std::size_t g) const { return flags_.data() + g * tags_.size(); }
  std::size_t group_with(std::uint32_t column) const;
  void scan_numbers(std::size_t c, std::uint32_t begin, std::uint32_t size, double floor, Candidate& found);
  void scan_lane(std::size_t c, std::uint32_t begin, std::uint32_t size, double floor, Candidate& found);
  std::uint32_t divide(const Waiting& node);

  std::span<const Column> columns_;
  const Lists& lists_;
  const ScanRules& rules_;
  const GrowthRules& growth_;
  double weight_;
  bool has_classes_;

  std::vector<std::uint8_t> place_of_row_;  // (n)
  std::vector<std::uint32_t> tags_;         // of the subtree's rows, by place: rows of a class are side by side
  std::vector<std::uint32_t> taken_;        // the columns
  std::vector<std::uint8_t> ranks_;         // (taken / kLanes, places, kLanes)

  std::vector<const FlagGroup*> groups_;  // of columns that are not among those
  std::vector<std::uint64_t> flags_;      // (groups, places)
  std::vector<FlagCounts> counts_;        // of each group at a node

  std::vector<double> numbers_;  // of the subtree's rows, by place, where the target is a number
  struct Cut {
    std::size_t node;  // in the output
    std::uint32_t column, left_row, right_row;
  };
  std::vector<Cut> cuts_;  // whose thresholds are written when all are known: rows are far apart in memory

  std::vector<Waiting> waiting_;
  std::vector<std::uint8_t> places_, spare_;  // those of a node side by side
  std::vector<std::uint32_t> ordered_tags_;
  OpenNode node_;
  Candidate candidate_;
  ScanSpace scan_;
  std::vector<std::uint16_t> cells_;  // of a node: rank << 8 | place among its rows, sorted, kLanes columns together
  std::vector<std::uint32_t> wide_cells_;  // where the target is a number: the same << 16 | number
  std::vector<float> score_;               // the best of each column, and ...
  std::vector<std::uint16_t> n_tests_;     // ... how many tests it has
  std::vector<std::uint32_t> key_, tag_;   // of a column that is scanned
};

}  // namespace margrove::tree
