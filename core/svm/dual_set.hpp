// Machines that live on the same points: the pairs of one-vs-one, the columns of a code, or one machine alone.
//
// A machine may be asked for along growing bounds (a path over C): each solution begins the next.
//
// Equal rows (with equal y and p) are one variable whose bound is the sum of theirs; their α is shared out in
// proportion to the bounds. Machines on the same rows share one kernel and the rows kept of it; machines on different
// rows are solved side by side, a thread each. A machine that float cannot finish goes on in double, if that is
// allowed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "index.hpp"
#include "svm/dual_solver.hpp"

namespace margrove {

// Where kernel values come from: rows `chosen` of the points, on so many threads. Either may be missing.
struct KernelSource {
  std::function<std::shared_ptr<const Gram<float>>(std::vector<std::int64_t>, int)> single;
  std::function<std::shared_ptr<const Gram<double>>(std::vector<std::int64_t>, int)> twice;
  std::vector<std::int64_t> first_equal;  // first_equal_rows of the points, or empty
};

struct MachineState {
  std::vector<double> alpha, v;
  bool is_v_known = false;
  double violation = 0, objective = 0;
  std::int64_t steps = 0, rounds = 0, rows_computed = 0;
  Ending ending = Ending::running;
  bool is_double = false;
};

class DualSet {
 public:
  DualSet(KernelSource source, DualSettings settings, std::int64_t cache_bytes);
  ~DualSet();

  // `dual.point` are rows of the points. All machines are added before the first run. `uppers` are the bounds of the
  // steps after the first, whose bounds are the dual's own.
  void add(Dual dual, std::vector<std::vector<double>> uppers = {});
  std::int64_t size() const { return length(machines_); }

  // Goes on for `seconds`; returns whether every machine has ended or made its `max_steps`.
  bool run(std::int64_t max_steps, double seconds);
  // How many steps of machines have ended, and the worst violation of those at work.
  std::int64_t ended() const;
  std::int64_t ended(std::int64_t machine) const;
  double violation() const;
  // Where a machine stands on one step of its path; one that was stopped early is settled first, and a step that was
  // not reached stands where the machine does, with the bounds of the last one that was.
  MachineState state(std::int64_t machine, std::int64_t step = 0);
  // A machine's feasible α of this moment: between two runs, and without a trace on them.
  std::vector<double> alpha(std::int64_t machine) const;

 private:
  struct Machine;
  struct Family;  // machines on the same rows
  struct Worker;

  template <class T>
  static std::unique_ptr<DualSolver<T>> solver_of(const Family& family, const std::shared_ptr<const Gram<T>>& gram,
                                                  std::shared_ptr<RowStore<T>>& rows,
                                                  const std::shared_ptr<Arena>& arena, const Dual& dual,
                                                  const DualSettings& settings);
  void gather_families();
  bool advance(Worker& worker, Family& family, std::int64_t max_steps, DualSolver<float>::Clock::time_point until);

  KernelSource source_;
  DualSettings settings_;
  std::int64_t cache_bytes_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Family>> families_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<std::size_t> next_family_{0};
};

}  // namespace margrove
