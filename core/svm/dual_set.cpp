#include "svm/dual_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "index.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Multiplications: a more expensive kernel value is better kept than computed again (row_store.hpp). Measured on a
// prototype: first use of memory takes 1.7 ns a float, 100 multiplications 2 ns.
constexpr double kDear = 100;

}  // namespace

struct DualSet::Machine {
  Dual given;
  std::vector<std::vector<double>> uppers;  // of the steps after the first; given.upper is of the present one
  Dual merged;                              // over distinct rows; point: positions in `rows`
  std::vector<std::int64_t> rows;           // of the points, ascending
  std::vector<std::int64_t> stand;          // (m) the merged variable that each given one is part of
  std::vector<double> part;                 // (m) its part of that variable's α

  std::unique_ptr<DualSolver<float>> single;
  std::unique_ptr<DualSolver<double>> twice;
  std::vector<MachineState> ended;  // steps
  std::int64_t float_steps = 0;     // of the present step, before it went on in double
  bool is_in_double = false, has_ended = false;
  double violation = std::numeric_limits<double>::infinity();

  void merge(const std::vector<std::int64_t>& first_equal) {
    const std::size_t m = given.y.size();
    const auto original = [&](std::size_t t) {
      const std::int64_t i = given.point[t];
      return first_equal.empty() ? i : first_equal[i];
    };
    rows.resize(m);
    for (std::size_t t = 0; t < m; ++t) rows[t] = original(t);
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    std::vector<std::size_t> order(m);
    std::iota(order.begin(), order.end(), 0);
    const auto is_same = [&](std::size_t a, std::size_t b) {
      return original(a) == original(b) && given.y[a] == given.y[b] && given.p[a] == given.p[b];
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (original(a) != original(b)) return original(a) < original(b);
      if (given.y[a] != given.y[b]) return given.y[a] > given.y[b];
      return given.p[a] != given.p[b] ? given.p[a] < given.p[b] : a < b;
    });
    stand.resize(m);
    part.assign(m, 1.0);
    merged.by_sign = given.by_sign;
    merged.hulls = given.hulls;
    for (std::size_t from = 0; from < m;) {
      std::size_t to = from;
      double upper = 0, alpha = 0;
      do {  // at least one: NaN does not equal itself
        upper += given.upper[order[to]], alpha += given.alpha[order[to]];
      } while (++to < m && is_same(order[from], order[to]));
      const std::size_t t = order[from];
      for (std::size_t k = from; k < to; ++k) {
        stand[order[k]] = length(merged.y);
        part[order[k]] = to - from == 1      ? 1.0
                         : std::isinf(upper) ? (std::isinf(given.upper[order[k]]) ? 1.0 : 0.0)
                                             : given.upper[order[k]] / upper;
      }
      if (std::isinf(upper) && to - from > 1) {
        double unbounded = 0;
        for (std::size_t k = from; k < to; ++k) unbounded += part[order[k]];
        for (std::size_t k = from; k < to; ++k) part[order[k]] /= unbounded;
      }
      merged.y.push_back(given.y[t]);
      merged.p.push_back(given.p[t]);
      merged.upper.push_back(upper);
      merged.alpha.push_back(std::min(alpha, upper));
      merged.point.push_back(std::lower_bound(rows.begin(), rows.end(), original(t)) - rows.begin());
      from = to;
    }
  }

  // α of the given variables, from that of the merged ones.
  std::vector<double> shared_out(const std::vector<double>& alpha) const {
    std::vector<double> shares(stand.size());
    for (std::size_t t = 0; t < stand.size(); ++t) {
      const std::size_t at = stand[t];
      // A merged variable on its bound puts every one of its parts on its own.
      shares[t] = alpha[at] == merged.upper[at] ? given.upper[t] : std::min(part[t] * alpha[at], given.upper[t]);
    }
    return shares;
  }

  template <class T>
  MachineState state_of(const DualSolver<T>& solver) const {
    MachineState state;
    state.alpha = shared_out(solver.alpha());
    state.v.resize(stand.size());
    for (std::size_t t = 0; t < stand.size(); ++t) state.v[t] = solver.v()[stand[t]];
    state.is_v_known = solver.is_v_known();
    state.violation = solver.violation();
    state.objective = solver.objective();
    state.steps = solver.steps() + (std::is_same_v<T, double> ? float_steps : 0);
    state.rounds = solver.rounds();
    state.rows_computed = solver.rows_computed();
    state.is_double = std::is_same_v<T, double>;
    return state;
  }

  // The present step has ended; the next one begins, if there is one.
  template <class T>
  void conclude(DualSolver<T>& solver, Ending ending) {
    ended.push_back(state_of(solver));
    ended.back().ending = ending;
    float_steps = 0;
    has_ended = ended.size() > uppers.size();
    if (has_ended) return;
    given.upper = std::move(uppers[ended.size() - 1]);
    std::fill(merged.upper.begin(), merged.upper.end(), 0.0);
    for (std::size_t t = 0; t < stand.size(); ++t) merged.upper[stand[t]] += given.upper[t];
    solver.restart(merged.upper);
  }
};

struct DualSet::Family {
  std::vector<Machine*> machines;
  std::size_t now = 0;
  std::shared_ptr<const Gram<float>> single;
  std::shared_ptr<const Gram<double>> twice;
  std::shared_ptr<RowStore<float>> single_rows;
  std::shared_ptr<RowStore<double>> twice_rows;
};

// Several machines on the same rows share what is kept of the kernel.
template <class T>
std::unique_ptr<DualSolver<T>> DualSet::solver_of(const Family& family, const std::shared_ptr<const Gram<T>>& gram,
                                                  std::shared_ptr<RowStore<T>>& rows,
                                                  const std::shared_ptr<Arena>& arena, const Dual& dual,
                                                  const DualSettings& settings) {
  const bool is_shared = family.machines.size() > 1;  // what one machine gives up the next one would make again
  const auto make = [arena, is_shared](const Gram<T>& wanted) {
    return std::make_shared<RowStore<T>>(arena, wanted.size(), is_shared || wanted.cost() > kDear);
  };
  if (!rows && is_shared) rows = make(*gram);
  return std::make_unique<DualSolver<T>>(gram, rows, make, dual, settings);
}

struct DualSet::Worker {
  std::shared_ptr<Arena> arena;
  Family* family = nullptr;
  int threads = 1;
};

DualSet::DualSet(KernelSource source, DualSettings settings, std::int64_t cache_bytes)
    : source_(std::move(source)), settings_(settings), cache_bytes_(cache_bytes) {}
DualSet::~DualSet() = default;

void DualSet::add(Dual dual, std::vector<std::vector<double>> uppers) {
  auto machine = std::make_unique<Machine>();
  machine->given = std::move(dual);
  machine->uppers = std::move(uppers);
  machines_.push_back(std::move(machine));
}

void DualSet::gather_families() {
  parallel_for(size(), settings_.threads, [&](std::int64_t k) { machines_[k]->merge(source_.first_equal); });
  std::map<std::vector<std::int64_t>, Family*> known;
  for (const std::unique_ptr<Machine>& machine : machines_) {
    Family*& family = known[machine->rows];
    if (!family) {
      families_.push_back(std::make_unique<Family>());
      family = families_.back().get();
    }
    family->machines.push_back(machine.get());
  }
  // The largest first: they would otherwise be waited for in the end.
  std::stable_sort(families_.begin(), families_.end(), [](const auto& a, const auto& b) {
    return a->machines[0]->rows.size() > b->machines[0]->rows.size();
  });
  const std::int64_t side_by_side = std::clamp<std::int64_t>(length(families_), 1, settings_.threads);
  for (std::int64_t w = 0; w < side_by_side; ++w) {
    auto worker = std::make_unique<Worker>();
    worker->threads = std::max<int>(1, settings_.threads / static_cast<int>(side_by_side));
    std::int64_t most = 0, least = 0;
    for (const auto& family : families_) {
      const auto n = length(family->machines[0]->rows);
      most = std::max(most, RowStore<double>::bytes_for(n, n));
      least = std::max(least, RowStore<double>::bytes_for(n, std::min(n, RowStore<double>::kLeastRows)));
    }
    worker->arena = std::make_shared<Arena>(std::max(least, std::min(most, cache_bytes_ / side_by_side)));
    workers_.push_back(std::move(worker));
  }
}

// The family's present machine, until it ends; false when the time is over.
bool DualSet::advance(Worker& worker, Family& family, std::int64_t max_steps,
                      DualSolver<float>::Clock::time_point until) {
  Machine& machine = *family.machines[family.now];
  DualSettings settings = settings_;
  settings.threads = worker.threads;
  while (!machine.has_ended) {
    if (source_.single && !machine.is_in_double) {
      if (!machine.single) {
        family.twice_rows.reset();
        family.twice.reset();
        if (!family.single) family.single = source_.single(machine.rows, worker.threads);
        machine.single = solver_of(family, family.single, family.single_rows, worker.arena, machine.merged, settings);
      }
      const Ending ending = machine.single->run(max_steps, until);
      machine.violation = machine.single->violation();
      if (ending == Ending::imprecise && source_.twice) {
        machine.float_steps = machine.single->steps();
        // What overflows in float has left no α to go on from.
        const std::vector<double>& alpha = machine.single->alpha();
        if (std::all_of(alpha.begin(), alpha.end(), [](double a) { return std::isfinite(a); }))
          machine.merged.alpha = alpha;
        machine.single.reset();
        family.single_rows.reset();
        family.single.reset();
        machine.is_in_double = true;
        continue;
      }
      if (ending == Ending::running && machine.single->steps() < max_steps) return false;
      machine.conclude(*machine.single, ending);
      continue;
    }
    if (!machine.twice) {
      if (!family.twice) family.twice = source_.twice(machine.rows, worker.threads);
      machine.twice = solver_of(family, family.twice, family.twice_rows, worker.arena, machine.merged, settings);
    }
    const std::int64_t steps_left = std::max<std::int64_t>(0, max_steps - machine.float_steps);
    const Ending ending = machine.twice->run(steps_left, until);
    machine.violation = machine.twice->violation();
    if (ending == Ending::running && machine.twice->steps() < steps_left) return false;
    machine.conclude(*machine.twice, ending);
  }
  machine.single.reset();
  machine.twice.reset();
  return true;
}

bool DualSet::run(std::int64_t max_steps, double seconds) {
  const auto until = in_seconds(seconds);
  if (workers_.empty()) gather_families();
  return take_turns(
      workers_, next_family_, families_.size(), until, [](const Worker& worker) { return !worker.family; },
      [&](Worker& worker, std::size_t job) { worker.family = families_[job].get(); },
      [&](Worker& worker) {
        Family& family = *worker.family;
        if (!advance(worker, family, max_steps, until)) return false;
        if (++family.now == family.machines.size()) {
          family.single.reset();
          family.single_rows.reset();
          family.twice.reset();
          family.twice_rows.reset();
          worker.family = nullptr;
        }
        return true;
      });
}

std::int64_t DualSet::ended() const {
  return std::accumulate(machines_.begin(), machines_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& machine) { return sum + length(machine->ended); });
}

std::int64_t DualSet::ended(std::int64_t machine) const { return length(machines_[machine]->ended); }

double DualSet::violation() const {
  double worst = 0;
  for (const auto& worker : workers_)
    if (worker->family) worst = std::max(worst, worker->family->machines[worker->family->now]->violation);
  return worst;
}

MachineState DualSet::state(std::int64_t k, std::int64_t step) {
  Machine& machine = *machines_[k];
  if (static_cast<std::size_t>(step) < machine.ended.size()) return machine.ended[step];
  if (machine.single) {
    machine.single->settle();
    return machine.state_of(*machine.single);
  }
  if (machine.twice) {
    machine.twice->settle();
    return machine.state_of(*machine.twice);
  }
  // Not begun: v is known where nothing has an α yet.
  const Dual& given = machine.given;
  MachineState state;
  state.alpha = given.alpha;
  state.is_v_known = true;
  Extremes found;
  for (std::size_t t = 0; t < given.y.size(); ++t) {
    state.v.push_back(-given.y[t] * given.p[t]);
    state.is_v_known = state.is_v_known && given.alpha[t] == 0;
    found.include(given.group_of(t), given.is_up(t), given.is_low(t), state.v[t]);
  }
  state.violation = state.is_v_known ? found.gap() : kInfinity;
  return state;
}

std::vector<double> DualSet::alpha(std::int64_t k) const {
  const Machine& machine = *machines_[k];
  if (machine.has_ended) return machine.ended.back().alpha;
  if (machine.single) return machine.shared_out(machine.single->present_alpha());
  if (machine.twice) return machine.shared_out(machine.twice->present_alpha());
  return machine.given.alpha;
}

}  // namespace margrove
