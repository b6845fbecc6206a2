#include "linear/svm_set.hpp"

#include <algorithm>
#include <utility>

#include "parallel.hpp"

namespace margrove {

namespace {
// Relative gap up to which another method takes over the weights. Chosen, not measured: beyond it most dual variables
// are at the wrong bounds.
constexpr double kOfUse = 0.1;
// Times a pass of one machine: what a pass in lanes costs, however many. No measurement recorded.
constexpr double kLaneCost = 1.5;
// Machines of a group. Fewer gain nothing: their weights lie farther apart, and a row is visited that any of them
// needs.
constexpr std::size_t kFewestLanes = 4;
// Of the patience with a group: a path step with fewer passes starts no forecast. Chosen, not measured.
constexpr double kNoticeable = 0.2;
// Path steps that are forecast: not more, since passes stop growing where C is large enough to separate all rows.
constexpr std::size_t kForesight = 2;
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

PathStep LinearSet::step_of(const Machine& machine) const {
  PathStep step;
  const auto w = machine.solver->w();
  step.w.assign(w.begin(), w.end());
  step.b = machine.solver->b();
  if (plan_.keeps_beta) step.beta = machine.solver->beta();
  step.standing = machine.solver->standing();
  step.standing.steps += machine.steps_before;
  step.ending = machine.solver->ending();
  step.method = machine.method;
  step.is_implied = machine.solver->is_implied();
  return step;
}

LinearMethod LinearSet::successor(const Machine& machine, std::int64_t n_free) const {
  if (plan_.otherwise != LinearMethod::rows || n_free <= kMostFreeRows) return plan_.otherwise;
  return machine.task.is_squared ? LinearMethod::gradients : LinearMethod::descent;
}

void LinearSet::hand_over(Machine& machine, const Attempt& attempt, LinearMethod method) {
  machine.steps_before += attempt.standing.steps;
  // A start with a large gap is of no use: its dual variables are at the wrong bounds.
  const bool is_of_use = attempt.standing.gap() <= kOfUse;
  const std::vector<double> w(attempt.w.begin(), is_of_use ? attempt.w.end() : attempt.w.begin());
  machine.method = method;
  machine.stays = method == LinearMethod::descent;
  machine.solver = solver(machine, w, is_of_use ? attempt.b : 0.0,
                          is_of_use ? std::span<const double>(attempt.beta) : std::span<const double>{});
}

void LinearSet::form_groups() {
  is_grouped_ = true;
  if (plan_.method != LinearMethod::descent || plan_.violation > 0) return;
  for (const auto& machine : machines_) {
    if (!can_share_rows(rows_, machine->task)) continue;
    const auto fits = [&](const std::unique_ptr<Group>& group) {
      return group->machines.size() < kMostLanes && std::all_of(
                                                        group->machines.begin(), group->machines.end(),
                                                        [&](const Machine* other) {
                                                          return other->factors == machine->factors &&
                                                                 can_go_together(other->task, machine->task);
                                                        });
    };
    auto group = std::find_if(groups_.begin(), groups_.end(), fits);
    if (group == groups_.end()) group = groups_.insert(group, std::make_unique<Group>());
    (*group)->machines.push_back(machine.get());
  }
  std::erase_if(groups_, [](const auto& group) { return group->machines.size() < kFewestLanes; });
}

// Passes that a group is given: as long as what takes over would need for all its machines.
std::int64_t LinearSet::patience_of(const Group& group) const {
  if (plan_.otherwise == LinearMethod::descent) return plan_.most_steps;
  const double share = std::max(1.0, static_cast<double>(group.machines.size()) / kLaneCost);
  return std::min(plan_.most_steps, static_cast<std::int64_t>(share * static_cast<double>(plan_.patience)));
}

PathStep LinearSet::step_of(const Group& group, std::size_t lane) const {
  PathStep step;
  step.w = group.lanes->w(lane);
  step.b = group.lanes->b(lane);
  if (plan_.keeps_beta) step.beta = group.lanes->beta(lane);
  step.standing = group.lanes->standing(lane);
  step.ending = group.lanes->ending(lane);
  step.method = LinearMethod::descent;
  return step;
}

// Forecasts whether another method is quicker on the next steps: their passes keep growing at the rate seen so far.
bool LinearSet::is_foreseen_as_slow(const Group& group) const {
  const Machine& first = *group.machines.front();
  const std::size_t reached = first.path.size();
  if (reached < 2) return false;
  const auto passes = [&](std::size_t step) {
    std::int64_t most = 1;
    for (const Machine* machine : group.machines) most = std::max(most, machine->path[step].standing.steps);
    return static_cast<double>(most);
  };
  const double patience = patience_of(group);
  double expected = 0, of_step = passes(reached - 1);
  if (of_step < kNoticeable * patience) return false;
  const double growth = of_step / passes(reached - 2);
  const std::size_t ahead = std::min(kForesight, first.factors.size() - reached);
  for (std::size_t step = 0; step < ahead; ++step) expected += of_step *= growth;
  return expected > patience;
}

// Returns true when the machines have finished their paths, or go on by themselves.
bool LinearSet::advance(Group& group, std::chrono::steady_clock::time_point until) {
  const std::vector<double>& factors = group.machines.front()->factors;
  if (!group.lanes) {
    std::vector<LinearTask> tasks;
    std::vector<std::span<const double>> beta;
    for (Machine* machine : group.machines) {
      machine->task.factor = factors.front();
      tasks.push_back(machine->task);
      beta.push_back(machine->beta);
    }
    group.lanes = lane_descent(rows_, tasks, {plan_.tol, plan_.seed}, beta);
  }
  const bool may_change = patience_of(group) < plan_.most_steps;
  while (true) {
    group.lanes->advance(until, patience_of(group));
    if (!group.lanes->is_over()) return false;
    const std::size_t step = group.machines.front()->path.size();
    bool is_too_slow = false;
    for (std::size_t lane = 0; lane < group.machines.size(); ++lane) {
      if (may_change && group.lanes->ending(lane) != LinearEnding::converged) {
        is_too_slow = true;
        continue;
      }
      group.machines[lane]->path.push_back(step_of(group, lane));
      ++ended_;
    }
    const bool is_last = step + 1 == factors.size();
    if (is_too_slow || is_last || (may_change && is_foreseen_as_slow(group))) {
      for (std::size_t lane = 0; lane < group.machines.size(); ++lane) leave(group, lane);
      group.lanes.reset();
      return true;
    }
    for (Machine* machine : group.machines) machine->task.factor = factors[step + 1];
    group.lanes->rescale(factors[step + 1] / factors[step]);
  }
}

// Lets a machine go on by itself, on this step of its path or on the next, if any is left.
void LinearSet::leave(const Group& group, std::size_t lane) {
  Machine& machine = *group.machines[lane];
  if (machine.path.size() == machine.factors.size()) return;
  const double factor = machine.factors[machine.path.size()] / machine.task.factor;
  Attempt attempt{group.lanes->standing(lane), group.lanes->w(lane), group.lanes->b(lane), group.lanes->beta(lane)};
  if (factor != 1) {  // the lane has ended its step
    attempt.standing.steps = 0;
    if (!machine.task.is_squared) move_with_bounds(machine.task, factor, attempt.beta);
    machine.task.factor *= factor;
  }
  hand_over(machine, attempt, successor(machine, group.lanes->n_free(lane)));
}

// Returns true when the machine has finished its path.
bool LinearSet::advance(Machine& machine, std::chrono::steady_clock::time_point until, int threads) {
  if (!machine.solver) {
    machine.task.factor = machine.factors[machine.path.size()];
    machine.solver = solver(machine, machine.w, machine.b, machine.beta);
  }
  while (true) {
    const bool may_change =
        machine.method == LinearMethod::descent && plan_.otherwise != LinearMethod::descent && !machine.stays;
    machine.solver->advance(until, threads, may_change ? std::min(plan_.patience, plan_.most_steps) : plan_.most_steps);
    const LinearEnding ending = machine.solver->ending();
    if (ending == LinearEnding::going) return false;
    // Rounding may stop steps by rows where descent, which moves one dual variable at a time, still comes closer.
    const bool goes_back = machine.method == LinearMethod::rows && plan_.method == LinearMethod::descent &&
                           ending == LinearEnding::stalled;
    if (goes_back || (may_change && ending != LinearEnding::converged && plan_.patience < plan_.most_steps)) {
      const std::int64_t n_free = machine.solver->n_free();
      const std::unique_ptr<LinearSolver> tried = std::move(machine.solver);
      hand_over(machine, {tried->standing(), tried->w(), tried->b(), tried->beta()},
                goes_back ? LinearMethod::descent : successor(machine, n_free));
      continue;
    }
    machine.path.push_back(step_of(machine));
    machine.steps_before -= machine.path.back().standing.steps;
    ++ended_;
    if (machine.path.size() == machine.factors.size()) {
      machine.solver.reset();
      return true;
    }
    const double factor = machine.factors[machine.path.size()];
    machine.solver->rescale(factor / machine.task.factor);
    machine.task.factor = factor;
  }
}

// True when every job is done.
template <class Job, class Advance>
bool LinearSet::go_through(const std::vector<std::unique_ptr<Job>>& jobs, Turns<Job>& turns,
                           std::chrono::steady_clock::time_point until, Advance advance_job) {
  using Worker = typename Turns<Job>::Worker;
  if (turns.workers.empty()) {
    const auto wanted = std::min<std::size_t>(jobs.size(), static_cast<std::size_t>(std::max(1, threads_)));
    for (std::size_t k = 0; k < wanted; ++k) turns.workers.push_back(std::make_unique<Worker>());
  }
  return take_turns(
      turns.workers, turns.next, jobs.size(), until, [](const Worker& worker) { return worker.job == nullptr; },
      [&](Worker& worker, std::size_t number) { worker.job = jobs[number].get(); },
      [&](Worker& worker) {
        if (!advance_job(*worker.job)) return false;
        worker.job = nullptr;
        return true;
      });
}

bool LinearSet::run(double seconds) {
  const auto until = in_seconds(seconds);
  if (!is_grouped_) form_groups();
  if (!groups_.empty()) {
    if (!go_through(groups_, group_turns_, until, [&](Group& group) { return advance(group, until); })) return false;
    groups_.clear();
  }
  const auto advance_alone = [&](Machine& machine, int threads) {
    return machine.path.size() == machine.factors.size() || advance(machine, until, threads);
  };
  if (machines_.size() == 1) return advance_alone(*machines_.front(), threads_);
  return go_through(machines_, turns_, until, [&](Machine& machine) { return advance_alone(machine, 1); });
}

std::vector<PathStep> LinearSet::path(std::size_t machine) const {
  const Machine& asked = *machines_.at(machine);
  std::vector<PathStep> found = asked.path;
  if (asked.solver) found.push_back(step_of(asked));
  for (const auto& group : groups_)
    for (std::size_t lane = 0; group->lanes && lane < group->machines.size(); ++lane)
      if (group->machines[lane] == &asked) found.push_back(step_of(*group, lane));
  return found;
}

double LinearSet::gap() const {
  double largest = 0;
  for (const auto& machine : machines_)
    if (machine->solver) largest = std::max(largest, machine->solver->standing().gap());
  for (const auto& group : groups_)
    for (std::size_t lane = 0; group->lanes && lane < group->machines.size(); ++lane)
      largest = std::max(largest, group->lanes->standing(lane).gap());
  return largest;
}

}  // namespace margrove
