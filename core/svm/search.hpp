// A search over C, kernels and folds as one computation.
//
// For each kernel (a gamma, say) all n² values are computed once; every fold, every machine and every C reads them
// where they lie. Gaussian kernels of several gammas are made of the same n² inner products, row by row as they are
// needed. A unit is one fold under one kernel: its machines are solved one after another, each along ascending C. The α
// of one C begins the next: the best point of the ray {r α: r <= C'/C}, whose v is known without any kernel value
// (dual.hpp, `on_ray`). The values on the rows held out come from the same n² numbers.
//
// A small machine is one tile of kernel values, copied out of the n², and plain SMO over it; there is nothing to
// allocate, to choose or to hand over. Many small ones are solved fold by fold from one copy. A larger one is a
// BlockSmo whose rows are those of the n².
//
// Values are as T rounds them: nothing here is checked in double. A search chooses; the model that is kept is solved
// and certified by itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "index.hpp"
#include "large_memory.hpp"
#include "svm/block_smo.hpp"

namespace margrove {

// A machine without its bounds, over all rows of any fold.
struct DualVariables {
  std::vector<std::int8_t> y;
  std::vector<double> p;
  std::vector<std::int64_t> point;
};

struct Fold {
  std::vector<double> weight;  // (n) the bound of a variable is C times its point's; 0 for rows that take no part
  std::vector<std::int64_t> held_out;
};

struct SearchUnit {
  std::int64_t kernel, fold;
  double shift;           // added to every p: the epsilon of a regression
  std::vector<double> C;  // ascending
};

struct SearchCell {
  double offset = 0, violation = 0, seconds = 0;
  std::int64_t steps = 0, support = 0;
  BlockEnding ending = BlockEnding::running;
};

struct UnitResult {
  std::vector<double> values;     // (C, machines, held out), with the offset
  std::vector<SearchCell> cells;  // (C, machines)
};

template <class T>
class Search {
 public:
  using Clock = typename BlockSmo<T>::Clock;
  using Source = std::function<std::shared_ptr<const Gram<T>>(std::int64_t kernel, int threads)>;

  // `gammas`: where they are given, `source` makes inner products, whatever the kernel, and the kernels are Gaussian.
  Search(Source source, std::vector<double> gammas, std::int64_t n, std::vector<DualVariables> machines,
         std::vector<Fold> folds, DualSettings settings, std::int64_t max_steps);
  ~Search();

  // Units of one kernel stand together. All are added before the first run.
  void add(SearchUnit unit);
  std::int64_t size() const { return length(units_); }
  // Goes on for `seconds`; returns whether all units have ended.
  bool run(double seconds);
  // Machines solved, at one C each, in all units.
  std::int64_t solved() const { return solved_.load(); }
  bool has_ended(std::int64_t unit) const { return has_ended_[unit].load(); }
  // What an ended unit has found; it is not kept.
  UnitResult take(std::int64_t unit);

 private:
  struct Matrix;  // all values of one kernel
  struct Worker;
  // Some machines in units that differ in their fold only.
  struct Job {
    std::size_t first_unit, last_unit, first_machine, last_machine;
    std::shared_ptr<std::atomic<std::size_t>> left;  // jobs of these units
  };

  std::shared_ptr<Matrix> matrix_of(std::int64_t kernel);
  LargeMemory<T> memory();
  std::shared_ptr<const Gram<T>> gaussian(const Matrix& matrix);
  bool build(Matrix& matrix, Clock::time_point until);
  void cut_into_jobs();
  void open_results(const Job& job);
  bool advance(Worker& worker, Clock::time_point until);

  Source source_;
  std::vector<double> gammas_;
  std::int64_t n_;
  std::vector<DualVariables> machines_;
  std::vector<Fold> folds_;
  DualSettings settings_;
  std::int64_t max_steps_;
  std::vector<SearchUnit> units_;
  std::vector<Job> jobs_;
  std::mutex results_lock_;
  std::vector<UnitResult> results_;
  std::unique_ptr<std::atomic<bool>[]> has_ended_;
  std::atomic<std::size_t> next_job_{0};
  std::atomic<std::int64_t> solved_{0};
  std::mutex matrices_lock_;
  std::vector<LargeMemory<T>> spare_;            // of kernels that are done with: fresh memory is expensive
  std::vector<std::weak_ptr<Matrix>> matrices_;  // by kernel; those at work keep theirs alive
  std::shared_ptr<Matrix> products_;             // what Gaussian kernels are made of
  std::vector<std::unique_ptr<Worker>> workers_;
  int inner_threads_ = 1;
};

}  // namespace margrove
