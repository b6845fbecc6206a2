// Exact leave-one-out of a machine: for each row that carries it, the machine without that row, and what that says of
// it.
//
// A row with α = 0 may be left out without a change. For any other the solution is nearly the same: its α is pushed
// out, onto the rows that take it most cheaply, its bound becomes 0, and SMO goes on from there. v of the row left out
// is followed like any other, so that f of it is there in the end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "index.hpp"
#include "svm/tile_smo.hpp"

namespace margrove {

template <class T>
class LeaveOneOut {
 public:
  using Clock = typename BlockSmo<T>::Clock;

  // `dual.alpha` solves the dual to `tol`; `gram` has its rows ready.
  LeaveOneOut(std::shared_ptr<const Gram<T>> gram, Dual dual, double tol, std::int64_t max_steps, int threads);
  ~LeaveOneOut();

  // Goes on for `seconds`; returns whether it is done.
  bool run(double seconds);
  std::int64_t size() const { return length(support_); }
  std::int64_t done() const { return done_.load(); }
  const std::vector<std::int64_t>& support() const { return support_; }  // variables
  const std::vector<double>& values() const { return values_; }          // f of each without it; NaN until it is done
  const std::vector<std::uint8_t>& is_converged() const { return is_converged_; }

 private:
  struct Worker;
  bool advance(Worker& worker, Clock::time_point until);

  std::shared_ptr<const Gram<T>> gram_;
  DualState whole_;
  double tol_;
  std::int64_t max_steps_;
  Tile<T> tile_;
  std::vector<std::int64_t> support_;
  std::vector<double> values_;
  std::vector<std::uint8_t> is_converged_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::int64_t> done_{0};
};

}  // namespace margrove
