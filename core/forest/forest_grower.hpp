// Growing a forest: each tree is the job of one thread, so the trees are the same for any number of threads.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "forest/task.hpp"
#include "forest/tree_grower.hpp"

namespace margrove::forest {

class ForestGrower {
 public:
  ForestGrower(ForestTask task, std::int64_t n_trees, int threads);

  // Goes on for about so many seconds. True when all trees are done.
  bool run(double seconds);
  std::int64_t trees_done() const { return done_.load(); }
  // The finished trees before the first that is not.
  std::vector<GrownTree> take();

 private:
  struct Worker {
    TreeGrower grower;
    std::int64_t tree = -1;
  };

  ForestTask task_;
  int threads_;
  RankTable table_;
  CellRows cells_;
  bool is_sorted_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<GrownTree> trees_;
  std::vector<std::uint8_t> is_done_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::int64_t> done_{0};
};

}  // namespace margrove::forest
