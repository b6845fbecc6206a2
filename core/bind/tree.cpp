// Trees: columns of any kind in, the arrays of model.py out.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "bind/arrays.hpp"
#include "parallel.hpp"
#include "tree/apply.hpp"
#include "tree/binned_grower.hpp"
#include "tree/column_tests.hpp"
#include "tree/grower.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

using tree::CellKind;
using tree::Column;

using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;

// A column in Python's words: (test, monotone, cells, n_codes, cuts, rows). `rows` is None unless the column is sparse.
Column column_of(const nb::tuple& given, std::int64_t n) {
  Column column{};
  const int test = nb::cast<int>(given[0]);
  require(test >= 0 && test <= static_cast<int>(tree::Test::one_vs_rest), "unknown test");
  column.test = static_cast<tree::Test>(test);
  column.monotone = static_cast<std::int8_t>(nb::cast<int>(given[1]));
  const auto cells = nb::cast<AnyVector>(given[2]);
  column.n_codes = nb::cast<std::int64_t>(given[3]);
  const auto cuts = nb::cast<Vector<double>>(given[4]);
  column.cuts = {cuts.data(), cuts.size()};
  column.data = cells.data();
  column.stride = cells.size() > 1 ? cells.stride(0) : 1;
  const bool has_rows = !given[5].is_none();
  if (cells.dtype() == nb::dtype<float>()) {
    column.cells = has_rows ? CellKind::sparse32 : CellKind::f32;
  } else if (cells.dtype() == nb::dtype<double>()) {
    column.cells = has_rows ? CellKind::sparse64 : CellKind::f64;
  } else {
    require(cells.dtype() == nb::dtype<std::int32_t>() && !has_rows, "cells must be float32, float64 or int32");
    column.cells = CellKind::code;
  }
  const bool is_number = column.test == tree::Test::threshold || column.test == tree::Test::intervals;
  require(is_number == (column.cells != CellKind::code), "thresholds and intervals need numbers, levels need codes");
  if (has_rows) {
    const auto rows = nb::cast<Vector<std::int32_t>>(given[5]);
    require(rows.size() == cells.size(), "sparse cells and their rows disagree in length");
    for (std::size_t i = 0; i < rows.size(); ++i)
      require(rows.data()[i] >= 0 && rows.data()[i] < n && (i == 0 || rows.data()[i - 1] < rows.data()[i]),
              "the rows of a sparse column must ascend within the table");
    column.row = rows.data();
    column.stored = static_cast<std::int64_t>(rows.size());
    return column;
  }
  require(static_cast<std::int64_t>(cells.size()) == n, "a column has another number of rows");
  return column;
}

std::vector<Column> columns_of(const nb::list& given, std::int64_t n) {
  std::vector<Column> columns;
  for (nb::handle column : given) columns.push_back(column_of(nb::cast<nb::tuple>(column), n));
  return columns;
}

void require_codes(std::span<const Column> columns, std::int64_t n) {
  for (const Column& column : columns)
    if (column.cells == CellKind::code)
      for (std::int64_t i = 0; i < n; ++i)
        require(static_cast<const std::int32_t*>(column.data)[i * column.stride] < column.n_codes,
                "a code lies beyond the column's levels");
}

class BoundGrower {
 public:
  BoundGrower(nb::list columns, std::int64_t n, Vector<std::int32_t> label, int n_classes, Vector<double> number,
              Vector<double> weight, int criterion, nb::dict growth, int threads)
      : owners_(nb::make_tuple(columns, label, number, weight)), n_classes_(n_classes) {
    require(n > 0 && n < (std::int64_t{1} << 31), "a tree takes 1 to 2^31 - 1 rows");
    require(criterion >= 0 && criterion <= static_cast<int>(tree::Criterion::absolute_error), "unknown criterion");
    require(static_cast<std::int64_t>(n_classes ? label.size() : number.size()) == n, "the target must be (n)");
    require(weight.size() == 0 || static_cast<std::int64_t>(weight.size()) == n, "weight must be (n) or empty");
    for (std::size_t i = 0; i < label.size(); ++i)
      require(label.data()[i] >= 0 && label.data()[i] < n_classes, "a label lies beyond the classes");
    std::vector<Column> views = columns_of(columns, n);
    require_codes(views, n);
    tree::ScanRules rules;
    rules.measure = {static_cast<tree::Criterion>(criterion), n_classes ? n_classes : 2,
                     nb::cast<double>(growth["variance_floor"])};
    rules.weight = span_of(weight);
    rules.number = span_of(number);
    rules.min_rows = nb::cast<std::int64_t>(growth["min_samples_leaf"]);
    // Up to rounding: a leaf of 7 rows has the weight 0.07 · 100, which is 7.000000000000001.
    rules.min_weight = nb::cast<double>(growth["min_weight_leaf"]) * (1 - tree::kEqualGain);
    if (weight.size() == 0) {  // then a least weight is a least number of rows
      rules.min_rows = std::max(rules.min_rows, static_cast<std::int64_t>(std::ceil(rules.min_weight)));
      rules.min_weight = 0;
    }
    rules.value_slack = n_classes ? tree::kEqualGain : 0;
    for (std::size_t i = 0; i < number.size(); ++i)
      rules.value_slack = std::max(rules.value_slack, tree::kEqualGain * std::abs(number.data()[i]));
    const int thresholds = nb::cast<int>(growth["fitted"]);
    require(thresholds >= 0 && thresholds <= 2 && (thresholds == 0 || n_classes > 0), "unknown thresholds");
    rules.thresholds = static_cast<tree::Thresholds>(thresholds);
    tree::GrowthRules how;
    how.score = static_cast<tree::SplitScore>(nb::cast<int>(growth["split_score"]));
    rules.needs_split_information = how.score != tree::SplitScore::gain;
    if (!growth["max_depth"].is_none()) how.max_depth = nb::cast<std::int64_t>(growth["max_depth"]);
    how.min_rows_to_split = nb::cast<std::int64_t>(growth["min_samples_split"]);
    if (!growth["max_leaf_nodes"].is_none()) how.max_leaves = nb::cast<std::int64_t>(growth["max_leaf_nodes"]);
    if (!growth["max_features"].is_none()) how.max_columns = nb::cast<std::int64_t>(growth["max_features"]);
    how.min_impurity_decrease = nb::cast<double>(growth["min_impurity_decrease"]);
    how.min_gain = nb::cast<double>(growth["min_gain"]);
    how.majority = nb::cast<double>(growth["majority"]);
    how.complexity = nb::cast<double>(growth["complexity"]);
    how.n_bins = nb::cast<int>(growth["bins"]);
    how.is_shuffled = !growth["seed"].is_none();
    if (how.is_shuffled) how.seed = nb::cast<std::uint64_t>(growth["seed"]);
    const std::span<const std::int32_t> labels = span_of(label);
    if (tree::BinnedGrower::can_grow(views, rules, how))
      grower_ =
          std::make_unique<tree::BinnedGrower>(std::move(views), n, labels, n_classes, std::move(rules), how, threads);
    else
      grower_ = std::make_unique<tree::Grower>(std::move(views), n, labels, n_classes, std::move(rules), how, threads);
  }

  bool run(double seconds) {
    nb::gil_scoped_release unlocked;
    return grower_->run(seconds);
  }
  std::int64_t rows_settled() const { return grower_->rows_settled(); }

  nb::dict take() {
    std::vector<tree::Node> nodes;
    {
      nb::gil_scoped_release unlocked;
      nodes = grower_->take();
    }
    const std::size_t m = nodes.size(), width = n_classes_ ? static_cast<std::size_t>(n_classes_) : 0;
    std::vector<std::int32_t> feature(m), child_start(m + 1), child(m - 1), missing(m), other(m), level_branch;
    std::vector<double> threshold(m), gain(m), n_tests(m), n_candidates(m), weight(m), least(m), most(m),
        value(m * width);
    std::vector<std::int64_t> level_start(m + 1), rows(m);
    for (std::size_t i = 0; i < m; ++i) {
      const tree::Node& node = nodes[i];
      feature[i] = node.column;
      threshold[i] = node.threshold;
      gain[i] = node.gain;
      n_tests[i] = node.n_tests;
      n_candidates[i] = node.n_candidates;
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
    for (std::size_t i = 1; i < m; ++i)
      child[static_cast<std::size_t>(child_start[static_cast<std::size_t>(nodes[i].parent)]) + nodes[i].branch] =
          static_cast<std::int32_t>(i);
    nb::dict arrays;
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
    arrays["value"] = to_numpy(std::move(value), {m, width});
    return arrays;
  }

 private:
  nb::tuple owners_;
  int n_classes_;
  std::unique_ptr<tree::Growing> grower_;
};

// The deciding arrays of a tree: (feature, threshold, child_start, child, level_start, level_branch, missing_branch,
// default_branch), looked through so that no row can leave them.
struct BoundTree {
  Vector<std::int32_t> feature;
  Vector<double> threshold;
  Vector<std::int32_t> child_start, child;
  Vector<std::int64_t> level_start;
  Vector<std::int32_t> level_branch, missing_branch, default_branch;

  explicit BoundTree(const nb::tuple& given)
      : feature(nb::cast<Vector<std::int32_t>>(given[0])),
        threshold(nb::cast<Vector<double>>(given[1])),
        child_start(nb::cast<Vector<std::int32_t>>(given[2])),
        child(nb::cast<Vector<std::int32_t>>(given[3])),
        level_start(nb::cast<Vector<std::int64_t>>(given[4])),
        level_branch(nb::cast<Vector<std::int32_t>>(given[5])),
        missing_branch(nb::cast<Vector<std::int32_t>>(given[6])),
        default_branch(nb::cast<Vector<std::int32_t>>(given[7])) {
    const std::size_t m = feature.size();
    require(m > 0 && threshold.size() == m && missing_branch.size() == m && default_branch.size() == m &&
                child_start.size() == m + 1 && level_start.size() == m + 1 && child.size() == m - 1,
            "the arrays of the tree disagree in length");
    require(child_start.data()[0] == 0 && child_start.data()[m] == static_cast<std::int32_t>(m - 1) &&
                level_start.data()[0] == 0 && level_start.data()[m] == static_cast<std::int64_t>(level_branch.size()),
            "the tree's starts leave its children or levels");
    for (std::size_t i = 0; i < m; ++i) {
      const std::int32_t begin = child_start.data()[i], count = child_start.data()[i + 1] - begin;
      require(count >= 0 && level_start.data()[i] <= level_start.data()[i + 1], "the tree's starts must not fall");
      if (feature.data()[i] < 0) continue;
      require(count >= 2 && missing_branch.data()[i] >= 0 && missing_branch.data()[i] < count &&
                  default_branch.data()[i] >= 0 && default_branch.data()[i] < count,
              "a node's branches lie beyond its children");
      for (std::int32_t b = 0; b < count; ++b)
        require(child.data()[begin + b] > static_cast<std::int32_t>(i) &&
                    child.data()[begin + b] < static_cast<std::int32_t>(m),
                "a child must stand behind its parent");
      for (std::int64_t l = level_start.data()[i]; l < level_start.data()[i + 1]; ++l)
        require(level_branch.data()[l] < count, "a level's branch lies beyond the node's children");
    }
  }

  void require_columns(std::int64_t d) const {
    for (std::size_t i = 0; i < feature.size(); ++i)
      require(feature.data()[i] < d, "the tree tests a column that is not there");
  }

  tree::TreeView view() const {
    return {span_of(feature),     span_of(threshold),    span_of(child_start),    span_of(child),
            span_of(level_start), span_of(level_branch), span_of(missing_branch), span_of(default_branch)};
  }
};

nb::ndarray<nb::numpy, std::int32_t> apply_tree_to_rows(nb::tuple given, const Points& points, int threads) {
  const BoundTree bound(given);
  bound.require_columns(points.d);
  std::vector<std::int32_t> leaf(static_cast<std::size_t>(points.n));
  {
    nb::gil_scoped_release unlocked;
    tree::apply_rows(bound.view(), points.rows, threads, leaf.data());
  }
  const std::size_t n = leaf.size();
  return to_numpy(std::move(leaf), {n});
}

nb::ndarray<nb::numpy, std::int32_t> apply_tree_to_columns(nb::tuple given, nb::list columns, std::int64_t n,
                                                           int threads) {
  const BoundTree bound(given);
  const std::vector<Column> views = columns_of(columns, n);
  bound.require_columns(static_cast<std::int64_t>(views.size()));
  for (std::size_t i = 0; i < bound.feature.size(); ++i) {
    const std::int32_t j = bound.feature.data()[i];
    require(j < 0 || !tree::is_sparse(views[static_cast<std::size_t>(j)].cells),
            "sparse rows go by apply_tree_to_rows");
    require(j < 0 || views[static_cast<std::size_t>(j)].test != tree::Test::threshold ||
                bound.child_start.data()[i + 1] - bound.child_start.data()[i] == 2,
            "a threshold has two branches");
  }
  std::vector<std::int32_t> leaf(static_cast<std::size_t>(n));
  {
    nb::gil_scoped_release unlocked;
    tree::apply_columns(bound.view(), views, n, threads, leaf.data());
  }
  const std::size_t size = leaf.size();
  return to_numpy(std::move(leaf), {size});
}

// (n_tests, threshold, start, value): column j's branches are the rows start[j] .. start[j + 1] of value.
nb::tuple best_column_tests(nb::list columns, std::int64_t n, Vector<std::int32_t> label, int n_classes,
                            Vector<double> weight, int criterion, int fitted, int n_bins, int threads) {
  require(n > 0 && n < (std::int64_t{1} << 31), "a tree takes 1 to 2^31 - 1 rows");
  require(criterion >= 0 && criterion <= static_cast<int>(tree::Criterion::error), "unknown criterion");
  require(fitted >= 0 && fitted <= 2, "unknown thresholds");
  require(n_classes > 0 && static_cast<std::int64_t>(label.size()) == n, "the target must be (n)");
  require(weight.size() == 0 || static_cast<std::int64_t>(weight.size()) == n, "weight must be (n) or empty");
  for (std::size_t i = 0; i < label.size(); ++i)
    require(label.data()[i] >= 0 && label.data()[i] < n_classes, "a label lies beyond the classes");
  const std::vector<Column> views = columns_of(columns, n);
  require_codes(views, n);
  tree::ScanRules rules;
  rules.measure = {static_cast<tree::Criterion>(criterion), n_classes, 0.0};
  rules.weight = span_of(weight);
  rules.thresholds = static_cast<tree::Thresholds>(fitted);
  std::vector<tree::ColumnTest> tests;
  {
    nb::gil_scoped_release unlocked;
    tests = tree::best_column_tests(views, n, span_of(label), n_classes, std::move(rules), n_bins, threads);
  }
  const std::size_t d = tests.size(), width = static_cast<std::size_t>(n_classes);
  std::vector<double> n_tests(d), threshold(d), value;
  std::vector<std::int64_t> start(d + 1);
  for (std::size_t j = 0; j < d; ++j) {
    n_tests[j] = tests[j].n_tests;
    threshold[j] = tests[j].threshold;
    value.insert(value.end(), tests[j].value.begin(), tests[j].value.end());
    start[j + 1] = static_cast<std::int64_t>(value.size() / width);
  }
  const std::size_t branches = value.size() / width;
  return nb::make_tuple(to_numpy(std::move(n_tests), {d}), to_numpy(std::move(threshold), {d}),
                        to_numpy(std::move(start), {d + 1}), to_numpy(std::move(value), {branches, width}));
}

}  // namespace

void bind_tree(nb::module_& m) {
  nb::class_<BoundGrower>(m, "TreeGrower")
      .def(nb::init<nb::list, std::int64_t, Vector<std::int32_t>, int, Vector<double>, Vector<double>, int, nb::dict,
                    int>(),
           "columns"_a, "n"_a, "label"_a, "n_classes"_a, "number"_a, "weight"_a, "criterion"_a, "growth"_a, "threads"_a)
      .def("run", &BoundGrower::run, "seconds"_a)
      .def("rows_settled", &BoundGrower::rows_settled)
      .def("take", &BoundGrower::take);
  m.def("best_column_tests", &best_column_tests, "columns"_a, "n"_a, "label"_a, "n_classes"_a, "weight"_a,
        "criterion"_a, "fitted"_a, "n_bins"_a, "threads"_a);
  m.def("apply_tree_to_rows", &apply_tree_to_rows, "tree"_a, "points"_a, "threads"_a);
  m.def("apply_tree_to_columns", &apply_tree_to_columns, "tree"_a, "columns"_a, "n"_a, "threads"_a);
}

}  // namespace margrove
