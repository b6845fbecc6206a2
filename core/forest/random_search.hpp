// The best of the random thresholds of a node's columns, of numbers, or of classes where weights are numbers of draws:
// the cells of some columns are fetched side by side, and looked at twice, for their ends and for what lies left of
// their thresholds.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "forest/best_search.hpp"
#include "forest/column_draw.hpp"
#include "forest/kernels.hpp"
#include "forest/task.hpp"
#include "large_memory.hpp"

namespace margrove::forest {

// The cells of a table, those of a row side by side: the given ones if they lie so, else a copy.
class CellRows {
 public:
  explicit CellRows(const ForestTask& task);
  // f(cells, stride): the cell of column j in row i is cells[i * stride + j].
  template <class F>
  auto visit(F f) const {
    if (is_single_) return f(static_cast<const float*>(cells_), stride_);
    return f(static_cast<const double*>(cells_), stride_);
  }

  const Flags& flags() const { return flags_; }  // of the columns of two values

 private:
  template <class T>
  void lay_out(const ForestTask& task);
  template <class T>
  void find_flags(const T* cells, const ForestTask& task);
  const void* cells_ = nullptr;
  std::int64_t stride_ = 0;
  bool is_single_ = true;
  LargeMemory<std::byte> copy_;
  Flags flags_;
};

class RandomSearch {
 public:
  static constexpr std::uint32_t kLanes = 8;  // columns side by side
  RandomSearch(const ForestTask& task, const CellRows& cells);
  void begin_tree(int count_bits) { count_bits_ = count_bits; }
  // False if the columns looked at offer no test that is allowed.
  bool search(const NodeRows& node, const NodeSums& sums, std::uint32_t& column, Found& best);
  // Appends those of the columns begin .. end − 1 of `alive` that are not known to be constant in the last node. False
  // if these are all.
  bool list_alive(std::vector<std::uint32_t>& alive) const;

 private:
  template <class T>
  std::size_t look_at(const NodeRows& node, const NodeSums& sums, const T* cells, std::int64_t stride,
                      std::uint32_t& column, Found& best);
  struct Lanes {
    bool is_test[kLanes] = {};  // else the column is constant
    double cut[kLanes] = {};
  };
  template <class T>
  void choose_of_counts(const NodeRows& node, const NodeSums& sums, const T* fetched, const T* bound,
                        const Lanes& lanes, std::uint32_t& column, Found& best);
  template <class T>
  void choose_of_weights(const NodeRows& node, const NodeSums& sums, const T* fetched, const T* bound,
                         const Lanes& lanes, std::uint32_t& column, Found& best);
  template <class T>
  void choose_of_numbers(const NodeRows& node, const NodeSums& sums, const T* fetched, const T* bound,
                         const Lanes& lanes, std::uint32_t& column, Found& best);
  double least_purity(const NodeSums& sums, const Found& best, const bool* is_test, double* purity) const;
  Found judged(const NodeSums& sums, std::size_t lane, std::int64_t rows);
  void offer(const NodeSums& sums, const Lanes& lanes, std::size_t lane, const Found& found, std::uint32_t& column,
             Found& best) const;

  const ForestTask& task_;
  const CellRows& cells_;
  int count_bits_ = 0;
  ColumnDraw draw_;
  std::size_t n_alive_ = 0;
  std::vector<std::uint64_t> varying_;  // room
  std::vector<std::uint32_t> drawn_;    // the columns that may be looked at
  std::vector<std::uint32_t> waiting_, constant_;
  std::vector<std::uint8_t> is_constant_;  // (d)
  std::vector<double> fetched_;            // (rows, lanes), of floats or doubles
  std::vector<std::int64_t> draws_;        // (classes that occur, lanes) on the left
  std::vector<double> weights_;            // (classes + 1, lanes) on the left, where they have weights
  std::vector<double> left_;
};

}  // namespace margrove::forest
