// Coordinate descent of up to eight machines at once: those with the same targets on the same sparse rows, such as the
// folds of a class: a row costs each machine the same, or nothing. Their weights lie side by side, so that a row is
// read once and each number of it multiplies all of them with one instruction. A row that every machine has left out is
// not visited.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "linear/svm_descent.hpp"
#include "linear/svm_solver.hpp"
#include "linear/svm_task.hpp"
#include "rows.hpp"

namespace margrove {

constexpr std::size_t kMostLanes = 8;  // doubles of a vector of AVX-512, and of a cache line

class LaneDescent {
 public:
  virtual ~LaneDescent() = default;
  // Goes on until every lane has ended, so many passes are made, or the time is over.
  virtual void advance(std::chrono::steady_clock::time_point until, std::int64_t most_passes) = 0;
  // Whether `advance` has nothing left to do but for the time.
  virtual bool is_over() const = 0;
  // Begins anew from where it is, with all costs multiplied.
  virtual void rescale(double factor) = 0;

  // Of one lane, as of a LinearSolver; the steps are those since the last `rescale`.
  virtual LinearEnding ending(std::size_t lane) const = 0;
  virtual LinearStanding standing(std::size_t lane) const = 0;
  virtual const std::vector<double>& w(std::size_t lane) const = 0;
  virtual double b(std::size_t lane) const = 0;
  virtual const std::vector<double>& beta(std::size_t lane) const = 0;
  virtual std::int64_t n_free(std::size_t lane) const = 0;
};

// Whether a machine of this kind may go in lanes on these rows.
bool can_share_rows(const AnyRows& rows, const LinearTask& task);
// Whether two machines that may can go side by side.
bool can_go_together(const LinearTask& one, const LinearTask& other);

// One lane for each task; `beta` has where each begins, or is empty.
std::unique_ptr<LaneDescent> lane_descent(const AnyRows& rows, const std::vector<LinearTask>& tasks,
                                          DescentSettings settings, const std::vector<std::span<const double>>& beta);

}  // namespace margrove
