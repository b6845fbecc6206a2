// Growing from bins: columns of numbers cut into at most 255 bins, one byte a cell, so that a node's rows need only be
// counted. Of two children the smaller is counted, the other is what is left of their parent (LightGBM's subtraction).
// Columns of two values whose rarer ones never meet in a row, as one-hot columns, share a byte (its bundles).
// For classes; what is more general is grown by `Grower`, with the same bins and the same tests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "large_memory.hpp"
#include "tree/growing.hpp"
#include "tree/lists.hpp"

namespace margrove::tree {

// What is counted: rows, as std::uint32_t, or their weights, as std::int64_t multiples of a unit so small that nothing
// of them is lost, and so that sums and differences are exact.
template <class Amount>
class BinnedGrower final : public Growing {
  static constexpr bool kIsWeighted = std::is_same_v<Amount, std::int64_t>;

 public:
  BinnedGrower(std::vector<Column> columns, std::int64_t n, std::span<const std::int32_t> label, int n_classes,
               ScanRules rules, GrowthRules growth, int threads);
  ~BinnedGrower() override;

  bool run(double seconds) override;
  std::int64_t rows_settled() const override { return settled_; }
  std::vector<Node> take() override;
  void restart(std::span<const double> weight) override;
  std::span<const std::uint32_t> row_tags() const override { return rows_; }

 private:
  using Counts = std::vector<Amount>;  // of each column, bin and class
  struct Open;
  struct Binned;

  void prepare();
  void plant();
  bool start(std::chrono::steady_clock::time_point until);
  void open_root();
  void weigh();
  std::span<const Amount> amounts(const NodeSums& node) const;
  void settle_sums(NodeSums& sums) const;
  bool bin_columns(std::chrono::steady_clock::time_point until);
  std::vector<std::uint8_t> bin_column(std::size_t column, const ColumnBits& bits, SortSpace& space);
  void bundle(std::vector<std::vector<std::uint8_t>>& tracks);
  void count(const Open& node, Counts& counts) const;
  void search(Open& node, const Counts& counts) const;
  void scan_column(std::uint32_t column, const NodeSums& node, const Counts& counts, double floor,
                   Candidate& found) const;
  double excess_of(const NodeSums& node, const Amount* left, std::int64_t all_left, std::size_t heaviest) const;
  void split(Open& node, std::vector<Open>& children);
  std::uint32_t partition(const Open& node);
  std::unique_ptr<Counts> fresh_counts();
  void give_back(std::unique_ptr<Counts> counts);
  void leave(const Open& node);
  bool can_share(std::int64_t rows) const;

  std::vector<Column> columns_;
  std::int64_t n_;
  std::span<const std::int32_t> label_;
  std::size_t n_classes_;
  ScanRules rules_;
  GrowthRules growth_;
  int threads_;
  // Where a column's bin is found: the byte of a track, or, in a bundle, whether that byte is `value`.
  struct Place {
    std::size_t track = 0;
    std::uint32_t value = 0;     // 0: the byte is the bin
    std::uint32_t rare_bin = 0;  // the bin of rows whose byte is `value`; the other bin's rows have another byte
  };
  std::vector<Place> place_;
  std::unique_ptr<Binned> binned_;                     // while columns are binned
  std::vector<std::vector<std::uint32_t>> rare_rows_;  // of columns of two values, while they are bundled
  std::size_t n_tracks_ = 0;
  LargeMemory<std::uint64_t> codes_;       // (tracks / 8, n): the bytes of eight tracks
  std::vector<std::vector<double>> cuts_;  // of each column
  std::vector<std::size_t> first_;  // where each track's counts begin; a column's last bin is that of missing cells
  std::vector<std::uint32_t> rows_, spare_;  // row << shift | class, each node's together
  std::vector<std::int64_t> whole_weight_;   // of each row, in units
  double unit_ = 1, weight_ = 0;             // weight_: of all rows
  std::vector<std::unique_ptr<Counts>> free_;
  std::size_t kept_ = 0, most_kept_ = 0;  // counts that open nodes hold on to
  std::vector<Open> stack_;               // a heap, where the number of leaves is limited
  std::vector<Node> output_;
  std::int64_t settled_ = 0, leaves_ = 1, opened_ = 0;
  bool is_started_ = false;
};

// Whether such a tree can be grown from bins.
bool can_grow_binned(std::span<const Column> columns, const ScanRules& rules, const GrowthRules& growth);

}  // namespace margrove::tree
