#include "forest/task.hpp"

#include <algorithm>
#include <numeric>

#include "index.hpp"

namespace margrove::forest {

void ForestTask::prepare() {
  column_key.resize(columns.size());
  for (std::size_t j = 0; j < columns.size(); ++j) column_key[j] = tree::mixed(j);
  if (has_counts()) {
    by_class.resize(static_cast<std::size_t>(n));
    std::iota(by_class.begin(), by_class.end(), 0u);
    std::stable_sort(by_class.begin(), by_class.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return label[a] < label[b]; });
  }
  if (!has_counts() || measure.criterion != tree::Criterion::entropy) return;
  x_log_x.resize((n_drawn > 0 ? n_drawn : n) + 1);
  for (std::size_t x = 0; x < x_log_x.size(); ++x) x_log_x[x] = tree::x_log_x(static_cast<double>(x));
}

void count_draws(std::uint64_t tree_seed, std::int64_t n_drawn, std::span<std::uint32_t> count) {
  std::fill(count.begin(), count.end(), 0u);
  const auto n = static_cast<unsigned __int128>(count.size());
  const std::uint64_t key = tree::mixed(tree_seed + 1);
  for (std::int64_t i = 0; i < n_drawn; ++i)
    ++count[static_cast<std::size_t>(tree::mixed(key ^ tree::mixed(static_cast<std::uint64_t>(i))) * n >> 64)];
}

}  // namespace margrove::forest
