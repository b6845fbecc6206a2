// Trees: columns of any kind in, the arrays of model.py out.
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "bind/growing.hpp"
#include "tree/apply.hpp"
#include "tree/column_tests.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

using tree::Column;

class BoundGrower {
 public:
  BoundGrower(nb::list columns, std::int64_t n, Vector<std::int32_t> label, int n_classes, Vector<double> number,
              Vector<double> weight, int criterion, nb::dict growth, nb::object sorted, int threads)
      : owners_(nb::make_tuple(columns, label, number, weight, sorted)),
        n_classes_(static_cast<std::size_t>(n_classes)) {
    grower_ = grower_of(
        columns,
        {n, span_of(label), n_classes, span_of(number), span_of(weight), criterion, growth, sorted_of(sorted), threads},
        false);
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
    return arrays_of(nodes, n_classes_);
  }

 private:
  nb::tuple owners_;
  std::size_t n_classes_;
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

  // Of one tree, or of several one behind the other.
  explicit BoundTree(const nb::tuple& given, std::size_t n_trees = 1)
      : feature(nb::cast<Vector<std::int32_t>>(given[0])),
        threshold(nb::cast<Vector<double>>(given[1])),
        child_start(nb::cast<Vector<std::int32_t>>(given[2])),
        child(nb::cast<Vector<std::int32_t>>(given[3])),
        level_start(nb::cast<Vector<std::int64_t>>(given[4])),
        level_branch(nb::cast<Vector<std::int32_t>>(given[5])),
        missing_branch(nb::cast<Vector<std::int32_t>>(given[6])),
        default_branch(nb::cast<Vector<std::int32_t>>(given[7])) {
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
  Vector<std::int64_t> start;
  Vector<std::int32_t> label;
  Vector<double> vote;
  BoundTree trees;
  std::size_t n_classes;

  BoundGrove(const nb::tuple& given, Vector<std::int64_t> start_of, Vector<std::int32_t> label_of, Vector<double> votes,
             int k)
      : start(start_of),
        label(label_of),
        vote(votes),
        trees(given, votes.size()),
        n_classes(static_cast<std::size_t>(k)) {
    const auto m = static_cast<std::int64_t>(trees.feature.size());
    require(k > 0 && start.size() == vote.size() + 1 && static_cast<std::int64_t>(label.size()) == m,
            "the arrays of the grove disagree in length");
    for (std::size_t t = 0; t < vote.size(); ++t)
      require(start.data()[t] >= 0 && start.data()[t] < m, "a tree begins outside the grove");
    for (std::size_t i = 0; i < label.size(); ++i)
      require(label.data()[i] >= 0 && label.data()[i] < k, "a label lies beyond the classes");
  }
  tree::GroveView view() const { return {trees.view(), span_of(start), span_of(label), span_of(vote), n_classes}; }
};

nb::ndarray<nb::numpy, double> votes_of_rows(nb::tuple trees, Vector<std::int64_t> start, Vector<std::int32_t> label,
                                             Vector<double> vote, int n_classes, const Points& points, int threads) {
  const BoundGrove bound(trees, start, label, vote, n_classes);
  bound.trees.require_columns(points.d);
  std::vector<double> votes(static_cast<std::size_t>(points.n) * bound.n_classes);
  {
    nb::gil_scoped_release unlocked;
    tree::vote_rows(bound.view(), points.rows, threads, votes.data());
  }
  return to_numpy(std::move(votes), {static_cast<std::size_t>(points.n), bound.n_classes});
}

nb::ndarray<nb::numpy, double> votes_of_columns(nb::tuple trees, Vector<std::int64_t> start, Vector<std::int32_t> label,
                                                Vector<double> vote, int n_classes, nb::list columns, std::int64_t n,
                                                int threads) {
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
  nb::class_<SortedColumns>(m, "SortedColumns")
      .def(nb::init<nb::list, std::int64_t, int, bool, int>(), "columns"_a, "n"_a, "n_bins"_a, "may_leave_out"_a,
           "threads"_a)
      .def("run", &SortedColumns::run, "seconds"_a);
  nb::class_<BoundGrower>(m, "TreeGrower")
      .def(nb::init<nb::list, std::int64_t, Vector<std::int32_t>, int, Vector<double>, Vector<double>, int, nb::dict,
                    nb::object, int>(),
           "columns"_a, "n"_a, "label"_a, "n_classes"_a, "number"_a, "weight"_a, "criterion"_a, "growth"_a,
           "sorted"_a.none(), "threads"_a)
      .def("run", &BoundGrower::run, "seconds"_a)
      .def("rows_settled", &BoundGrower::rows_settled)
      .def("take", &BoundGrower::take);
  m.def("best_column_tests", &best_column_tests, "columns"_a, "n"_a, "label"_a, "n_classes"_a, "weight"_a,
        "criterion"_a, "fitted"_a, "n_bins"_a, "threads"_a);
  m.def("apply_tree_to_rows", &apply_tree_to_rows, "tree"_a, "points"_a, "threads"_a);
  m.def("apply_tree_to_columns", &apply_tree_to_columns, "tree"_a, "columns"_a, "n"_a, "threads"_a);
  m.def("votes_of_rows", &votes_of_rows, "trees"_a, "start"_a, "label"_a, "vote"_a, "n_classes"_a, "points"_a,
        "threads"_a);
  m.def("votes_of_columns", &votes_of_columns, "trees"_a, "start"_a, "label"_a, "vote"_a, "n_classes"_a, "columns"_a,
        "n"_a, "threads"_a);
}

}  // namespace margrove
