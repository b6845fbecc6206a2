#include "tree/column_tests.hpp"

#include <algorithm>

#include "index.hpp"
#include "parallel.hpp"
#include "tree/growing.hpp"
#include "tree/lists.hpp"

namespace margrove::tree {
namespace {

constexpr std::size_t kBatch = 64;  // columns sorted at a time: all at once may need much memory. Chosen, not measured
// Cells: with fewer, threads cost more than they bring (kSharedWork of grower.cpp).
constexpr std::int64_t kAlone = 40000;

NodeSums sums_of_all(const ScanRules& rules, std::int64_t n, std::span<const std::int32_t> label, int n_classes) {
  NodeSums sums;
  sums.rows = n;
  sums.sum.assign(n_classes, 0.0);
  sums.seen.assign(n_classes, 0);
  for (std::size_t i = 0; i < label.size(); ++i) {
    const double w = rules.weight_of(i);
    sums.sum[label[i]] += w;
    sums.weight += w;
    ++sums.seen[label[i]];
  }
  summarise_classes(rules, sums);
  return sums;
}

// The weight of each class in each branch of a test.
std::vector<double> class_table(const ScanRules& rules, const List& list, const NodeSums& all, const Candidate& test) {
  const std::size_t width = all.sum.size();
  std::vector<double> table(branches_of(test) * width, 0.0), rest = all.sum;
  std::vector<std::uint32_t> seen = all.seen;
  double* branch = nullptr;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    if (i == 0 || list.key[i] != list.key[i - 1]) branch = table.data() + branch_of(test, list.key[i]) * width;
    const std::uint32_t k = rules.tags.label_of(list.tag[i]);
    const double w = rules.weight_of(rules.tags.row(list.tag[i]));
    branch[k] += w;
    rest[k] -= w;
    --seen[k];
  }
  if (list.size == all.rows) return table;
  branch = table.data() + branch_of(test, list.mode) * width;
  for (std::size_t k = 0; k < width; ++k)
    if (seen[k]) branch[k] += rest[k];  // and not what rounding has left
  return table;
}

ColumnTest best_test(const ScanRules& rules, const Lists& lists, std::size_t j, const NodeSums& all, ScanSpace& space) {
  const Column& column = lists.columns()[j];
  const List& list = lists.lists()[j];
  Candidate test;
  scan(rules, column, {list.mode, lists.mode_value(j)}, {list.key, list.tag, list.size}, all, kNoFloor, space, test);
  ColumnTest found;
  if (!test.found()) return found;
  found.n_tests = test.n_tests;
  if (column.test == Test::threshold) found.threshold = threshold_of(lists, j, test);
  found.value = class_table(rules, list, all, test);
  return found;
}

}  // namespace

std::vector<ColumnTest> best_column_tests(std::span<const Column> columns, std::int64_t n,
                                          std::span<const std::int32_t> label, int n_classes, ScanRules rules,
                                          int n_bins, int threads) {
  if (n * length(columns) < kAlone) threads = 1;
  rules.prepare(n);
  const NodeSums all = sums_of_all(rules, n, label, n_classes);
  std::vector<ScanSpace> spaces(std::max(threads, 1));
  std::vector<ColumnTest> tests(columns.size());
  for (std::size_t first = 0; first < columns.size(); first += kBatch) {
    const auto batch = columns.subspan(first, std::min(kBatch, columns.size() - first));
    Lists lists(batch, n, label, n_classes, n_bins, true, false, threads);
    lists.sort(std::chrono::steady_clock::time_point::max());
    rules.tags = lists.tags();
    parallel_for(length(batch), threads, [&](std::int64_t r) {
      const std::size_t j = r;
      tests[first + j] = best_test(rules, lists, j, all, spaces[thread_number()]);
    });
  }
  return tests;
}

}  // namespace margrove::tree
