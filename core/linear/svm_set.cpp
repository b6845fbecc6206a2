#include "linear/svm_set.hpp"

#include <algorithm>
#include <utility>

#include "parallel.hpp"

namespace margrove {

namespace {
constexpr double kOfUse = 0.1;  // of the gap of a method that another takes over from
}  // namespace

void LinearSet::add(const LinearTask& task, std::span<const double> w, double b, std::span<const double> beta,
                    std::vector<double> factors) {
  auto machine = std::make_unique<Machine>();
  machine->task = task;
  machine->factors = std::move(factors);
  machine->w = w;
  machine->b = b;
  machine->beta = beta;
  machine->method = plan_.method;
  machines_.push_back(std::move(machine));
}

std::unique_ptr<LinearSolver> LinearSet::solver(const Machine& machine, std::span<const double> w, double b,
                                                std::span<const double> beta) const {
  if (machine.method == LinearMethod::descent)
    return descent_solver(rows_, machine.task, {plan_.tol, plan_.seed}, beta);
  const NewtonHessian hessian = machine.method == LinearMethod::gradients ? NewtonHessian::none
                                : machine.method == LinearMethod::rows    ? NewtonHessian::rows
                                                                          : NewtonHessian::columns;
  return newton_solver(rows_, machine.task, {plan_.tol, hessian, true, plan_.violation}, blas_, w, b, beta);
}

LinearRung LinearSet::rung_of(const Machine& machine) const {
  LinearRung rung;
  const auto w = machine.solver->w();
  rung.w.assign(w.begin(), w.end());
  rung.b = machine.solver->b();
  if (plan_.keeps_pulls) rung.beta = machine.solver->beta();
  rung.standing = machine.solver->standing();
  rung.standing.steps += machine.steps_before;
  rung.ending = machine.solver->ending();
  rung.method = machine.method;
  rung.is_implied = machine.solver->is_implied();
  return rung;
}

LinearMethod LinearSet::successor(const Machine& machine) const {
  if (plan_.otherwise != LinearMethod::rows || machine.solver->n_free() <= kMostFreeRows) return plan_.otherwise;
  return machine.task.is_squared ? LinearMethod::gradients : LinearMethod::descent;
}

// True when the machine has climbed its last rung.
bool LinearSet::advance(Machine& machine, std::chrono::steady_clock::time_point until, int threads) {
  if (!machine.solver) {
    machine.task.factor = machine.factors.front();
    machine.solver = solver(machine, machine.w, machine.b, machine.beta);
  }
  while (true) {
    const bool may_change =
        machine.method == LinearMethod::descent && plan_.otherwise != LinearMethod::descent && !machine.stays;
    machine.solver->advance(until, threads, may_change ? std::min(plan_.patience, plan_.most_steps) : plan_.most_steps);
    const LinearEnding ending = machine.solver->ending();
    if (ending == LinearEnding::going) return false;
    // Rounding may stop steps by rows where descent, which moves one pull at a time, still comes closer.
    const bool goes_back = machine.method == LinearMethod::rows && plan_.method == LinearMethod::descent &&
                           ending == LinearEnding::stalled;
    if (goes_back || (may_change && ending != LinearEnding::converged && plan_.patience < plan_.most_steps)) {
      machine.steps_before += machine.solver->standing().steps;
      // What has come to little is no place to begin: its pulls stand on the wrong bounds.
      const bool is_of_use = machine.solver->standing().gap() <= kOfUse;
      const auto weights = machine.solver->w();
      const std::vector<double> w(weights.begin(), is_of_use ? weights.end() : weights.begin());
      const std::vector<double> beta = is_of_use ? machine.solver->beta() : std::vector<double>{};
      const double b = is_of_use ? machine.solver->b() : 0.0;
      machine.method = goes_back ? LinearMethod::descent : successor(machine);
      machine.stays = machine.method == LinearMethod::descent;
      machine.solver = solver(machine, w, b, beta);
      continue;
    }
    machine.rungs.push_back(rung_of(machine));
    machine.steps_before -= machine.rungs.back().standing.steps;
    ++ended_;
    if (machine.rungs.size() == machine.factors.size()) {
      machine.solver.reset();
      return true;
    }
    const double factor = machine.factors[machine.rungs.size()];
    machine.solver->rescale(factor / machine.task.factor);
    machine.task.factor = factor;
  }
}

bool LinearSet::run(double seconds) {
  const auto until = in_seconds(seconds);
  if (machines_.size() == 1) {
    Machine& machine = *machines_.front();
    return machine.rungs.size() == machine.factors.size() || advance(machine, until, threads_);
  }
  if (workers_.empty()) {
    const auto wanted = std::min<std::size_t>(machines_.size(), static_cast<std::size_t>(std::max(1, threads_)));
    for (std::size_t k = 0; k < wanted; ++k) workers_.push_back(std::make_unique<Worker>());
  }
  return take_turns(
      workers_, next_, machines_.size(), until, [](const Worker& worker) { return worker.machine == nullptr; },
      [&](Worker& worker, std::size_t job) { worker.machine = machines_[job].get(); },
      [&](Worker& worker) {
        if (!advance(*worker.machine, until, 1)) return false;
        worker.machine = nullptr;
        return true;
      });
}

std::vector<LinearRung> LinearSet::rungs(std::size_t machine) const {
  const Machine& asked = *machines_.at(machine);
  std::vector<LinearRung> found = asked.rungs;
  if (asked.solver) found.push_back(rung_of(asked));
  return found;
}

double LinearSet::gap() const {
  double largest = 0;
  for (const auto& machine : machines_)
    if (machine->solver) largest = std::max(largest, machine->solver->standing().gap());
  return largest;
}

}  // namespace margrove
