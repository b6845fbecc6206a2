#include "tree/apply.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "index.hpp"
#include "parallel.hpp"
#include "rounded_down.hpp"
#include "tree/treelets.hpp"

namespace margrove::tree {
namespace {

constexpr std::int64_t kRowsAtOnce = 4096;  // rows of one thread's turn: their leaves are 16 KiB, in L1
// Rows on their way at a time: one's wait for memory is another's step. 16 at first; no measurement recorded.
constexpr int kSideBySide = 12;

// A threshold test packed for the way down, with the threshold in the type of the cells.
template <class T>
struct Step {
  T threshold;
  std::int32_t feature;  // -1 at a leaf
  std::int32_t child[2];
  std::int32_t missing;  // the child of a missing cell
};

template <class T>
std::vector<Step<T>> steps_of(const TreeView& tree) {
  std::vector<Step<T>> steps(tree.feature.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].feature = tree.feature[i];
    if (tree.feature[i] < 0) continue;
    const std::int32_t* child = tree.child.data() + tree.child_start[i];
    steps[i] = {
        rounded_down<T>(tree.threshold[i]), tree.feature[i], {child[0], child[1]}, child[tree.missing_branch[i]]};
  }
  return steps;
}

template <class T>
MARGROVE_INLINE std::int32_t next_of(const Step<T>& step, T x) {
  const std::int32_t next = step.child[!(x <= step.threshold)];
  return x != x ? step.missing : next;
}

// The leaves of the rows begin .. end − 1. Some go down side by side; where one has come to its leaf, the next sets
// out.
template <class T>
void go_down(const std::vector<Step<T>>& steps, const DenseRows<T>& rows, std::int64_t begin, std::int64_t end,
             std::int32_t root, std::int32_t* leaf) {
  std::int64_t row[kSideBySide];
  const T* cells[kSideBySide];
  std::int32_t at[kSideBySide];
  const std::int64_t first = begin;
  int walking = 0;
  for (; walking < kSideBySide && begin < end; ++walking, ++begin) {
    row[walking] = begin;
    cells[walking] = rows.row(begin);
    at[walking] = root;
  }
  while (walking) {
    for (int r = 0; r < walking; ++r) {
      const Step<T>& step = steps[at[r]];
      if (step.feature >= 0) {
        at[r] = next_of(step, cells[r][step.feature]);
        continue;
      }
      leaf[row[r] - first] = at[r];
      if (begin < end) {
        row[r] = begin;
        cells[r] = rows.row(begin++);
        at[r] = root;
      } else {
        --walking;
        row[r] = row[walking];
        cells[r] = cells[walking];
        at[r] = at[walking];
        --r;
      }
    }
  }
}

// A sparse row is laid out in full, walked with, and taken up again.
template <class T>
void go_down(const std::vector<Step<T>>& steps, const CsrRows<T>& rows, std::int64_t begin, std::int64_t end,
             std::int32_t root, std::int32_t* leaf) {
  std::vector<T> cells(rows.d);
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) cells[rows.column[k]] = rows.data[k];
    std::int32_t at = root;
    while (steps[at].feature >= 0) {
      const Step<T>& step = steps[at];
      at = next_of(step, cells[step.feature]);
    }
    leaf[i - begin] = at;
    for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) cells[rows.column[k]] = 0;
  }
}

// The tree as treelets are cut from it.
struct AsThresholds {
  std::int64_t start[2];
  std::vector<std::int32_t> left, right;
  std::vector<std::int8_t> missing;

  explicit AsThresholds(const TreeView& tree)
      : start{0, length(tree.feature)},
        left(tree.feature.size()),
        right(tree.feature.size()),
        missing(tree.feature.size()) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      right[i] = static_cast<std::int32_t>(i);
      if (tree.feature[i] < 0) continue;
      const std::int32_t* child = tree.child.data() + tree.child_start[i];
      left[i] = child[0];
      right[i] = child[1];
      missing[i] = static_cast<std::int8_t>(tree.missing_branch[i]);
    }
  }
  ThresholdTrees view(const TreeView& tree) const {
    return {start, tree.feature, tree.threshold, left, right, missing};
  }
};

// All rows by treelets, if the processor has the instructions, and they are so many that cutting the tree pays.
template <class T>
bool apply_by_treelets(const TreeView& tree, const DenseRows<T>& rows, int threads, std::int32_t* leaf) {
  if (rows.n < length(tree.feature)) return false;
  const AsThresholds thresholds(tree);
  const ThresholdTrees view = thresholds.view(tree);
  if (!Treelets::suit(view)) return false;
  const Treelets treelets(view, threads);
  constexpr std::int64_t kRows = 1024;  // of a turn: laid out, they stay in the second cache
  parallel_for((rows.n + kRows - 1) / kRows, threads, [&](std::int64_t p) {
    const std::int64_t begin = p * kRows, size = std::min(kRows, rows.n - begin);
    const RowBlock<T> block{rows.row(begin), rows.d, size, (rows.n - begin) * rows.d};
    treelets.walk(0, treelets.staged(block), block, leaf + begin);
  });
  return true;
}
template <class T>
bool apply_by_treelets(const TreeView&, const CsrRows<T>&, int, std::int32_t*) {
  return false;
}

std::int32_t branch_of(const TreeView& tree, std::size_t node, const Column& column, std::int64_t i) {
  std::int64_t code;
  if (column.cells == CellKind::code) {
    code = static_cast<const std::int32_t*>(column.data)[i * column.stride];
    if (code == -1) return tree.missing_branch[node];
  } else {
    const double x = column.number(i);
    if (std::isnan(x)) return tree.missing_branch[node];
    if (column.test == Test::threshold) return x <= tree.threshold[node] ? 0 : 1;
    code = std::upper_bound(column.cuts.begin(), column.cuts.end(), x) - column.cuts.begin();
  }
  const std::int64_t begin = tree.level_start[node], size = tree.level_start[node + 1] - begin;
  const std::int32_t branch = code >= 0 && code < size ? tree.level_branch[begin + code] : -1;
  return branch < 0 ? tree.default_branch[node] : branch;
}

// The leaf of one row by tests of any kind.
std::int32_t leaf_of(const TreeView& tree, std::span<const Column> columns, std::int64_t i, std::int64_t root) {
  std::size_t node = root;
  while (tree.feature[node] >= 0) {
    const std::size_t j = tree.feature[node];
    const std::int32_t branch = branch_of(tree, node, columns[j], i);
    node = tree.child[tree.child_start[node] + branch];
  }
  return static_cast<std::int32_t>(node);
}

// For the rows of a turn, tree by tree: leaves(root, begin, end, leaf) finds them.
template <class Leaves>
void cast_votes(const GroveView& grove, std::int64_t n, int threads, double* votes, const Leaves& leaves) {
  std::fill_n(votes, n * grove.n_classes, 0.0);
  parallel_for((n + kRowsAtOnce - 1) / kRowsAtOnce, threads, [&](std::int64_t p) {
    const std::int64_t begin = p * kRowsAtOnce, end = std::min(n, begin + kRowsAtOnce);
    std::vector<std::int32_t> leaf(end - begin);
    double* of_rows = votes + begin * grove.n_classes;
    for (std::size_t t = 0; t < grove.vote.size(); ++t) {
      leaves(grove.start[t], begin, end, leaf.data());
      for (std::size_t i = 0; i < leaf.size(); ++i) {
        const std::size_t k = grove.label[leaf[i]];
        of_rows[i * grove.n_classes + k] += grove.vote[t];
      }
    }
  });
}

}  // namespace

void apply_rows(const TreeView& tree, const AnyRows& rows, int threads, std::int32_t* leaf) {
  std::visit(
      [&](const auto& view) {
        using T = typename std::decay_t<decltype(view)>::value_type;
        if (apply_by_treelets(tree, view, threads, leaf)) return;
        const std::vector<Step<T>> steps = steps_of<T>(tree);
        parallel_for((view.n + kRowsAtOnce - 1) / kRowsAtOnce, threads, [&](std::int64_t p) {
          const std::int64_t begin = p * kRowsAtOnce;
          go_down(steps, view, begin, std::min(view.n, begin + kRowsAtOnce), 0, leaf + begin);
        });
      },
      rows);
}

void apply_columns(const TreeView& tree, std::span<const Column> columns, std::int64_t n, int threads,
                   std::int32_t* leaf) {
  parallel_for((n + kRowsAtOnce - 1) / kRowsAtOnce, threads, [&](std::int64_t p) {
    for (std::int64_t i = p * kRowsAtOnce; i < std::min(n, (p + 1) * kRowsAtOnce); ++i)
      leaf[i] = leaf_of(tree, columns, i, 0);
  });
}

void vote_rows(const GroveView& grove, const AnyRows& rows, int threads, double* votes) {
  std::visit(
      [&](const auto& view) {
        using T = typename std::decay_t<decltype(view)>::value_type;
        const std::vector<Step<T>> steps = steps_of<T>(grove.trees);
        cast_votes(grove, view.n, threads, votes, [&](std::int64_t root, auto begin, auto end, std::int32_t* leaf) {
          go_down(steps, view, begin, end, root, leaf);
        });
      },
      rows);
}

void vote_columns(const GroveView& grove, std::span<const Column> columns, std::int64_t n, int threads, double* votes) {
  cast_votes(grove, n, threads, votes, [&](std::int64_t root, auto begin, auto end, std::int32_t* leaf) {
    for (auto i = begin; i < end; ++i) leaf[i - begin] = leaf_of(grove.trees, columns, i, root);
  });
}

NumberSums sum_up_numbers(const TreeView& tree, std::span<const std::int32_t> leaf, std::span<const double> number,
                          std::span<const double> weight, double shift) {
  const std::size_t m = tree.feature.size(), n = leaf.size();
  const auto weight_of = [&](std::size_t i) { return weight.empty() ? 1.0 : weight[i]; };
  NumberSums sums{std::vector<double>(m), std::vector<double>(m), std::vector<double>(m), std::vector<double>(m)};
  // Around one of its numbers the mean of a leaf whose numbers are equal is that number, to the last digit.
  std::vector<double> one(m), off(m), mean(m);
  for (std::size_t i = 0; i < n; ++i) {
    one[leaf[i]] = number[i];
    sums.weight[leaf[i]] += weight_of(i);
  }
  for (std::size_t i = 0; i < n; ++i) off[leaf[i]] += weight_of(i) * (number[i] - shift - (one[leaf[i]] - shift));
  for (std::size_t node = 0; node < m; ++node) {
    if (!(sums.weight[node] > 0)) continue;
    off[node] /= sums.weight[node];
    mean[node] = one[node] - shift + off[node];
    sums.value[node] = one[node] + off[node];
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double from_mean = number[i] - shift - mean[leaf[i]];
    sums.square[leaf[i]] += weight_of(i) * (from_mean * from_mean);
  }
  for (std::size_t node = m; node-- > 0;) {  // children stand behind their parent
    const auto children =
        tree.child.subspan(tree.child_start[node], tree.child_start[node + 1] - tree.child_start[node]);
    if (children.empty()) continue;
    for (const std::int32_t child : children) {
      sums.weight[node] += sums.weight[child];
      mean[node] += sums.weight[child] * mean[child];
      sums.square[node] += sums.square[child];
    }
    mean[node] /= sums.weight[node];
    for (const std::int32_t child : children) {
      const double from_mean = mean[child] - mean[node];
      sums.apart[node] += sums.weight[child] * (from_mean * from_mean);
    }
    sums.square[node] += sums.apart[node];
    sums.value[node] = mean[node] + shift;
  }
  return sums;
}

}  // namespace margrove::tree
