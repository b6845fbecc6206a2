// Trees cut into treelets of at most fifteen tests, for processors with AVX-512: all tests of a treelet are made at
// once, in the lanes of one comparison, and lead past four or more levels of the tree.
//
// The ways out of a treelet are numbered from left to right. A test that fails rules out the ways that lie left of it,
// and the first that is not ruled out is the one to take (as in QuickScorer: Lucchese and others, SIGIR 2015).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "large_memory.hpp"

namespace margrove::tree {

// Trees of threshold tests, one behind the other. All child and leaf numbers are within their trees, whose children
// stand behind their parents.
struct ThresholdTrees {
  std::span<const std::int64_t> start;          // (T + 1)
  std::span<const std::int32_t> feature;        // (m), -1 at a leaf
  std::span<const double> threshold;            // (m)
  std::span<const std::int32_t> left;           // (m) or empty: then the child for x ≤ θ is the next node
  std::span<const std::int32_t> right;          // (m): the second child, of a leaf its number
  std::span<const std::int8_t> missing_branch;  // (m) or empty: then a missing cell goes right
  std::int64_t n_trees() const { return static_cast<std::int64_t>(start.size()) - 1; }
};

inline constexpr int kTests = 15, kWays = kTests + 1;

struct alignas(64) Treelet {
  float threshold[kWays];        // rounded down; NaN behind the last test
  std::uint16_t left_of[kWays];  // the tests that lead to a way out where they hold, one bit each
  std::uint16_t column[kWays];   // places in a row; behind them the tests that a missing cell passes
  std::int32_t way[kWays];       // the next treelet, or ~leaf
};

// Dense rows, one behind the other; so many cells can be read from the first on.
template <class T>
struct RowBlock {
  const T* cells;
  std::int64_t d, size, readable;
  const T* row(std::int64_t i) const { return cells + i * d; }
};

// Rows as treelets look at them: floats, rounded down.
struct StagedRows {
  const float* cells;
  std::int64_t stride;
  std::vector<float> own;  // where the given rows are not so
  bool is_rounded = false, has_missing = false;
};

class Treelets {
 public:
  // Whether this processor and these trees suit them.
  static bool suit(const ThresholdTrees& trees);
  // The arrays must outlive it.
  Treelets(const ThresholdTrees& trees, int threads);

  template <class T>
  StagedRows staged(const RowBlock<T>& block) const;
  // The leaf of each row in tree t.
  template <class T>
  void walk(std::int64_t t, const StagedRows& rows, const RowBlock<T>& block, std::int32_t* leaf) const;

 private:
  std::vector<Treelet> cut(std::int64_t t, const std::vector<std::uint16_t>& place) const;
  template <class T>
  std::int32_t leaf_of(std::int64_t t, const T* row) const;

  ThresholdTrees trees_;
  bool is_in_place_ = false;           // a column's place is its number
  std::vector<std::int32_t> columns_;  // else of each place
  std::int64_t stride_ = 0;            // floats that are read of a row
  std::vector<std::int64_t> start_;    // of each tree's treelets
  LargeMemory<Treelet> treelets_;
};

}  // namespace margrove::tree
