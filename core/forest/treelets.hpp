// Trees cut into treelets of at most fifteen tests, for processors with AVX-512: all tests of a treelet are made at
// once, in the lanes of one comparison, and lead past four or more levels of the tree.
//
// The ways out of a treelet are numbered from left to right. A test that fails rules out the ways that lie left of it,
// and the first that is not ruled out is the one to take (as in QuickScorer: Lucchese and others, SIGIR 2015).
#pragma once

#include <cstdint>
#include <vector>

#include "forest/walk.hpp"
#include "large_memory.hpp"

namespace margrove::forest {

inline constexpr int kTests = 15, kWays = kTests + 1;

struct alignas(64) Treelet {
  float threshold[kWays];        // rounded down; NaN behind the last test
  std::uint16_t left_of[kWays];  // the tests that lead to a way out where they hold, one bit each
  std::uint16_t column[kWays];   // places in a staged row; behind them the tests that a missing cell passes
  std::int32_t way[kWays];       // the next treelet, or ~leaf
};

// Rows laid out for treelets: the columns that are tested, as floats rounded down.
struct StagedRows {
  LargeMemory<float> cells;
  bool is_rounded = false, has_missing = false;
};

class Treelets {
 public:
  // Whether this processor and this forest suit them.
  static bool suit(const ForestView& forest);
  Treelets(const ForestView& forest, int threads);

  template <class T>
  StagedRows staged(const T* cells, std::int64_t d, std::int64_t size) const;
  // The leaf of each row in tree t.
  template <class T>
  void walk(std::int64_t t, const StagedRows& rows, const T* cells, std::int64_t d, std::int64_t size,
            std::int32_t* leaf) const;

 private:
  std::vector<Treelet> cut(std::int64_t t, const std::vector<std::uint16_t>& place) const;
  template <class T>
  std::int32_t leaf_of(std::int64_t t, const T* row) const;

  ForestView forest_;
  // Tested columns that follow each other, and where they are in a staged row.
  struct Run {
    std::int64_t from, to, size;
  };
  std::vector<Run> runs_;
  std::int64_t n_columns_ = 0, stride_ = 0;  // those that are tested, and floats of a staged row
  std::vector<std::int64_t> start_;          // of each tree's treelets
  LargeMemory<Treelet> treelets_;
};

}  // namespace margrove::forest
