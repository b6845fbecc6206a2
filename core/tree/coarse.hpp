// The exact best threshold without a look at every row. Each column's sorted rows are cut into runs of equal length;
// with the weight of each class in each run known, most runs cannot hold a test better than the best so far (see
// `limit` in weighted.hpp), and only the others are walked through. For trees that are grown again and again of the
// same rows with other weights: at the root, where most of the work is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "large_memory.hpp"
#include "tree/coded.hpp"
#include "tree/lists.hpp"
#include "tree/scan.hpp"

namespace margrove::tree {

class Coarse {
 public:
  // Covers the columns of thresholds whose lists hold every row, each with a value, unless they are `coded` (or null).
  Coarse(const Lists& lists, const Coded* coded, std::int64_t n, std::span<const std::int32_t> label,
         std::size_t n_classes, int threads);

  bool covers(std::size_t column) const { return place_[column] != kNone; }
  // Adds the weights up; before any column is searched with these.
  void add_up(const std::int64_t* weight, int threads);
  // What `scan` would find.
  void search(const ScanRules& rules, std::size_t column, const Piece& piece, const NodeSums& node, double floor,
              ScanSpace& space, Candidate& found) const;

 private:
  // Runs of a column, and columns of a word, a byte each: with two classes their weights are 16 KiB, in L1.
  static constexpr std::size_t kRuns = 128, kTogether = 8, kNone = ~std::size_t{0};
  template <class Kernel>
  void find(Kernel&& kernel, std::size_t column, const Piece& piece, Candidate& found) const;

  std::int64_t n_;
  std::span<const std::int32_t> label_;
  std::size_t n_classes_, length_;  // length_: rows of a run
  std::vector<std::size_t> place_;  // of each column among those that are covered
  std::size_t n_covered_ = 0;
  std::vector<double> n_tests_;        // of each column that is covered
  LargeMemory<std::uint64_t> runs_;    // (covered / 8, n): in which run of each of eight columns a row is
  std::vector<std::int64_t> weights_;  // (covered, runs, K)
};

}  // namespace margrove::tree
