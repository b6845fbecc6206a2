// The rows of a column by their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tree/column.hpp"

namespace margrove::tree {

// Room to sort n rows in.
struct SortSpace {
  std::vector<std::uint64_t> pairs, other;
  std::vector<std::uint32_t> bits;
  explicit SortSpace(std::size_t n) : pairs(n), other(n) {}
};

// Bits whose order as whole numbers is the order of the floats; -0 is 0. Missing cells come last: kMissing.
std::uint32_t ordered_bits(float x);
std::uint64_t ordered_bits(double x);

// The rows of a dense column of numbers, ascending: rank << 32 | row, where equal values have equal ranks, counted from
// 0, and missing cells the rank kMissing. `bits` are those of a column of floats; empty for doubles.
const std::uint64_t* ranked_rows(const Column& column, std::size_t n, std::span<const std::uint32_t> bits,
                                 SortSpace& space);

// A column cut into at most n_bins bins at quantiles: `quantile_cuts` of src/margrove/tree/thresholds.py.
class Binning {
 public:
  // The next larger value: a row that has it (kModeRow: a zero that is not stored), and how many have.
  void add(std::uint32_t row, std::uint32_t rows) { runs_.push_back({row, rows}); }
  void finish(const Column& column, int n_bins);

  std::uint32_t bin(std::uint32_t rank) const { return bin_[rank]; }
  const std::vector<double>& cuts() const { return cuts_; }

 private:
  struct Run {
    std::uint32_t row, rows;
  };
  std::vector<Run> runs_;           // by rank
  std::vector<std::uint32_t> bin_;  // by rank
  std::vector<double> cuts_;
};

// Halfway between two numbers, or the lower one where no number lies between.
double halfway(double low, double high);

}  // namespace margrove::tree
