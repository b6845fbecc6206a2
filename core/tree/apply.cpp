#include "tree/apply.hpp"

#include <algorithm>
#include <cmath>

#include "parallel.hpp"

namespace margrove::tree {
namespace {

constexpr std::int64_t kRowsAtOnce = 4096;  // of one thread's turn
constexpr int kSideBySide = 16;             // rows that go down together: one's wait for memory is another's step

// A threshold test packed for the way down. A leaf leads to itself.
struct Step {
  double threshold;
  std::int32_t feature;
  std::int32_t child[2];
  std::int32_t missing;  // the child of a missing cell
};

std::vector<Step> steps_of(const TreeView& tree) {
  std::vector<Step> steps(tree.feature.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto own = static_cast<std::int32_t>(i);
    if (tree.feature[i] < 0) {
      steps[i] = {0.0, 0, {own, own}, own};
      continue;
    }
    const std::int32_t* child = tree.child.data() + tree.child_start[i];
    steps[i] = {tree.threshold[i], tree.feature[i], {child[0], child[1]}, child[tree.missing_branch[i]]};
  }
  return steps;
}

template <class T>
std::int32_t next_of(const Step& step, T x) {
  const auto value = static_cast<double>(x);
  const std::int32_t next = step.child[!(value <= step.threshold)];
  return std::isnan(value) ? step.missing : next;
}

template <class T>
void go_down(const std::vector<Step>& steps, const DenseRows<T>& rows, std::int64_t begin, std::int64_t end,
             std::int32_t* leaf) {
  for (std::int64_t first = begin; first < end; first += kSideBySide) {
    const int count = static_cast<int>(std::min<std::int64_t>(kSideBySide, end - first));
    std::int32_t at[kSideBySide] = {};
    for (std::int32_t moved = 1; moved;) {
      moved = 0;
      for (int r = 0; r < count; ++r) {
        const Step& step = steps[static_cast<std::size_t>(at[r])];
        const std::int32_t next = next_of(step, rows.row(first + r)[step.feature]);
        moved |= next ^ at[r];
        at[r] = next;
      }
    }
    std::copy_n(at, count, leaf + first);
  }
}

// A sparse row is laid out in full, walked with, and taken up again.
template <class T>
void go_down(const std::vector<Step>& steps, const CsrRows<T>& rows, std::int64_t begin, std::int64_t end,
             std::int32_t* leaf) {
  std::vector<T> row(static_cast<std::size_t>(rows.d) + 1);
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k)
      row[static_cast<std::size_t>(rows.column[k])] = rows.data[k];
    std::int32_t at = 0;
    for (std::int32_t next;
         (next = next_of(steps[static_cast<std::size_t>(at)],
                         row[static_cast<std::size_t>(steps[static_cast<std::size_t>(at)].feature)])) != at;)
      at = next;
    leaf[i] = at;
    for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) row[static_cast<std::size_t>(rows.column[k])] = 0;
  }
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
  const std::int32_t branch = code >= 0 && code < size ? tree.level_branch[static_cast<std::size_t>(begin + code)] : -1;
  return branch < 0 ? tree.default_branch[node] : branch;
}

}  // namespace

void apply_rows(const TreeView& tree, const AnyRows& rows, int threads, std::int32_t* leaf) {
  const std::vector<Step> steps = steps_of(tree);
  std::visit(
      [&](const auto& view) {
        parallel_for((view.n + kRowsAtOnce - 1) / kRowsAtOnce, threads, [&](std::int64_t p) {
          go_down(steps, view, p * kRowsAtOnce, std::min(view.n, (p + 1) * kRowsAtOnce), leaf);
        });
      },
      rows);
}

void apply_columns(const TreeView& tree, std::span<const Column> columns, std::int64_t n, int threads,
                   std::int32_t* leaf) {
  parallel_for((n + kRowsAtOnce - 1) / kRowsAtOnce, threads, [&](std::int64_t p) {
    for (std::int64_t i = p * kRowsAtOnce; i < std::min(n, (p + 1) * kRowsAtOnce); ++i) {
      std::size_t node = 0;
      while (tree.feature[node] >= 0) {
        const auto j = static_cast<std::size_t>(tree.feature[node]);
        const std::int32_t branch = branch_of(tree, node, columns[j], i);
        node = static_cast<std::size_t>(tree.child[static_cast<std::size_t>(tree.child_start[node] + branch)]);
      }
      leaf[i] = static_cast<std::int32_t>(node);
    }
  });
}

}  // namespace margrove::tree
