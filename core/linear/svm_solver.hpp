// A solver of a linear SVM (svm_task.hpp) that can be interrupted and resumed, whatever it does inside.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "linear/svm_task.hpp"

namespace margrove {

enum class LinearEnding { going = 0, converged = 1, most_steps = 2, stalled = 3, nonfinite = 4 };

class LinearSolver {
 public:
  virtual ~LinearSolver() = default;
  // Goes on until it has ended or the time is over; at most until it has made so many steps.
  virtual void advance(std::chrono::steady_clock::time_point until, int threads, std::int64_t most_steps) = 0;
  virtual LinearEnding ending() const = 0;
  virtual LinearStanding standing() const = 0;
  virtual std::span<const double> w() const = 0;
  virtual double b() const = 0;
  // Whether the dual variables that w implies prove as much as `beta`.
  virtual bool is_implied() const = 0;
  // The dual variables whose value is `standing().dual`: within their bounds, and of sum 0 where the intercept is free.
  virtual std::vector<double> beta() const = 0;
  // Rows whose best dual variable so far lies strictly within its bounds.
  virtual std::int64_t n_free() const = 0;
  // Begins anew from where it is, with all costs multiplied.
  virtual void rescale(double factor) = 0;
};

}  // namespace margrove
