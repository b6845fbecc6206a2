// The rows in the order of each column, sorted once for a whole tree.
//
// A column's list holds, ascending, one element for each row: its *key* and its *tag*. A key is the rank of the cell's
// value among the column's distinct values (or the code of a category, or the number of an interval or bin), kMissing
// for a missing cell, which so comes last. A tag is the row and, in the low bits, its class: row << shift | class,
// where both find room in 32 bits.
//
// Where more than half of the rows have the same key (zeros of a sparse column, one-hot columns), these rows are left
// out of the list: the column's *mode*. What is in a node and not in the list has the mode's key.
//
// A column of few values may have flags in place of a list (flags.hpp).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "large_memory.hpp"
#include "tree/column.hpp"
#include "tree/flags.hpp"
#include "tree/sorting.hpp"

namespace margrove::tree {

// How a tag is read.
struct Tags {
  int shift = 0;
  std::uint32_t mask = 0;
  const std::int32_t* label = nullptr;  // the classes by row, where tags have no room for them
  std::uint32_t row(std::uint32_t tag) const { return tag >> shift; }
  std::uint32_t label_of(std::uint32_t tag) const {
    return label ? static_cast<std::uint32_t>(label[tag]) : tag & mask;
  }
};

// How rows and these classes share a tag. `label` is empty where the target is a number.
Tags tags_for(std::span<const std::int32_t> label, std::int64_t n, int n_classes);

struct List {
  std::uint32_t* key = nullptr;
  std::uint32_t* tag = nullptr;
  std::uint32_t size = 0;
  std::uint32_t mode = kNoMode;  // the key of the rows that are left out
};

class Lists {
 public:
  // `label` is empty where the target is a number. With `n_bins` > 0 thresholds are cut into bins (`Binning`). Unless
  // `may_leave_out`, lists hold all rows. There are none before they are sorted. `may_flag`: flags may take their
  // place.
  Lists(std::span<const Column> columns, std::int64_t n, std::span<const std::int32_t> label, int n_classes, int n_bins,
        bool may_leave_out, bool may_flag, int threads);

  // The same columns as `sorted`, which was made without classes, for rows of these classes: nothing is sorted again.
  Lists(const Lists& sorted, std::span<const Column> columns, std::span<const std::int32_t> label, int n_classes,
        int threads);
  // Whether these can serve where such lists are wanted.
  bool can_serve(std::int64_t n, std::size_t columns, int n_bins, bool may_leave_out) const;

  // Sorts as many columns as there is time for. True when all are.
  bool sort(std::chrono::steady_clock::time_point until);

  std::span<const List> lists() const { return lists_; }
  std::span<const Column> columns() const { return columns_; }
  bool has_flags() const { return !groups_.empty(); }
  // The group that a column is in, or null.
  const FlagGroup* group_of(std::size_t column) const {
    return group_of_[column] < 0 ? nullptr : &groups_[group_of_[column]];
  }
  const Tags& tags() const { return tags_; }
  std::uint32_t tag_of(std::uint32_t row) const {
    return label_.empty() || tags_.label ? row : row << tags_.shift | static_cast<std::uint32_t>(label_[row]);
  }
  double mode_value(std::size_t column) const { return mode_value_[column]; }

  // θ between two neighbouring keys of a node, given a row of each, or kModeRow.
  double threshold(std::size_t column, std::uint32_t left_key, std::uint32_t left_row, std::uint32_t right_row) const;

 private:
  std::size_t most_fetched() const;
  void sort_some(std::size_t first, std::size_t last, SortSpace& space);
  void sort_numbers(std::size_t j, const ColumnBits& bits, SortSpace& space, FlagGroup& group);
  bool flag(std::size_t j, const FewValues& few, FlagGroup& group);
  bool flag_sparse(std::size_t j, FlagGroup& group);
  void close(FlagGroup& group);
  void list_few(std::size_t j, const FewValues& few);
  void sort_codes(std::size_t j, SortSpace& space);
  void sort_sparse(std::size_t j, SortSpace& space);
  void bin_sparse(std::size_t j, std::int64_t zeros);
  void settle(std::size_t j, std::uint32_t size);
  void make_room(std::size_t j, std::size_t size);

  std::span<const Column> columns_;
  std::int64_t n_;
  std::span<const std::int32_t> label_;
  int n_bins_;
  bool may_leave_out_, may_flag_ = false, may_flag_sparse_ = false, is_sorted_ = false;
  int threads_;
  std::atomic<std::int64_t> next_{0};   // of the groups of columns that are sorted in one go
  std::unique_ptr<SortSpaces> spaces_;  // while they are sorted
  Tags tags_;
  // Lists are as long as they turn out to be, so that of a table of one-hot columns little memory is touched.
  std::vector<LargeMemory<std::uint32_t>> memory_;
  std::uint32_t* free_ = nullptr;      // in the last of these
  std::size_t n_free_ = 0, most_ = 0;  // there, and what all lists need at most
  std::mutex asking_;
  std::vector<List> lists_;
  std::vector<FlagGroup> groups_;
  std::vector<std::int32_t> group_of_;     // of each column; -1: it has a list
  std::vector<double> mode_value_;         // of each column that has a mode
  std::vector<std::vector<double>> cuts_;  // of each column that is binned
};

}  // namespace margrove::tree
