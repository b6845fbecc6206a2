// Sending rows down a tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rows.hpp"
#include "tree/lists.hpp"

namespace margrove::tree {

// The arrays of model.py that decide.
struct TreeView {
  std::span<const std::int32_t> feature;  // (m)
  std::span<const double> threshold;
  std::span<const std::int32_t> child_start;  // (m + 1)
  std::span<const std::int32_t> child;
  std::span<const std::int64_t> level_start;  // (m + 1)
  std::span<const std::int32_t> level_branch;
  std::span<const std::int32_t> missing_branch, default_branch;
};

// The leaf of each row, by thresholds alone.
void apply_rows(const TreeView& tree, const AnyRows& rows, int threads, std::int32_t* leaf);
// The leaf of each row, by tests of any kind.
void apply_columns(const TreeView& tree, std::span<const Column> columns, std::int64_t n, int threads,
                   std::int32_t* leaf);

// Of each node of a regression tree: mean, weight, Σ w (y − mean)², and the part of it between the children's means.
struct NumberSums {
  std::vector<double> value, weight, square, apart;  // (m)
};
// `leaf` is that of each row; `weight` is empty where all are one; `shift` is about the mean of all numbers.
NumberSums sum_up_numbers(const TreeView& tree, std::span<const std::int32_t> leaf, std::span<const double> number,
                          std::span<const double> weight, double shift);

// Trees that vote: their arrays one behind the other, and where each begins.
struct GroveView {
  TreeView trees;
  std::span<const std::int64_t> start;  // (T + 1)
  std::span<const std::int32_t> label;  // (m): the class that each node votes for
  std::span<const double> vote;         // (T)
  std::size_t n_classes;
};

// The sum of votes for each class, (n, K): by thresholds alone, or by tests of any kind.
void vote_rows(const GroveView& grove, const AnyRows& rows, int threads, double* votes);
void vote_columns(const GroveView& grove, std::span<const Column> columns, std::int64_t n, int threads, double* votes);

}  // namespace margrove::tree
