// The rows of a column by their values.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "large_memory.hpp"
#include "tree/column.hpp"

namespace margrove::tree {

// Bits whose order as whole numbers is the order of the floats; -0 is 0. Missing cells come last: kMissing.
inline std::uint32_t ordered_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);
  return x != x ? kMissing : bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u);
}
inline std::uint64_t ordered_bits(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return x != x ? ~std::uint64_t{0} : bits ^ (bits >> 63 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

// The cells of a column with few different values as small codes: counting rows by their code is several times faster
// than sorting them. Codes are the offsets of whole numbers from the least, or places in a small table of the values.
class FewValues {
 public:
  // Whether there are few. The first rows tell columns of other numbers, which are given up.
  bool find(std::span<const std::uint32_t> bits);

  std::uint32_t n_ranks() const { return n_ranks_; }  // without the missing cells
  std::uint32_t rows(std::uint32_t rank) const { return rows_[used_[rank]]; }
  std::uint32_t a_row(std::uint32_t rank) const { return row_[used_[rank]]; }  // of this rank
  std::uint32_t missing() const { return n_missing_; }
  std::uint32_t rank(std::size_t row) const { return rank_of_[code_[row]]; }  // kMissing, if so
  std::size_t n_codes() const { return rows_.size(); }
  std::uint32_t code(std::size_t row) const { return code_[row]; }
  // The codes that occur, in the order of their values; that of missing cells is the last.
  std::span<const std::uint16_t> ordered_codes() const { return used_; }

 private:
  // Of the table, whose places are numbered by a byte; at most half of them full, so that searches stay short.
  static constexpr std::size_t kPlaces = 256, kMost = 128;
  bool find_two(std::span<const std::uint32_t> bits);
  bool find_whole(std::span<const std::uint32_t> bits);
  bool find_in_table(std::span<const std::uint32_t> bits);
  void count(std::span<const std::uint32_t> bits, std::size_t n_codes);

  std::vector<std::uint16_t> code_, used_;           // of each row; by rank
  std::vector<std::uint32_t> rows_, row_, rank_of_;  // by code
  std::uint32_t n_ranks_ = 0, n_missing_ = 0;
};

// The ordered bits of a dense column of numbers: of floats, and of doubles all of which are floats, as floats.
struct ColumnBits {
  std::span<const std::uint32_t> narrow;
  std::span<const std::uint64_t> wide;
};

// Room to sort n rows in, for one thread. It is kept from column to column: fresh memory is expensive.
struct SortSpace {
  static constexpr std::size_t kTogether = 16;  // columns that are best fetched in one go: a line of floats
  LargeMemory<std::uint64_t> pairs, other;
  FewValues few;
  explicit SortSpace(std::size_t n) : pairs(large_memory<std::uint64_t>(n)), other(large_memory<std::uint64_t>(n)) {}

  // The bits of those of the columns that are dense numbers; nothing for others. They lie side by side in memory, so
  // some rows are read at a time: going through all rows once for each column would fetch every line once for each.
  std::vector<ColumnBits> fetch(std::span<const Column> columns, std::size_t n);

 private:
  LargeMemory<std::uint32_t> narrow_;
  LargeMemory<std::uint64_t> wide_;
  std::size_t n_narrow_ = 0, n_wide_ = 0;
};

// A space for each thread, made when it is first used.
class SortSpaces {
 public:
  SortSpaces(std::size_t n, int threads) : n_(n), spaces_(std::max(threads, 1)) {}
  SortSpace& own();

 private:
  std::size_t n_;
  std::vector<std::unique_ptr<SortSpace>> spaces_;
};

// Sorts n numbers by their high 32 bits; the low ones must ascend, and stay in their order among equals. `other` is
// room for as many. Returns where they end up.
std::uint64_t* sort_pairs(std::uint64_t* pairs, std::uint64_t* other, std::size_t n);

// The rows of a dense column of numbers, ascending: rank << 32 | row, where equal values have equal ranks, counted from
// 0, and missing cells the rank kMissing.
const std::uint64_t* ranked_rows(const ColumnBits& bits, SortSpace& space);

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
