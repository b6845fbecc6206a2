// Forests: a table of numbers in, the arrays of their trees out.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/growing.hpp"
#include "forest/forest_grower.hpp"
#include "forest/walk.hpp"
#include "index.hpp"
#include "parallel.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

using forest::ForestTask;
using forest::GrownTree;

// One array of all trees, one behind the other; those of the trees are given up.
template <class T>
std::vector<T> joined(std::vector<GrownTree>& trees, std::vector<T> GrownTree::* part) {
  std::size_t size = 0;
  for (const GrownTree& tree : trees) size += (tree.*part).size();
  std::vector<T> all;
  all.reserve(size);
  for (GrownTree& tree : trees) {
    all.insert(all.end(), (tree.*part).begin(), (tree.*part).end());
    std::vector<T>().swap(tree.*part);
  }
  return all;
}

template <class T>
Array<T> given_back(std::vector<T> values) {
  const std::size_t size = values.size();
  return to_numpy(std::move(values), {size});
}

// Where each tree's part begins, and the end.
template <class T>
Array<std::int64_t> starts(const std::vector<GrownTree>& trees, std::vector<T> GrownTree::* part) {
  std::vector<std::int64_t> start{0};
  for (const GrownTree& tree : trees) start.push_back(start.back() + length(tree.*part));
  return given_back(std::move(start));
}

TreeArrays forest_arrays(std::vector<GrownTree> trees, std::size_t d, std::size_t n_classes) {
  TreeArrays arrays;
  const std::size_t n_trees = trees.size();
  arrays["start"] = starts(trees, &GrownTree::feature);
  arrays["leaf_start"] = starts(trees, &GrownTree::leaf_rows);
  arrays["feature"] = given_back(joined(trees, &GrownTree::feature));
  arrays["right"] = given_back(joined(trees, &GrownTree::right));
  arrays["threshold"] = given_back(joined(trees, &GrownTree::threshold));
  arrays["weight"] = given_back(joined(trees, &GrownTree::leaf_weight));
  arrays["n_rows"] = given_back(joined(trees, &GrownTree::leaf_rows));
  arrays["decrease"] = to_numpy(joined(trees, &GrownTree::decrease), {n_trees, d});
  if (n_classes == 0) {
    arrays["mean"] = given_back(joined(trees, &GrownTree::mean));
    arrays["impurity"] = given_back(joined(trees, &GrownTree::impurity));
    return arrays;
  }
  std::int32_t first = 0;  // where the tree's own shares begin
  for (GrownTree& tree : trees) {
    for (std::int32_t& shape : tree.leaf_shape) shape += shape < static_cast<std::int32_t>(n_classes) ? 0 : first;
    first += static_cast<std::int32_t>(tree.shares.size() / n_classes);
  }
  arrays["shape_index"] = given_back(joined(trees, &GrownTree::leaf_shape));
  GrownTree pure;
  pure.shares.resize(n_classes * n_classes);
  for (std::size_t k = 0; k < n_classes; ++k) pure.shares[k * n_classes + k] = 1;
  trees.insert(trees.begin(), std::move(pure));
  std::vector<double> shares = joined(trees, &GrownTree::shares);
  const std::size_t rows = shares.size() / n_classes;
  arrays["shares"] = to_numpy(std::move(shares), {rows, n_classes});
  return arrays;
}

class BoundForestGrower {
 public:
  BoundForestGrower(const GivenBlock& cells, std::int64_t n, Vector<std::int32_t> label, int n_classes,
                    Vector<double> number, Vector<double> weight, const GivenGrowth& growth, std::int64_t n_trees,
                    std::int64_t first, std::uint64_t seed, std::int64_t n_drawn, double min_weight_share, int threads)
      : owners_(nb::make_tuple(cells.cells, label, number, weight)), n_classes_(static_cast<std::size_t>(n_classes)) {
    require(n > 0 && n < (std::int64_t{1} << 31), "a tree takes 1 to 2^31 - 1 rows");
    require(n_drawn >= 0 && n_drawn < (std::int64_t{1} << 31), "a tree draws at most 2^31 - 1 rows");
    require(n_trees >= 0 && first >= 0, "trees are counted from 0");
    require(static_cast<std::int64_t>(n_classes > 0 ? label.size() : number.size()) == n &&
                (n_classes > 0 ? number.size() : label.size()) == 0,
            "the target must be (n): label of classes, else number");
    require(weight.size() == 0 || static_cast<std::int64_t>(weight.size()) == n, "weight must be (n) or empty");
    for (std::size_t i = 0; i < label.size(); ++i)
      require(label.data()[i] >= 0 && label.data()[i] < n_classes, "a label lies beyond the classes");
    for (std::size_t i = 0; i < weight.size(); ++i) require(weight.data()[i] > 0, "weights must be positive");
    require_finite(number, "numbers must be finite");
    Columns columns;
    columns.append(nb::cast(cells));
    ForestTask task{};
    task.columns = columns_of(columns, n);
    require(!task.columns.empty(), "a forest needs a column");
    task.n = n;
    task.label = span_of(label);
    task.n_classes = n_classes;
    task.number = span_of(number);
    task.weight = span_of(weight);
    set_rules(growth, task);
    task.seed = seed;
    task.first = first;
    task.n_drawn = n_drawn;
    task.min_weight_share = min_weight_share * (1 - tree::kEqualGain);
    d_ = task.columns.size();
    grower_ = std::make_unique<forest::ForestGrower>(std::move(task), n_trees, threads);
  }

  bool run(double seconds) {
    nb::gil_scoped_release unlocked;
    return grower_->run(seconds);
  }
  std::int64_t trees_done() const { return grower_->trees_done(); }
  TreeArrays take() { return forest_arrays(grower_->take(), d_, n_classes_); }

 private:
  static void set_rules(const GivenGrowth& growth, ForestTask& task) {
    const bool is_of_classes = task.n_classes > 0;
    require(is_of_classes ? growth.criterion == tree::Criterion::gini || growth.criterion == tree::Criterion::entropy
                          : growth.criterion == tree::Criterion::squared_error,
            "a forest of the core takes gini, entropy or squared_error");
    require(growth.split_score == tree::SplitScore::gain && growth.complexity == 0 && growth.majority == 1 &&
                growth.min_gain <= 0 && !growth.max_leaf_nodes && growth.n_bins == 0,
            "a forest of the core takes the largest gain, and trees of any size");
    require(growth.thresholds == tree::Thresholds::every || growth.thresholds == tree::Thresholds::random,
            "a forest of the core takes all thresholds, or random ones");
    task.measure = {growth.criterion, is_of_classes ? task.n_classes : 2, 0.0};
    task.max_depth = growth.max_depth.value_or(std::numeric_limits<std::int64_t>::max());
    task.min_rows_to_split = growth.min_samples_split;
    task.min_rows = std::max<std::int64_t>(growth.min_samples_leaf, 1);
    task.max_columns = growth.max_features.value_or(0);
    task.min_weight = growth.min_weight_leaf * (1 - tree::kEqualGain);  // up to rounding: see scan_rules_of
    task.min_impurity_decrease = growth.min_impurity_decrease;
    task.is_random = growth.thresholds == tree::Thresholds::random;
  }

  nb::tuple owners_;
  std::size_t n_classes_, d_ = 0;
  std::unique_ptr<forest::ForestGrower> grower_;
};

// The arrays of a forest that send rows down, looked through so that no row can leave them.
class BoundForest {
 public:
  BoundForest(Vector<std::int64_t> start, Vector<std::int32_t> feature, Vector<double> threshold,
              Vector<std::int32_t> right, Vector<std::int64_t> leaf_start, std::optional<Vector<std::int8_t>> missing)
      : owners_(nb::make_tuple(start, feature, threshold, right, leaf_start, missing)) {
    view_ = {{span_of(start), span_of(feature), span_of(threshold), {}, span_of(right), {}}, span_of(leaf_start)};
    if (missing) view_.missing_branch = span_of(*missing);
    check();
  }

  Array<double> sums(const Points& points, Matrix<double> value, std::optional<Vector<std::int32_t>> place,
                     int threads) {
    const auto rows = static_cast<std::int64_t>(value.shape(0)), n_leaves = view_.leaf_start.back();
    forest::LeafValues values{{value.data(), value.size()}, {}, static_cast<std::int64_t>(value.shape(1))};
    require(values.width > 0, "value must have a column");
    if (place) {
      values.place = span_of(*place);
      require(rows >= values.width && length(values.place) == n_leaves,
              "place must be (leaves), value (rows, classes)");
      for (const std::int32_t row : values.place) require(row >= 0 && row < rows, "a place lies beyond the values");
      for (std::int64_t k = 0; k < values.width * values.width; ++k)
        require(value.data()[k] == (k % (values.width + 1) == 0), "the first rows of value must be the pure leaves");
    } else {
      require(rows == n_leaves, "value must have a row for each leaf");
    }
    const auto n = static_cast<std::size_t>(points.n), width = static_cast<std::size_t>(values.width);
    auto out = std::make_unique<double[]>(n * width);
    with_trees(points, threads,
               [&](const forest::PackedTrees& trees) { trees.sums(points.rows, values, threads, out.get()); });
    return handed_over(std::move(out), {n, width});
  }

  Array<std::int32_t> leaves(const Points& points, int threads) {
    const auto n = static_cast<std::size_t>(points.n), n_trees = static_cast<std::size_t>(view_.n_trees());
    auto out = std::make_unique<std::int32_t[]>(n * n_trees);
    with_trees(points, threads,
               [&](const forest::PackedTrees& trees) { trees.leaves(points.rows, threads, out.get()); });
    return handed_over(std::move(out), {n, n_trees});
  }

 private:
  void check() const {
    const std::int64_t m = length(view_.feature), n_trees = view_.n_trees();
    require(n_trees >= 0 && length(view_.leaf_start) == n_trees + 1 && length(view_.threshold) == m &&
                length(view_.right) == m && (view_.missing_branch.empty() || length(view_.missing_branch) == m),
            "the arrays of the forest disagree in length");
    require(view_.start[0] == 0 && view_.leaf_start[0] == 0 && view_.start[n_trees] == m,
            "the starts of the forest leave its nodes");
    for (std::int64_t t = 0; t < n_trees; ++t) {
      require(view_.start[t] < view_.start[t + 1] && view_.start[t + 1] <= m, "a tree has no nodes");
      check_tree(view_.start[t], view_.start[t + 1], view_.leaf_start[t + 1] - view_.leaf_start[t]);
    }
  }
  void check_tree(std::int64_t begin, std::int64_t end, std::int64_t n_leaves) const {
    std::int64_t leaves = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t right = view_.right[i], at = i - begin;
      if (view_.feature[i] < 0) {
        require(right >= 0 && right < n_leaves, "a leaf's number lies beyond the leaves of its tree");
        ++leaves;
      } else {
        require(right > at + 1 && right < end - begin, "a child must stand behind its parent");
      }
    }
    require(leaves == n_leaves, "a tree has another number of leaves");
  }

  template <class Use>
  void with_trees(const Points& points, int threads, Use use) {
    for (const std::int32_t j : view_.feature) require(j < points.d, "a tree tests a column that is not there");
    require(points.d > 0, "the rows have no columns");
    nb::gil_scoped_release unlocked;
    const bool is_single =
        std::holds_alternative<DenseRows<float>>(points.rows) || std::holds_alternative<CsrRows<float>>(points.rows);
    const std::lock_guard lock(packing_);
    std::unique_ptr<forest::PackedTrees>& trees = is_single ? single_ : twice_;
    if (!trees) trees = forest::pack_trees(view_, is_single, threads);
    use(*trees);
  }
  template <class T>
  static Array<T> handed_over(std::unique_ptr<T[]> values, std::vector<std::size_t> shape) {
    nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Array<T>(values.release(), shape.size(), shape.data(), owner);
  }

  nb::tuple owners_;
  forest::ForestView view_;
  std::mutex packing_;
  std::unique_ptr<forest::PackedTrees> single_, twice_;  // made when they are first asked for
};

}  // namespace

void bind_forest(nb::module_& m) {
  nb::class_<BoundForest>(m, "ForestTrees")
      .def(nb::init<Vector<std::int64_t>, Vector<std::int32_t>, Vector<double>, Vector<std::int32_t>,
                    Vector<std::int64_t>, std::optional<Vector<std::int8_t>>>(),
           nb::kw_only(), "start"_a, "feature"_a, "threshold"_a, "right"_a, "leaf_start"_a,
           "missing_branch"_a.none() = nb::none());
  m.def(
      "forest_sums",
      [](BoundForest& trees, const Points& points, Matrix<double> value, std::optional<Vector<std::int32_t>> place,
         int threads) { return trees.sums(points, value, place, threads); },
      "trees"_a, "points"_a, nb::kw_only(), "value"_a, "place"_a.none(), "threads"_a);
  m.def(
      "forest_leaves",
      [](BoundForest& trees, const Points& points, int threads) { return trees.leaves(points, threads); }, "trees"_a,
      "points"_a, nb::kw_only(), "threads"_a);
  nb::class_<BoundForestGrower>(m, "ForestGrower")
      .def(nb::init<const GivenBlock&, std::int64_t, Vector<std::int32_t>, int, Vector<double>, Vector<double>,
                    const GivenGrowth&, std::int64_t, std::int64_t, std::uint64_t, std::int64_t, double, int>(),
           "cells"_a, nb::kw_only(), "n"_a, "label"_a, "n_classes"_a, "number"_a, "weight"_a, "growth"_a, "n_trees"_a,
           "first"_a, "seed"_a, "n_drawn"_a, "min_weight_share"_a = 0.0, "threads"_a)
      .def("run", &BoundForestGrower::run, "seconds"_a)
      .def("trees_done", &BoundForestGrower::trees_done)
      .def("take", &BoundForestGrower::take);
}

}  // namespace margrove
