// Trees: columns of any kind in, the arrays of model.py out.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "bind/growing.hpp"
#include "tree/apply.hpp"
#include "tree/column_tests.hpp"
#include "tree/fitted.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

using tree::Column;

class BoundGrower {
 public:
  BoundGrower(Columns columns, std::int64_t n, Vector<std::int32_t> label, int n_classes, Vector<double> number,
              Vector<double> weight, const std::vector<int>& outputs, const GivenGrowth& growth,
              const SortedColumns* sorted, int threads)
      : owners_(nb::make_tuple(columns, label, number, weight)),
        n_classes_(outputs.empty() ? static_cast<std::size_t>(n_classes) : 0) {
    const Asked asked{n, span_of(label), n_classes, span_of(number), span_of(weight), outputs, growth, sorted, threads};
    tags_ = tree::tags_for(outputs.empty() ? asked.label : std::span<const std::int32_t>{}, n, n_classes);
    grower_ = grower_of(columns, asked, false);
  }

  bool run(double seconds) {
    nb::gil_scoped_release unlocked;
    return grower_->run(seconds);
  }
  std::int64_t rows_settled() const { return grower_->rows_settled(); }

  TreeArrays take() {
    std::vector<tree::Node> nodes;
    std::vector<std::int32_t> leaf;  // of each row, where the grower has a list of the rows
    {
      nb::gil_scoped_release unlocked;
      nodes = grower_->take();
      const std::span<const std::uint32_t> tags = grower_->row_tags();
      leaf.resize(tags.size());
      for (std::size_t i = 0; i < nodes.size() && !tags.empty(); ++i)
        if (nodes[i].column < 0)
          for (const std::uint32_t tag : tags.subspan(nodes[i].first_row, nodes[i].rows))
            leaf[tags_.row(tag)] = static_cast<std::int32_t>(i);
    }
    TreeArrays arrays = arrays_of(nodes, n_classes_);
    const std::size_t n_rows = leaf.size();
    if (n_rows > 0) arrays["leaf"] = to_numpy(std::move(leaf), {n_rows});
    return arrays;
  }

 private:
  nb::tuple owners_;
  std::size_t n_classes_;
  tree::Tags tags_;
  std::unique_ptr<tree::Growing> grower_;
};

// The arrays that send rows down a tree, or several one behind the other, looked through so that no row can leave them.
struct BoundTrees {
  Vector<std::int32_t> feature;
  Vector<double> threshold;
  Vector<std::int32_t> child_start, child;
  Vector<std::int64_t> level_start;
  Vector<std::int32_t> level_branch, missing_branch, default_branch;

  std::size_t n_trees;

  void check() const {
    const std::size_t m = feature.size();
    require(m >= n_trees && threshold.size() == m && missing_branch.size() == m && default_branch.size() == m &&
                child_start.size() == m + 1 && level_start.size() == m + 1 && child.size() == m - n_trees,
            "the arrays of the tree disagree in length");
    require(child_start.data()[0] == 0 && child_start.data()[m] == static_cast<std::int32_t>(m - n_trees) &&
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

  // No column is sparse, and thresholds have two branches.
  void require_tests(std::span<const Column> views) const {
    for (std::size_t i = 0; i < feature.size(); ++i) {
      const std::int32_t j = feature.data()[i];
      require(j < 0 || !tree::is_sparse(views[static_cast<std::size_t>(j)].cells),
              "sparse rows go by apply_tree_to_rows");
      require(j < 0 || views[static_cast<std::size_t>(j)].test != tree::Test::threshold ||
                  child_start.data()[i + 1] - child_start.data()[i] == 2,
              "a threshold has two branches");
    }
  }

  tree::TreeView view() const {
    return {span_of(feature),     span_of(threshold),    span_of(child_start),    span_of(child),
            span_of(level_start), span_of(level_branch), span_of(missing_branch), span_of(default_branch)};
  }
};

Array<std::int32_t> apply_tree_to_rows(const BoundTrees& bound, const Points& points, int threads) {
  require(bound.n_trees == 1, "rows go down one tree");
  bound.require_columns(points.d);
  std::vector<std::int32_t> leaf(static_cast<std::size_t>(points.n));
  {
    nb::gil_scoped_release unlocked;
    tree::apply_rows(bound.view(), points.rows, threads, leaf.data());
  }
  const std::size_t n = leaf.size();
  return to_numpy(std::move(leaf), {n});
}

// (m) each: see `tree::NumberSums`.
nb::typed<nb::tuple, Array<double>, Array<double>, Array<double>, Array<double>> sum_up_numbers(
    const BoundTrees& bound, Vector<std::int32_t> leaf, Vector<double> number, Vector<double> weight, double shift) {
  require(bound.n_trees == 1, "rows are of one tree");
  const std::size_t m = bound.feature.size();
  require(number.size() == leaf.size() && (weight.size() == 0 || weight.size() == leaf.size()),
          "leaf, number and weight must be (n), or weight empty");
  for (std::size_t i = 0; i < leaf.size(); ++i)
    require(leaf.data()[i] >= 0 && static_cast<std::size_t>(leaf.data()[i]) < m, "a leaf lies beyond the nodes");
  tree::NumberSums sums = tree::sum_up_numbers(bound.view(), span_of(leaf), span_of(number), span_of(weight), shift);
  return nb::make_tuple(to_numpy(std::move(sums.value), {m}), to_numpy(std::move(sums.weight), {m}),
                        to_numpy(std::move(sums.square), {m}), to_numpy(std::move(sums.apart), {m}));
}

Array<std::int32_t> apply_tree_to_columns(const BoundTrees& bound, const Columns& columns, std::int64_t n,
                                          int threads) {
  require(bound.n_trees == 1, "rows go down one tree");
  const std::vector<Column> views = columns_of(columns, n);
  bound.require_columns(static_cast<std::int64_t>(views.size()));
  bound.require_tests(views);
  std::vector<std::int32_t> leaf(static_cast<std::size_t>(n));
  {
    nb::gil_scoped_release unlocked;
    tree::apply_columns(bound.view(), views, n, threads, leaf.data());
  }
  const std::size_t size = leaf.size();
  return to_numpy(std::move(leaf), {size});
}

// Trees that vote: the arrays of a grove beside those of its trees.
struct BoundGrove {
  const BoundTrees& trees;
  Vector<std::int64_t> start;
  Vector<std::int32_t> label;
  Vector<double> vote;
  std::size_t n_classes;

  BoundGrove(const BoundTrees& given, Vector<std::int64_t> start_of, Vector<std::int32_t> label_of,
             Vector<double> votes, int k)
      : trees(given), start(start_of), label(label_of), vote(votes), n_classes(static_cast<std::size_t>(k)) {
    const auto m = static_cast<std::int64_t>(trees.feature.size());
    require(k > 0 && vote.size() == trees.n_trees && start.size() == vote.size() + 1 &&
                static_cast<std::int64_t>(label.size()) == m,
            "the arrays of the grove disagree in length");
    for (std::size_t t = 0; t < vote.size(); ++t)
      require(start.data()[t] >= 0 && start.data()[t] < m, "a tree begins outside the grove");
    for (std::size_t i = 0; i < label.size(); ++i)
      require(label.data()[i] >= 0 && label.data()[i] < k, "a label lies beyond the classes");
  }
  tree::GroveView view() const { return {trees.view(), span_of(start), span_of(label), span_of(vote), n_classes}; }
};

Array<double> votes_of_rows(const BoundTrees& trees, const Points& points, Vector<std::int64_t> start,
                            Vector<std::int32_t> label, Vector<double> vote, int n_classes, int threads) {
  const BoundGrove bound(trees, start, label, vote, n_classes);
  bound.trees.require_columns(points.d);
  std::vector<double> votes(static_cast<std::size_t>(points.n) * bound.n_classes);
  {
    nb::gil_scoped_release unlocked;
    tree::vote_rows(bound.view(), points.rows, threads, votes.data());
  }
  return to_numpy(std::move(votes), {static_cast<std::size_t>(points.n), bound.n_classes});
}

Array<double> votes_of_columns(const BoundTrees& trees, const Columns& columns, std::int64_t n,
                               Vector<std::int64_t> start, Vector<std::int32_t> label, Vector<double> vote,
                               int n_classes, int threads) {
  const BoundGrove bound(trees, start, label, vote, n_classes);
  const std::vector<Column> views = columns_of(columns, n);
  bound.trees.require_columns(static_cast<std::int64_t>(views.size()));
  bound.trees.require_tests(views);
  std::vector<double> votes(static_cast<std::size_t>(n) * bound.n_classes);
  {
    nb::gil_scoped_release unlocked;
    tree::vote_columns(bound.view(), views, n, threads, votes.data());
  }
  return to_numpy(std::move(votes), {static_cast<std::size_t>(n), bound.n_classes});
}

// (n_tests, threshold, start, value): column j's branches are the rows start[j] .. start[j + 1] of value.
std::tuple<Array<double>, Array<double>, Array<std::int64_t>, Array<double>> best_column_tests(
    const Columns& columns, std::int64_t n, Vector<std::int32_t> label, int n_classes, Vector<double> weight,
    tree::Criterion criterion, tree::Thresholds thresholds, int n_bins, int threads) {
  require(n > 0 && n < (std::int64_t{1} << 31), "a tree takes 1 to 2^31 - 1 rows");
  require(tree::is_of_classes(criterion), "the criterion must be of classes");
  require(n_classes > 0 && static_cast<std::int64_t>(label.size()) == n, "the target must be (n)");
  require(weight.size() == 0 || static_cast<std::int64_t>(weight.size()) == n, "weight must be (n) or empty");
  for (std::size_t i = 0; i < label.size(); ++i)
    require(label.data()[i] >= 0 && label.data()[i] < n_classes, "a label lies beyond the classes");
  const std::vector<Column> views = columns_of(columns, n);
  require_codes(views, n);
  tree::ScanRules rules;
  rules.measure = {criterion, n_classes, 0.0};
  rules.weight = span_of(weight);
  rules.thresholds = thresholds;
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
  return {to_numpy(std::move(n_tests), {d}), to_numpy(std::move(threshold), {d}), to_numpy(std::move(start), {d + 1}),
          to_numpy(std::move(value), {branches, width})};
}

}  // namespace

namespace {

void bind_growth(nb::module_& m) {
  nb::enum_<tree::Test>(m, "Test")
      .value("threshold", tree::Test::threshold)
      .value("intervals", tree::Test::intervals)
      .value("multiway", tree::Test::multiway)
      .value("subset", tree::Test::subset)
      .value("one_vs_rest", tree::Test::one_vs_rest);
  nb::class_<GivenColumn>(m, "Column")
      .def(
          "__init__",
          [](GivenColumn* self, tree::Test test, int monotone, decltype(GivenColumn::cells) cells, std::int64_t n_codes,
             Vector<double> cuts, std::optional<Vector<std::int32_t>> rows) {
            new (self) GivenColumn{test, monotone, std::move(cells), n_codes, std::move(cuts), std::move(rows)};
          },
          nb::kw_only(), "test"_a, "monotone"_a, "cells"_a.noconvert(), "n_codes"_a, "cuts"_a, "rows"_a.none());
  nb::class_<GivenBlock>(m, "NumberColumns").def(nb::init<decltype(GivenBlock::cells)>(), "cells"_a.noconvert());
  nb::class_<GivenSparse>(m, "SparseColumns")
      .def(nb::init<decltype(GivenSparse::cells), Vector<std::int32_t>, Vector<std::int64_t>>(), nb::kw_only(),
           "cells"_a.noconvert(), "rows"_a, "start"_a);
  nb::enum_<tree::Criterion>(m, "Criterion")
      .value("gini", tree::Criterion::gini)
      .value("entropy", tree::Criterion::entropy)
      .value("error", tree::Criterion::error)
      .value("squared_error", tree::Criterion::squared_error)
      .value("gaussian_entropy", tree::Criterion::gaussian_entropy)
      .value("absolute_error", tree::Criterion::absolute_error)
      .value("poisson", tree::Criterion::poisson);
  nb::enum_<tree::SplitScore>(m, "SplitScore")
      .value("gain", tree::SplitScore::gain)
      .value("gain_ratio", tree::SplitScore::gain_ratio)
      .value("skew_adjusted", tree::SplitScore::skew_adjusted);
  nb::enum_<tree::Thresholds>(m, "Thresholds")
      .value("every", tree::Thresholds::every)
      .value("gaussian", tree::Thresholds::gaussian)
      .value("logistic", tree::Thresholds::logistic)
      .value("random", tree::Thresholds::random);
  nb::class_<GivenGrowth>(m, "Growth")
      .def(
          "__init__",
          [](GivenGrowth* self, tree::Criterion criterion, tree::SplitScore split_score, tree::Thresholds thresholds,
             double variance_floor, std::optional<std::int64_t> max_depth, std::int64_t min_samples_split,
             std::int64_t min_samples_leaf, double min_weight_leaf, std::optional<std::int64_t> max_leaf_nodes,
             std::optional<std::int64_t> max_features, double min_impurity_decrease, double min_gain, double majority,
             double complexity, int n_bins, std::optional<std::uint64_t> seed) {
            new (self) GivenGrowth{criterion,
                                   split_score,
                                   thresholds,
                                   variance_floor,
                                   max_depth,
                                   min_samples_split,
                                   min_samples_leaf,
                                   min_weight_leaf,
                                   max_leaf_nodes,
                                   max_features,
                                   min_impurity_decrease,
                                   min_gain,
                                   majority,
                                   complexity,
                                   n_bins,
                                   seed};
          },
          nb::kw_only(), "criterion"_a, "split_score"_a, "thresholds"_a, "variance_floor"_a, "max_depth"_a.none(),
          "min_samples_split"_a, "min_samples_leaf"_a, "min_weight_leaf"_a, "max_leaf_nodes"_a.none(),
          "max_features"_a.none(), "min_impurity_decrease"_a, "min_gain"_a, "majority"_a, "complexity"_a, "n_bins"_a,
          "seed"_a.none());
}

}  // namespace

void bind_tree(nb::module_& m) {
  // The same numbers stand in Python, where the reference and the certificates need them; a test compares.
  m.attr("EQUAL_GAIN") = tree::kEqualGain;
  m.attr("LEAST_LEVEL") = tree::kLeastLevel;
  m.attr("VARIANCE_FLOOR") = tree::kVarianceFloor;
  m.attr("RIDGE") = tree::kRidge;
  m.attr("NUDGE") = tree::kNudge;
  bind_growth(m);
  nb::class_<SortedColumns>(m, "SortedColumns")
      .def(nb::init<Columns, std::int64_t, int, bool, int>(), "columns"_a, nb::kw_only(), "n"_a, "n_bins"_a,
           "may_leave_out"_a, "threads"_a)
      .def("run", &SortedColumns::run, "seconds"_a);
  nb::class_<BoundGrower>(m, "TreeGrower")
      .def(nb::init<Columns, std::int64_t, Vector<std::int32_t>, int, Vector<double>, Vector<double>,
                    const std::vector<int>&, const GivenGrowth&, const SortedColumns*, int>(),
           nb::keep_alive<1, 10>(), "columns"_a, nb::kw_only(), "n"_a, "label"_a, "n_classes"_a, "number"_a, "weight"_a,
           "outputs"_a, "growth"_a, "sorted"_a.none(), "threads"_a)
      .def("run", &BoundGrower::run, "seconds"_a)
      .def("rows_settled", &BoundGrower::rows_settled)
      .def("take", &BoundGrower::take);
  m.def("best_column_tests", &best_column_tests, "columns"_a, nb::kw_only(), "n"_a, "label"_a, "n_classes"_a,
        "weight"_a, "criterion"_a, "thresholds"_a, "n_bins"_a, "threads"_a);
  nb::class_<BoundTrees>(m, "Trees")
      .def(
          "__init__",
          [](BoundTrees* self, Vector<std::int32_t> feature, Vector<double> threshold, Vector<std::int32_t> child_start,
             Vector<std::int32_t> child, Vector<std::int64_t> level_start, Vector<std::int32_t> level_branch,
             Vector<std::int32_t> missing_branch, Vector<std::int32_t> default_branch, std::size_t n_trees) {
            BoundTrees trees{feature,      threshold,      child_start,    child,  level_start,
                             level_branch, missing_branch, default_branch, n_trees};
            trees.check();
            new (self) BoundTrees(std::move(trees));
          },
          nb::kw_only(), "feature"_a, "threshold"_a, "child_start"_a, "child"_a, "level_start"_a, "level_branch"_a,
          "missing_branch"_a, "default_branch"_a, "n_trees"_a);
  m.def("apply_tree_to_rows", &apply_tree_to_rows, "tree"_a, "points"_a, nb::kw_only(), "threads"_a);
  m.def("apply_tree_to_columns", &apply_tree_to_columns, "tree"_a, "columns"_a, nb::kw_only(), "n"_a, "threads"_a);
  m.def("sum_up_numbers", &sum_up_numbers, "tree"_a, nb::kw_only(), "leaf"_a, "number"_a, "weight"_a, "shift"_a);
  m.def("votes_of_rows", &votes_of_rows, "trees"_a, "points"_a, nb::kw_only(), "start"_a, "label"_a, "vote"_a,
        "n_classes"_a, "threads"_a);
  m.def("votes_of_columns", &votes_of_columns, "trees"_a, "columns"_a, nb::kw_only(), "n"_a, "start"_a, "label"_a,
        "vote"_a, "n_classes"_a, "threads"_a);
}

}  // namespace margrove
