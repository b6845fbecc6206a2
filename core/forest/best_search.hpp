// The best test of a node under gini, where weights are numbers of draws: sums are whole numbers, so rows may be added
// up in any order, and most tests are told from sums of many rows at a time. And under squared error.
//
//   columns of two values     one test each: the flags of up to 64 columns are added up side by side
//   nodes of few rows         columns are sorted and scored side by side in vectors (lanes.hpp)
//   nodes of many rows        rows are counted by intervals of ranks; only intervals that may hold the best test are
//                             looked at row by row (buckets.hpp)
//
// The test found is the one that the kernels of kernels.hpp find among all columns, each sorted.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "forest/buckets.hpp"
#include "forest/column_draw.hpp"
#include "forest/kernels.hpp"
#include "forest/lanes.hpp"
#include "forest/task.hpp"

namespace margrove::forest {

// The rows of a node. Where weights are numbers of draws, they lie class by class.
struct NodeRows {
  const std::uint32_t* row;
  std::uint32_t size;
  std::uint64_t path;
  std::span<const std::uint32_t> alive;  // the columns that are not known to be constant
  const std::uint32_t* load;             // of draws what cells carry, class << count bits | draws; of weights the class
  const double* weight;                  // of classes that have weights
  const NumberRow* number;               // of numbers
};

class BestSearch {
 public:
  BestSearch(const ForestTask& task, const RankTable& table);

  // Whether trees of this task, whose rows weigh so much, are searched so. Then the loads of its rows have these bits.
  bool begin_tree(std::int64_t weight, int count_bits, int load_bits);
  // The same of a node whose target is a number.
  bool begin_node(const NodeRows& node, const NodeSums& sums);
  // False if the columns looked at offer no test that is allowed.
  bool search(const NodeRows& node, const NodeSums& sums, std::uint32_t& column, Found& best);
  // Appends the columns that are not known to be constant in the last node. False if these are all that were alive.
  bool list_alive(std::vector<std::uint32_t>& alive) const;
  // Of the last node: the ranks of its rows, if they are still known; else null.
  const std::uint32_t* ranks_of(std::uint32_t column) const;

 private:
  struct Candidate {
    std::uint32_t column, cut;
    double excess;
  };
  static constexpr std::size_t kTogether = 8;  // columns of a node of many rows
  // A column's rows, counted: rank r is in bucket (r − low) >> shift.
  struct Buckets {
    std::uint32_t column = 0, n = 0, low = 0;
    int shift = 0;
    const std::uint32_t* key = nullptr;  // the ranks of the rows
    std::vector<std::uint64_t> packed;   // of two classes: see `Packed`, up to the begin of each bucket
    std::vector<std::int32_t> counts;    // of more: (classes, buckets), and the rows, up to the end of each
    ClassScores scores;
    double best = 0;
  };
  void begin(const NodeRows& node, const NodeSums& sums);
  bool prepare_lanes(const NodeRows& node, const NodeSums& sums);
  bool is_worth_lanes() const;
  bool search_pair(std::uint32_t& column, Found& best);
  std::size_t take(std::uint32_t column);
  std::size_t take_waiting();
  void evaluate();
  void drop(std::uint32_t column);
  void offer(std::uint32_t column, const Found& found);
  double floor() const;
  void choose(bool takes_all, std::uint32_t& column, Found& best);

  void evaluate_flags();
  void offer_flag(std::uint32_t column, const std::uint64_t* set);
  bool fill_lane(std::uint32_t column);
  void evaluate_lanes();
  void evaluate_number_lanes();
  void scan_lane(std::uint32_t lane);
  std::size_t evaluate_large();
  void fetch_ranks(std::size_t size);
  void scan_sorted(std::uint32_t column, std::uint32_t least, std::uint32_t most);
  void choose_buckets(std::uint32_t least, std::uint32_t most);
  void count_two();
  void count_many();
  void judge_two();
  void judge_many();
  template <class Kernel, class Put>
  void refine(Kernel& kernel, double unit, double rounding, Put put);
  std::span<const std::uint32_t> pick();

  template <class Use>
  void with_kernel(Found& found, Use use);
  template <class Weights>
  void put(GiniTwo<CountReader>& kernel, std::int64_t rows, Weights weight_of) const;
  template <class Weights>
  void put(GiniMany<CountReader>& kernel, std::int64_t rows, Weights weight_of) const;
  CountReader reader() const { return {count_bits_, (1u << count_bits_) - 1}; }
  bool is_two() const { return labels_.size() == 2; }
  bool has_numbers() const { return !task_.has_classes(); }

  const ForestTask& task_;
  const RankTable& table_;
  int most_rank_bits_ = 0, count_bits_ = 0, load_bits_ = 0;

  // Of the node under way.
  NodeRows node_{};
  const NodeSums* sums_ = nullptr;
  std::vector<std::uint32_t> labels_;           // the classes that occur, ...
  std::vector<std::int32_t> totals_;            // ... and their weights
  std::vector<std::uint64_t> varying_;          // room
  std::vector<std::uint32_t> drawn_;            // the columns that may be looked at
  std::vector<std::uint32_t> flags_, numbers_;  // taken up, to be evaluated: columns with flags, and others, by lane
  std::vector<std::uint32_t> waiting_;          // taken up, and not fetched yet
  std::vector<std::uint32_t> fetched_;          // the last whose ranks were, into keys_
  std::vector<std::uint32_t> constant_;         // found to be so
  std::vector<std::uint8_t> is_constant_;       // (d)
  std::vector<std::uint32_t> order_;            // (d): of the columns taken up
  std::uint32_t n_taken_ = 0, lanes_ = kMostLanes;
  bool has_lanes_ = false;
  std::vector<Candidate> candidates_;
  double best_excess_ = 0;

  bool suits_lanes_ = false;
  NumberRows number_rows_;
  double number_unit_ = 0, root_error_ = 0, share_error_ = 0;  // see evaluate_number_lanes

  // At a node of many rows.
  std::vector<std::uint32_t> keys_;  // the ranks of the rows, of some columns
  std::array<Buckets, kTogether> buckets_;
  Buckets* own_ = nullptr;  // of the column under way
  std::vector<std::uint8_t> is_picked_;
  std::vector<std::uint32_t> picked_, other_;
  std::vector<std::uint64_t> sorted_, spare_;  // cells of 32 or 64 bits

  // Room.
  ColumnDraw draw_;
  std::vector<std::uint32_t> cells_;  // (rows, lanes)
  std::vector<std::uint64_t> flag_sums_;
  std::vector<std::int64_t> left_;
};

}  // namespace margrove::forest
