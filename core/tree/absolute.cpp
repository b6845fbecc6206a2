// Thresholds under absolute error: the errors of all left branches by walking up the list, of all right ones by walking
// down, each with a growing median. The lists of such a tree leave no row out.
#include "tree/absolute.hpp"

#include "tree/scan.hpp"

namespace margrove::tree {

void scan_absolute(const ScanRules& rules, const Column& column, const Piece& piece, const NodeSums& node,
                   ScanSpace& space, Candidate& found) {
  std::uint32_t present = piece.size;
  while (present > 0 && piece.key[present - 1] == kMissing) --present;
  const std::uint32_t missing = piece.size - present;
  const auto y_of = [&](std::uint32_t i) { return rules.number[rules.tags.row(piece.tag[i])] - node.shift; };
  const auto w_of = [&](std::uint32_t i) { return rules.weight_of(rules.tags.row(piece.tag[i])); };
  GrowingMedian median;
  space.ahead.resize(std::size_t{present} +
                     1);  // the error of the rows from i on, and missing ones where they go right
  for (int route = 0; route < (missing ? 2 : 1); ++route) {
    const bool is_missing_left = route == 1;
    median.clear();
    double weight_right = 0;
    if (!is_missing_left)
      for (std::uint32_t i = present; i < piece.size; ++i) median.add(y_of(i), w_of(i)), weight_right += w_of(i);
    space.ahead_median.resize(space.ahead.size());
    space.ahead[present] = median.error();
    space.ahead_median[present] = median.median();
    for (std::uint32_t i = present; i-- > 0;) {
      median.add(y_of(i), w_of(i));
      space.ahead[i] = median.error();
      space.ahead_median[i] = median.median();
      weight_right += w_of(i);
    }
    median.clear();
    std::int64_t rows = 0;
    if (is_missing_left)
      for (std::uint32_t i = present; i < piece.size; ++i) median.add(y_of(i), w_of(i)), ++rows;
    for (std::uint32_t i = 0; i < present; ++i) {
      median.add(y_of(i), w_of(i));
      weight_right -= w_of(i);
      ++rows;
      const bool is_last = i + 1 == present;
      if (is_last ? is_missing_left || !missing : piece.key[i] == piece.key[i + 1]) continue;
      if (route == 0) ++found.n_tests;
      if (rows < rules.min_rows || node.rows - rows < rules.min_rows) continue;
      if (weight_right < rules.min_weight || node.weight - weight_right < rules.min_weight) continue;
      const double low = node.shift + median.median(), high = node.shift + space.ahead_median[i + 1];
      if (column.monotone && !is_last && !is_in_order(rules, column, node, low, high)) continue;
      const double excess = -median.error() - space.ahead[i + 1] - node.purity;
      if (found.found() && excess <= found.excess + node.tolerance) continue;
      found.excess = excess;
      found.cut_key = piece.key[i];
      found.left_row = rules.tags.row(piece.tag[i]);
      found.right_row = is_last ? 0 : rules.tags.row(piece.tag[i + 1]);
      found.is_present_test = is_last;
      found.is_missing_left = is_missing_left;
      found.split_information = split_information(node.weight - weight_right, weight_right);
    }
  }
}

}  // namespace margrove::tree
