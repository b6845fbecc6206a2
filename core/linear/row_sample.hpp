// Some of the rows of a linear machine, copied, to go ahead of the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "index.hpp"
#include "linear/order.hpp"
#include "linear/svm_task.hpp"
#include "rows.hpp"

namespace margrove {

// One row of each stretch, so that sorted rows are represented too; together they cost what all do.
template <class Rows>
struct RowSample {
  using T = typename Rows::value_type;
  std::vector<T> data;
  std::vector<std::int32_t> column;  // of sparse rows, as `start`
  std::vector<std::int64_t> start;
  std::vector<double> target, cost;
  Rows rows{};

  RowSample(const Rows& all, const LinearTask& task, std::int64_t count) {
    SplitMix64 random(0);
    std::vector<std::int64_t> chosen;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t from = all.n * k / count, to = all.n * (k + 1) / count;
      chosen.push_back(from + random.below(std::max<std::int64_t>(1, to - from)));
    }
    double of_all = 0, of_some = 0;
    for (const double one : task.cost) of_all += one;
    for (const std::int64_t i : chosen) {
      target.push_back(task.target[i]);
      cost.push_back(task.cost[i]);
      of_some += cost.back();
    }
    for (double& one : cost) one *= of_some > 0 ? of_all / of_some : 0.0;
    if constexpr (requires { all.row(0); }) {
      for (const std::int64_t i : chosen) data.insert(data.end(), all.row(i), all.row(i) + all.d);
      rows = Rows{data.data(), count, all.d};
    } else {
      start.push_back(0);
      for (const std::int64_t i : chosen) {
        data.insert(data.end(), all.data + all.start[i], all.data + all.start[i + 1]);
        column.insert(column.end(), all.column + all.start[i], all.column + all.start[i + 1]);
        start.push_back(length(data));
      }
      rows = Rows{data.data(), column.data(), start.data(), count, all.d};
    }
  }
};

}  // namespace margrove
