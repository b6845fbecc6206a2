// Linear machines on the same rows, each along a path of costs: every step begins where the last one ended. One machine
// has all threads to itself; several take one each. Those that descend and have the same targets are solved together
// (lane_descent.hpp) as long as descent is quick enough.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blas.hpp"
#include "linear/lane_descent.hpp"
#include "linear/svm_descent.hpp"
#include "linear/svm_newton.hpp"
#include "linear/svm_task.hpp"
#include "rows.hpp"

namespace margrove {

enum class LinearMethod { newton = 0, gradients = 1, descent = 2, rows = 3 };

struct LinearPlan {
  LinearMethod method = LinearMethod::newton;
  // What takes over where descent has not ended after `patience` passes; descent itself goes on if it is the same.
  // Where too many rows are free for `rows`, conjugate gradients do, or, as a kink makes them crawl, descent goes on.
  LinearMethod otherwise = LinearMethod::newton;
  std::int64_t patience = 0;
  double tol = 1e-4;
  std::int64_t most_steps = 1000;  // of each step of the path
  std::uint64_t seed = 0;
  bool keeps_beta = true;  // of every step of the path
  double violation = 0;    // see NewtonSettings
};

// The solution of one step of the path.
struct PathStep {
  std::vector<double> w, beta;
  double b = 0;
  LinearStanding standing;
  LinearEnding ending = LinearEnding::going;
  LinearMethod method = LinearMethod::newton;
  bool is_implied = false;  // see LinearSolver
};

class LinearSet {
 public:
  LinearSet(const AnyRows& rows, const LinearPlan& plan, const SymmetricBlas& blas, int threads)
      : rows_(rows), plan_(plan), blas_(blas), threads_(threads) {}

  // The spans must outlive the set. `factors` multiply the costs, one for each step.
  void add(const LinearTask& task, std::span<const double> w, double b, std::span<const double> beta,
           std::vector<double> factors);

  // Returns true when every machine has finished its path.
  bool run(double seconds);

  std::size_t size() const { return machines_.size(); }
  // The steps that have ended, followed by the one under way, if any.
  std::vector<PathStep> path(std::size_t machine) const;
  std::int64_t ended() const { return ended_; }
  double gap() const;  // the largest of those under way; 0 if there is none

 private:
  struct Machine {
    LinearTask task;
    std::vector<double> factors;
    std::span<const double> w, beta;
    double b = 0;
    LinearMethod method = LinearMethod::newton;
    std::unique_ptr<LinearSolver> solver;
    std::int64_t steps_before = 0;  // of a solver that was given up on this step, or of earlier steps (below 0)
    bool stays = false;             // with descent, though it is slow
    std::vector<PathStep> path;
  };

  // Machines whose paths are solved in lanes, while none of them is too slow there.
  struct Group {
    std::vector<Machine*> machines;
    std::unique_ptr<LaneDescent> lanes;
  };

  // What a method has come to that another is to take over from.
  struct Attempt {
    LinearStanding standing;
    std::span<const double> w;
    double b;
    std::vector<double> beta;
  };

  // Who is at work on which job, and which is next.
  template <class Job>
  struct Turns {
    struct Worker {
      Job* job = nullptr;
    };
    std::vector<std::unique_ptr<Worker>> workers;
    std::atomic<std::size_t> next{0};
  };

  template <class Job, class Advance>
  bool go_through(const std::vector<std::unique_ptr<Job>>& jobs, Turns<Job>& turns,
                  std::chrono::steady_clock::time_point until, Advance advance_job);
  void form_groups();
  bool advance(Group& group, std::chrono::steady_clock::time_point until);
  std::int64_t patience_of(const Group& group) const;
  bool is_foreseen_as_slow(const Group& group) const;
  void leave(const Group& group, std::size_t lane);
  PathStep step_of(const Group& group, std::size_t lane) const;
  void hand_over(Machine& machine, const Attempt& attempt, LinearMethod method);

  std::unique_ptr<LinearSolver> solver(const Machine& machine, std::span<const double> w, double b,
                                       std::span<const double> beta) const;
  LinearMethod successor(const Machine& machine, std::int64_t n_free) const;
  bool advance(Machine& machine, std::chrono::steady_clock::time_point until, int threads);
  PathStep step_of(const Machine& machine) const;

  AnyRows rows_;
  LinearPlan plan_;
  SymmetricBlas blas_;
  int threads_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::atomic<std::int64_t> ended_{0};
  Turns<Machine> turns_;

  bool is_grouped_ = false;
  std::vector<std::unique_ptr<Group>> groups_;
  Turns<Group> group_turns_;
};

}  // namespace margrove
