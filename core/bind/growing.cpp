#include "bind/growing.hpp"

#include <algorithm>
#include <cmath>

#include "index.hpp"
#include "parallel.hpp"
#include "tree/binned_grower.hpp"
#include "tree/grower.hpp"

namespace margrove {
namespace {

using tree::CellKind;
using tree::Column;

// What the cells of a column are, by their type.
CellKind kind_of(nb::dlpack::dtype type, bool is_sparse) {
  if (type == nb::dtype<float>()) return is_sparse ? CellKind::sparse32 : CellKind::f32;
  if (type == nb::dtype<double>()) return is_sparse ? CellKind::sparse64 : CellKind::f64;
  require(type == nb::dtype<std::int32_t>() && !is_sparse, "cells must be float32, float64 or int32");
  return CellKind::code;
}

void set_rows(Column& column, std::span<const std::int32_t> rows, std::int64_t n) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    require(rows[i] >= 0 && rows[i] < n && (i == 0 || rows[i - 1] < rows[i]),
            "the rows of a sparse column must ascend within the table");
  column.row = rows.data();
  column.stored = static_cast<std::int64_t>(rows.size());
}

Column column_of(const GivenColumn& given, std::int64_t n) {
  Column column{};
  column.test = given.test;
  column.monotone = static_cast<std::int8_t>(given.monotone);
  const auto& cells = given.cells;
  column.n_codes = given.n_codes;
  column.cuts = span_of(given.cuts);
  column.data = cells.data();
  column.stride = cells.size() > 1 ? cells.stride(0) : 1;
  column.cells = kind_of(cells.dtype(), given.rows.has_value());
  const bool is_number = column.test == tree::Test::threshold || column.test == tree::Test::intervals;
  require(is_number == (column.cells != CellKind::code), "thresholds and intervals need numbers, levels need codes");
  if (given.rows) {
    require(given.rows->size() == cells.size(), "sparse cells and their rows disagree in length");
    set_rows(column, span_of(*given.rows), n);
    return column;
  }
  require(static_cast<std::int64_t>(cells.size()) == n, "a column has another number of rows");
  return column;
}

const void* element_at(const void* data, std::int64_t elements, std::size_t size) {
  return static_cast<const char*>(data) + elements * static_cast<std::int64_t>(size);
}

void add_columns(const GivenBlock& given, std::int64_t n, std::vector<Column>& columns) {
  const auto& cells = given.cells;
  require(static_cast<std::int64_t>(cells.shape(0)) == n, "the block has another number of rows");
  Column column{};
  column.cells = kind_of(cells.dtype(), false);
  require(column.cells != CellKind::code, "the cells must be float32 or float64");
  column.test = tree::Test::threshold;
  column.stride = n > 1 ? cells.stride(0) : 1;
  for (std::size_t j = 0; j < cells.shape(1); ++j) {
    column.data = element_at(cells.data(), static_cast<std::int64_t>(j) * cells.stride(1), cells.itemsize());
    columns.push_back(column);
  }
}

void add_columns(const GivenSparse& given, std::int64_t n, std::vector<Column>& columns) {
  const auto start = span_of(given.start);
  const auto rows = span_of(given.rows);
  require(rows.size() == given.cells.size(), "sparse cells and their rows disagree in length");
  require(!start.empty() && start[0] == 0 && start.back() <= length(rows) && std::is_sorted(start.begin(), start.end()),
          "start must begin with 0, not fall, and end within the cells");
  Column column{};
  column.cells = kind_of(given.cells.dtype(), true);
  column.test = tree::Test::threshold;
  column.stride = 1;
  for (std::size_t j = 0; j + 1 < start.size(); ++j) {
    column.data = element_at(given.cells.data(), start[j], given.cells.itemsize());
    set_rows(column, rows.subspan(start[j], start[j + 1] - start[j]), n);
    columns.push_back(column);
  }
}

tree::ScanRules scan_rules_of(const Asked& asked) {
  const auto& [n, label, n_classes, number, weight, outputs, growth, sorted, threads] = asked;
  tree::ScanRules rules;
  rules.measure = {growth.criterion, n_classes ? n_classes : 2, growth.variance_floor};
  if (!outputs.empty()) {
    require(growth.criterion != tree::Criterion::gaussian_entropy, "gaussian_entropy takes one target");
    std::vector<int>& start = rules.measure.start;
    start = {0};
    for (const int size : outputs) start.push_back(start.back() + (label.empty() ? 2 : size));
    rules.measure.width = start.back();
    rules.labels = label;
  }
  rules.weight = weight;
  rules.number = number;
  rules.min_rows = growth.min_samples_leaf;
  // Up to rounding: a leaf of 7 rows has the weight 0.07 · 100, which is 7.000000000000001.
  rules.min_weight = growth.min_weight_leaf * (1 - tree::kEqualGain);
  if (weight.size() == 0) {  // then a least weight is a least number of rows
    rules.min_rows = std::max(rules.min_rows, static_cast<std::int64_t>(std::ceil(rules.min_weight)));
    rules.min_weight = 0;
  }
  rules.value_slack = n_classes ? tree::kEqualGain : 0;
  for (std::size_t i = 0; i < number.size(); ++i)
    rules.value_slack = std::max(rules.value_slack, tree::kEqualGain * std::abs(number[i]));
  require(
      growth.thresholds == tree::Thresholds::every || growth.thresholds == tree::Thresholds::random || n_classes > 0,
      "fitted thresholds are of classes");
  rules.thresholds = growth.thresholds;
  rules.needs_split_information = growth.split_score != tree::SplitScore::gain;
  return rules;
}

tree::GrowthRules growth_rules_of(const GivenGrowth& growth, bool keeps_order) {
  tree::GrowthRules how;
  how.score = growth.split_score;
  how.max_depth = growth.max_depth.value_or(how.max_depth);
  how.min_rows_to_split = growth.min_samples_split;
  how.max_leaves = growth.max_leaf_nodes.value_or(how.max_leaves);
  how.max_columns = growth.max_features.value_or(how.max_columns);
  how.min_impurity_decrease = growth.min_impurity_decrease;
  how.min_gain = growth.min_gain;
  how.majority = growth.majority;
  how.complexity = growth.complexity;
  how.n_bins = growth.n_bins;
  how.is_shuffled = growth.seed.has_value();
  how.seed = growth.seed.value_or(how.seed);
  how.keeps_order = keeps_order;
  return how;
}

}  // namespace

std::vector<Column> columns_of(const Columns& given, std::int64_t n) {
  std::vector<Column> columns;
  for (nb::handle each : given) {
    if (nb::isinstance<GivenBlock>(each))
      add_columns(nb::cast<const GivenBlock&>(each), n, columns);
    else if (nb::isinstance<GivenSparse>(each))
      add_columns(nb::cast<const GivenSparse&>(each), n, columns);
    else
      columns.push_back(column_of(nb::cast<const GivenColumn&>(each), n));
  }
  return columns;
}

void require_codes(std::span<const Column> columns, std::int64_t n) {
  for (const Column& column : columns)
    if (column.cells == CellKind::code)
      for (std::int64_t i = 0; i < n; ++i)
        require(static_cast<const std::int32_t*>(column.data)[i * column.stride] < column.n_codes,
                "a code lies beyond the column's levels");
}

SortedColumns::SortedColumns(Columns columns, std::int64_t n, int n_bins, bool may_leave_out, int threads)
    : owners_(columns), columns_(columns_of(columns, n)) {
  require(n > 0 && n < (std::int64_t{1} << 31), "a tree takes 1 to 2^31 - 1 rows");
  require_codes(columns_, n);
  lists_ = std::make_unique<tree::Lists>(columns_, n, std::span<const std::int32_t>{}, 0, n_bins, may_leave_out, false,
                                         std::max(threads, 1));
}

bool SortedColumns::run(double seconds) {
  nb::gil_scoped_release unlocked;
  return lists_->sort(in_seconds(seconds));
}

std::unique_ptr<tree::Growing> grower_of(const Columns& columns, const Asked& asked, bool keeps_order) {
  const std::int64_t n = asked.n;
  const auto n_targets = std::max<std::int64_t>(1, static_cast<std::int64_t>(asked.outputs.size()));
  require(n > 0 && n < (std::int64_t{1} << 31), "a tree takes 1 to 2^31 - 1 rows");
  const std::size_t n_given = asked.label.empty() ? asked.number.size() : asked.label.size();
  require(static_cast<std::int64_t>(n_given) == n * n_targets, "the target must be (n), or (n, targets)");
  require(asked.weight.size() == 0 || static_cast<std::int64_t>(asked.weight.size()) == n,
          "weight must be (n) or empty");
  for (std::size_t i = 0; i < asked.label.size(); ++i) {
    const int n_classes = asked.outputs.empty() ? asked.n_classes : asked.outputs[i % asked.outputs.size()];
    require(asked.label[i] >= 0 && asked.label[i] < n_classes, "a label lies beyond the classes");
  }
  std::vector<Column> views = columns_of(columns, n);
  require_codes(views, n);
  tree::ScanRules rules = scan_rules_of(asked);
  tree::GrowthRules how = growth_rules_of(asked.growth, keeps_order);
  if (asked.sorted) {
    how.sorted = &asked.sorted->lists();
    require(
        how.sorted->can_serve(n, views.size(), how.n_bins, rules.measure.criterion != tree::Criterion::absolute_error),
        "the columns were sorted for other trees");
  }
  const auto make = [&]<class Grower>() -> std::unique_ptr<tree::Growing> {
    const bool is_one = asked.outputs.empty();  // of several targets the rules have the labels
    const auto label = is_one ? asked.label : std::span<const std::int32_t>{};
    return std::make_unique<Grower>(std::move(views), n, label, is_one ? asked.n_classes : 0, std::move(rules), how,
                                    asked.threads);
  };
  if (!tree::can_grow_binned(views, rules, how)) return make.template operator()<tree::Grower>();
  return rules.weight.empty() ? make.template operator()<tree::BinnedGrower<std::uint32_t>>()
                              : make.template operator()<tree::BinnedGrower<std::int64_t>>();
}

TreeArrays arrays_of(std::span<const tree::Node> nodes, std::size_t n_classes) {
  const std::size_t m = nodes.size(), width = n_classes;
  const auto n_roots = static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const tree::Node& node) { return node.parent < 0; }));
  std::vector<std::int32_t> feature(m), child_start(m + 1), child(m - n_roots), missing(m), other(m), level_branch;
  std::vector<double> threshold(m), gain(m), n_tests(m), n_candidates(m), present(m), association(m), inverse_weight(m),
      weight(m), least(m), most(m), value(m * width);
  std::vector<std::int64_t> level_start(m + 1), rows(m);
  for (std::size_t i = 0; i < m; ++i) {
    const tree::Node& node = nodes[i];
    feature[i] = node.column;
    threshold[i] = node.threshold;
    gain[i] = node.gain;
    n_tests[i] = node.n_tests;
    n_candidates[i] = node.n_candidates;
    present[i] = node.levels.n_levels;
    association[i] = node.levels.association;
    inverse_weight[i] = node.levels.inverse_weight;
    weight[i] = node.weight;
    least[i] = node.least;
    most[i] = node.most;
    rows[i] = node.rows;
    missing[i] = node.missing_branch;
    other[i] = node.default_branch;
    child_start[i + 1] = child_start[i] + static_cast<std::int32_t>(node.n_branches);
    level_branch.insert(level_branch.end(), node.level_branch.begin(), node.level_branch.end());
    level_start[i + 1] = static_cast<std::int64_t>(level_branch.size());
    std::copy(node.value.begin(), node.value.end(), value.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  for (std::size_t i = 0, root = 0; i < m; ++i) {
    if (nodes[i].parent < 0) {
      root = i;
      continue;
    }
    const auto first = static_cast<std::size_t>(child_start[root + static_cast<std::size_t>(nodes[i].parent)]);
    child[first + nodes[i].branch] = static_cast<std::int32_t>(i);
  }
  TreeArrays arrays;
  const std::size_t n_child = child.size(), n_levels = level_branch.size();
  arrays["feature"] = to_numpy(std::move(feature), {m});
  arrays["threshold"] = to_numpy(std::move(threshold), {m});
  arrays["child_start"] = to_numpy(std::move(child_start), {m + 1});
  arrays["child"] = to_numpy(std::move(child), {n_child});
  arrays["level_start"] = to_numpy(std::move(level_start), {m + 1});
  arrays["level_branch"] = to_numpy(std::move(level_branch), {n_levels});
  arrays["missing_branch"] = to_numpy(std::move(missing), {m});
  arrays["default_branch"] = to_numpy(std::move(other), {m});
  arrays["n_rows"] = to_numpy(std::move(rows), {m});
  arrays["weight"] = to_numpy(std::move(weight), {m});
  arrays["least"] = to_numpy(std::move(least), {m});
  arrays["most"] = to_numpy(std::move(most), {m});
  arrays["gain"] = to_numpy(std::move(gain), {m});
  arrays["n_tests"] = to_numpy(std::move(n_tests), {m});
  arrays["n_candidates"] = to_numpy(std::move(n_candidates), {m});
  arrays["n_levels"] = to_numpy(std::move(present), {m});
  arrays["association"] = to_numpy(std::move(association), {m});
  arrays["inverse_weight"] = to_numpy(std::move(inverse_weight), {m});
  arrays["value"] = to_numpy(std::move(value), {m, width});
  return arrays;
}

}  // namespace margrove
