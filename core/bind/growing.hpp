// Trees between Python and the core: what both the growers and the booster are given and give back.
#pragma once

#include <nanobind/stl/variant.h>

#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "bind/arrays.hpp"
#include "tree/growing.hpp"

namespace margrove {

// A column as Python gives it.
struct GivenColumn {
  tree::Test test;
  int monotone;
  nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu> cells;  // float32, float64, or codes in int32
  std::int64_t n_codes;
  Vector<double> cuts;
  std::optional<Vector<std::int32_t>> rows;  // of the cells of a sparse column
};
// A table of floats, of any strides, each of whose columns is tested by thresholds.
struct GivenBlock {
  nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu> cells;
};
// The same of a CSC matrix: the cells of column j are start[j] .. start[j + 1] − 1.
struct GivenSparse {
  nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> cells;
  Vector<std::int32_t> rows;
  Vector<std::int64_t> start;
};
using Columns = nb::typed<nb::list, std::variant<GivenColumn, GivenBlock, GivenSparse>>;
// What the columns point to must outlive them.
std::vector<tree::Column> columns_of(const Columns& given, std::int64_t n);
// Every code is one of its column's levels.
void require_codes(std::span<const tree::Column> columns, std::int64_t n);

// Columns that are sorted once for several trees.
class SortedColumns {
 public:
  SortedColumns(Columns columns, std::int64_t n, int n_bins, bool may_leave_out, int threads);
  // Goes on for about so many seconds. True when all are sorted.
  bool run(double seconds);
  const tree::Lists& lists() const { return *lists_; }

 private:
  Columns owners_;
  std::vector<tree::Column> columns_;
  std::unique_ptr<tree::Lists> lists_;
};

// How to grow: the fields of `Growth` in src/margrove/tree/problem.py, where they are explained.
struct GivenGrowth {
  tree::Criterion criterion;
  tree::SplitScore split_score;
  tree::Thresholds thresholds;
  double variance_floor;
  std::optional<std::int64_t> max_depth;
  std::int64_t min_samples_split, min_samples_leaf;
  double min_weight_leaf;
  std::optional<std::int64_t> max_leaf_nodes, max_features;
  double min_impurity_decrease, min_gain, majority, complexity;
  int n_bins;  // 0: thresholds everywhere
  std::optional<std::uint64_t> seed;
};

// What a grower is asked. `number` is empty where the target is a class, and `label` otherwise. Of several targets
// `outputs` has the number of classes of each, or of numbers 1; both are then (n, targets).
struct Asked {
  std::int64_t n;
  std::span<const std::int32_t> label;
  int n_classes;
  std::span<const double> number, weight;
  std::span<const int> outputs;
  const GivenGrowth& growth;
  const SortedColumns* sorted;  // or null; it must outlive the grower
  int threads;
};
std::unique_ptr<tree::Growing> grower_of(const Columns& columns, const Asked& asked, bool keeps_order);

using TreeArrays = nb::typed<nb::dict, nb::str, nb::ndarray<nb::numpy>>;
// The arrays of model.py, of one tree or of several, each depth first, one behind the other.
TreeArrays arrays_of(std::span<const tree::Node> nodes, std::size_t n_classes);

}  // namespace margrove
