// Thresholds under absolute error: the errors of all left branches by walking up the list, of all right ones by walking
// down, each with a growing median. The lists of such a tree leave no row out.
#include "tree/absolute.hpp"

#include <cmath>

#include "tree/scan.hpp"

namespace margrove::tree {

void scan_absolute(const ScanRules& rules, const Column& column, const Piece& piece, const NodeSums& node, double cut,
                   ScanSpace& space, Candidate& found) {
  std::uint32_t present = piece.size;
  while (present > 0 && piece.key[present - 1] == kMissing) --present;
  const std::uint32_t missing = piece.size - present;
  const std::size_t n_targets = rules.measure.n_targets();
  const auto w_of = [&](std::uint32_t i) { return rules.weight_of(rules.tags.row(piece.tag[i])); };
  std::vector<GrowingMedian> medians(n_targets);
  const auto clear = [&] {
    for (GrowingMedian& median : medians) median.clear();
  };
  const auto add = [&](std::uint32_t i) {
    const double* y = rules.number.data() + rules.tags.row(piece.tag[i]) * n_targets;
    const double w = w_of(i);
    if (n_targets == 1) return medians[0].add(*y - node.shift, w);
    for (std::size_t t = 0; t < n_targets; ++t) medians[t].add(y[t] - node.shifts[t], w);
  };
  const auto error = [&] {
    double sum = 0;
    for (const GrowingMedian& median : medians) sum += median.error();
    return sum / static_cast<double>(n_targets);
  };
  space.ahead.resize(std::size_t{present} +
                     1);  // the error of the rows from i on, and missing ones where they go right
  for (int route = 0; route < (missing ? 2 : 1); ++route) {
    const bool is_missing_left = route == 1;
    clear();
    double weight_right = 0;
    if (!is_missing_left)
      for (std::uint32_t i = present; i < piece.size; ++i) add(i), weight_right += w_of(i);
    space.ahead_median.resize(space.ahead.size());
    space.ahead[present] = error();
    space.ahead_median[present] = medians[0].median();
    for (std::uint32_t i = present; i-- > 0;) {
      add(i);
      space.ahead[i] = error();
      space.ahead_median[i] = medians[0].median();
      weight_right += w_of(i);
    }
    clear();
    std::int64_t rows = 0;
    if (is_missing_left)
      for (std::uint32_t i = present; i < piece.size; ++i) add(i), ++rows;
    for (std::uint32_t i = 0; i < present; ++i) {
      add(i);
      weight_right -= w_of(i);
      ++rows;
      const bool is_last = i + 1 == present;
      if (is_last ? is_missing_left || !missing : piece.key[i] == piece.key[i + 1]) continue;
      const auto value = [&](std::uint32_t at) { return column.cell(rules.tags.row(piece.tag[at])); };
      if (!is_last && !std::isnan(cut) && !(value(i) <= cut && cut < value(i + 1))) continue;
      if (route == 0) ++found.n_tests;
      if (rows < rules.min_rows || node.rows - rows < rules.min_rows) continue;
      if (weight_right < rules.min_weight || node.weight - weight_right < rules.min_weight) continue;
      const double low = node.shift + medians[0].median(), high = node.shift + space.ahead_median[i + 1];
      if (column.monotone && !is_last && !is_in_order(rules, column, node, low, high)) continue;
      const double excess = -error() - space.ahead[i + 1] - node.purity;
      if (found.found() && excess <= found.excess + node.tolerance) continue;
      found.excess = excess;
      found.cut_key = piece.key[i];
      found.left_row = rules.tags.row(piece.tag[i]);
      found.right_row = is_last ? 0 : rules.tags.row(piece.tag[i + 1]);
      found.is_present_test = is_last;
      found.theta = is_last ? kNoCut : cut;
      found.is_missing_left = is_missing_left;
      found.split_information = split_information(node.weight - weight_right, weight_right);
    }
  }
}

}  // namespace margrove::tree
