// The rows in the order of each column, sorted once for a whole tree.
//
// A column's list holds, ascending, one element for each row: its *key* and its *tag*. A key is the rank of the cell's
// value among the column's distinct values (or the code of a category, or the number of an interval or bin), kMissing
// for a missing cell, which so comes last. A tag is the row and, in the low bits, its class: row << shift | class,
// where both find room in 32 bits.
//
// Where more than half of the rows have the same key (zeros of a sparse column, one-hot columns), these rows are left
// out of the list: the column's *mode*. What is in a node and not in the list has the mode's key.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "large_memory.hpp"

namespace margrove::tree {

constexpr std::uint32_t kMissing = 0xFFFFFFFFu, kNoMode = 0xFFFFFFFEu, kModeRow = 0xFFFFFFFFu;

enum class Test : std::uint8_t { threshold, intervals, multiway, subset, one_vs_rest };
enum class CellKind : std::uint8_t { f32, f64, code, sparse32, sparse64 };

inline bool is_sparse(CellKind kind) { return kind == CellKind::sparse32 || kind == CellKind::sparse64; }

// A column as Python hands it over.
struct Column {
  CellKind cells;
  Test test;
  std::int8_t monotone;
  const void* data;  // n numbers or codes, `stride` elements apart; of a sparse column its stored numbers
  std::int64_t stride;
  const std::int32_t* row;       // of a sparse column: the rows of the stored numbers, ascending
  std::int64_t stored;           // how many
  std::int64_t n_codes;          // levels or intervals; 0 for thresholds
  std::span<const double> cuts;  // of intervals; of thresholds that may lie at these places only

  // The cell of a row, or of the place of a stored number. Not for codes.
  double number(std::int64_t i) const {
    if (cells == CellKind::f32 || cells == CellKind::sparse32) return static_cast<const float*>(data)[i * stride];
    return static_cast<const double*>(data)[i * stride];
  }
  double cell(std::int64_t i) const;  // of row i, sparse or not
};

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

struct List {
  std::uint32_t* key = nullptr;
  std::uint32_t* tag = nullptr;
  std::uint32_t size = 0;
  std::uint32_t mode = kNoMode;  // the key of the rows that are left out
  std::uint32_t n_keys = 0;      // keys are below this, missing cells aside
};

class Lists {
 public:
  // `label` is empty where the target is a number. Unless `may_leave_out`, lists hold all rows.
  Lists(std::span<const Column> columns, std::int64_t n, std::span<const std::int32_t> label, int n_classes,
        bool may_leave_out, int threads);

  std::span<const List> lists() const { return lists_; }
  std::span<const Column> columns() const { return columns_; }
  const Tags& tags() const { return tags_; }
  std::int64_t n() const { return n_; }
  double mode_value(std::size_t column) const { return mode_value_[column]; }

  // θ between two neighbouring keys of a node, given a row of each, or kModeRow.
  double threshold(std::size_t column, std::uint32_t left_key, std::uint32_t left_row, std::uint32_t right_row) const;

 private:
  struct Scratch;
  void sort_numbers(std::size_t j, Scratch& scratch);
  void sort_codes(std::size_t j, Scratch& scratch);
  void sort_sparse(std::size_t j);
  void settle(std::size_t j, std::uint32_t size);
  std::uint32_t tag_of(std::uint32_t row) const {
    return label_.empty() || tags_.label ? row : row << tags_.shift | static_cast<std::uint32_t>(label_[row]);
  }

  std::span<const Column> columns_;
  std::int64_t n_;
  std::span<const std::int32_t> label_;
  bool may_leave_out_;
  Tags tags_;
  LargeMemory<std::uint32_t> memory_;
  std::vector<List> lists_;
  std::vector<double> mode_value_;  // of each column that has a mode
};

}  // namespace margrove::tree
