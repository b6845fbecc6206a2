// The best test of every column on all rows, whichever a tree would choose: src/margrove/select/problem.py says what
// for.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tree/scan.hpp"

namespace margrove::tree {

struct ColumnTest {
  double n_tests = 0;
  double threshold = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> value;  // (branches, K): the weight of each class; empty where the column offers no test
};

// With `n_bins` > 0 thresholds lie between bins only. The answer is the same for any number of threads.
std::vector<ColumnTest> best_column_tests(std::span<const Column> columns, std::int64_t n,
                                          std::span<const std::int32_t> label, int n_classes, ScanRules rules,
                                          int n_bins, int threads);

}  // namespace margrove::tree
