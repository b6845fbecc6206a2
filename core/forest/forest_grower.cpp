#include "forest/forest_grower.hpp"

#include <algorithm>
#include <utility>

#include "index.hpp"
#include "parallel.hpp"

namespace margrove::forest {

ForestGrower::ForestGrower(ForestTask task, std::int64_t n_trees, int threads)
    : task_(std::move(task)),
      threads_(std::max(threads, 1)),
      table_(task_.columns, task_.n, threads_),
      cells_(task_),
      trees_(static_cast<std::size_t>(n_trees)),
      is_done_(static_cast<std::size_t>(n_trees)) {
  task_.prepare();
}

bool ForestGrower::run(double seconds) {
  const auto until = in_seconds(seconds);
  if (!is_sorted_ && !task_.is_random && !table_.sort(until)) return false;
  is_sorted_ = true;
  const auto most = std::max<std::int64_t>(1, std::min<std::int64_t>(threads_, length(trees_)));
  while (length(workers_) < most)
    workers_.push_back(std::make_unique<Worker>(Worker{TreeGrower(task_, table_, cells_)}));
  return take_turns(
      workers_, next_, trees_.size(), until, [](const Worker& worker) { return worker.tree < 0; },
      [&](Worker& worker, std::size_t t) {
        worker.tree = static_cast<std::int64_t>(t);
        worker.grower.plant(task_.first + worker.tree);
      },
      [&](Worker& worker) {
        if (!worker.grower.run(until)) return false;
        trees_[worker.tree] = worker.grower.take();
        is_done_[worker.tree] = true;
        worker.tree = -1;
        ++done_;
        return true;
      });
}

std::vector<GrownTree> ForestGrower::take() {
  workers_.clear();
  const auto end = std::find(is_done_.begin(), is_done_.end(), 0) - is_done_.begin();
  trees_.resize(static_cast<std::size_t>(end));
  return std::move(trees_);
}

}  // namespace margrove::forest
