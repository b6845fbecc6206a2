// Support vector machines for Python: one resumable set of machines for every dual.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "kernel/duplicates.hpp"
#include "svm/dual_set.hpp"
#include "svm/leave_one_out.hpp"
#include "svm/path_solver.hpp"
#include "svm/path_start.hpp"
#include "svm/search.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

template <class T>
std::vector<T> copy_of(const Vector<T>& v) {
  return {v.data(), v.data() + v.size()};
}

void require_points(const Vector<std::int64_t>& point, std::int64_t n) {
  for (std::size_t t = 0; t < point.size(); ++t)
    require(point.data()[t] >= 0 && point.data()[t] < n, "a variable stands for no point");
}

Dual dual_of(const Vector<std::int8_t>& y, const Vector<double>& p, const Vector<double>& upper,
             const Vector<double>& alpha, const Vector<std::int64_t>& point, std::int64_t n) {
  const std::size_t m = y.size();
  require(p.size() == m && upper.size() == m && alpha.size() == m && point.size() == m,
          "y, p, upper, alpha and point must be of one length");
  require(m > 0, "a machine needs variables");
  require_finite(p, "p must be finite");
  require_finite(alpha, "alpha must be finite");
  for (std::size_t t = 0; t < m; ++t) require(upper.data()[t] >= 0, "upper must not be negative or NaN");
  require_points(point, n);
  return {copy_of(y), copy_of(p), copy_of(upper), copy_of(alpha), copy_of(point)};
}

// Keeps what the machines look at alive.
struct BoundDuals {
  nb::object owner;
  std::int64_t n;
  std::unique_ptr<DualSet> set;
};

void check_settings(double tol, std::int64_t working_set, int threads) {
  require(tol >= 0 && working_set >= 2 && threads >= 1, "tol, working_set or threads is out of its range");
}

// Of kernel values; `any`: float, and then double if need be.
enum class Precision { any, single, twice };

// On points: kernel values computed from them.
std::unique_ptr<BoundDuals> duals_on_points(const Points& points, KernelSpec spec, Precision precision, double tol,
                                            double hulls_meet, std::int64_t cache_bytes, std::int64_t working_set,
                                            int threads, bool shrinking) {
  check_settings(tol, working_set, threads);
  const AnyRows rows = points.rows;
  const Blas<float> single = borrowed_blas<float>();
  const Blas<double> twice = borrowed_blas<double>();
  KernelSource source;
  if (precision != Precision::twice)
    source.single = [=](std::vector<std::int64_t> chosen, int inner) {
      return gram_of_points<float>(rows, std::move(chosen), spec, single, twice, inner);
    };
  if (precision != Precision::single)
    source.twice = [=](std::vector<std::int64_t> chosen, int inner) {
      return gram_of_points<double>(rows, std::move(chosen), spec, twice, twice, inner);
    };
  {
    nb::gil_scoped_release unlocked;
    source.first_equal = first_equal_rows(rows, threads);
  }
  return std::make_unique<BoundDuals>(
      nb::cast(points.owner), points.n,
      std::make_unique<DualSet>(std::move(source), DualSettings{tol, hulls_meet, working_set, threads, shrinking},
                                cache_bytes));
}

// On a Gram matrix that is given, in its own type.
template <class T>
std::unique_ptr<BoundDuals> duals_on_gram(Matrix<T> gram, double tol, double hulls_meet, std::int64_t cache_bytes,
                                          std::int64_t working_set, int threads, bool shrinking) {
  check_settings(tol, working_set, threads);
  require(gram.shape(0) == gram.shape(1), "a Gram matrix must be square");
  const auto n = static_cast<std::int64_t>(gram.shape(0));
  const DenseRows<T> rows{gram.data(), n, n};
  KernelSource source;
  auto make = [=](std::vector<std::int64_t> chosen, int) { return gram_given<T>(rows, std::move(chosen)); };
  if constexpr (std::is_same_v<T, float>)
    source.single = make;
  else
    source.twice = make;
  return std::make_unique<BoundDuals>(
      nb::cast(gram), n,
      std::make_unique<DualSet>(std::move(source), DualSettings{tol, hulls_meet, working_set, threads, shrinking},
                                cache_bytes));
}

void add_dual(BoundDuals& duals, Vector<std::int8_t> y, Vector<double> p, Vector<double> upper, Vector<double> alpha,
              Vector<std::int64_t> point, bool by_sign, bool hulls, Matrix<double> uppers) {
  Dual dual = dual_of(y, p, upper, alpha, point, duals.n);
  dual.by_sign = by_sign;
  dual.hulls = hulls;
  const std::size_t m = y.size();
  require(uppers.shape(0) == 0 || (uppers.shape(1) == m && !by_sign), "a path is along the bounds of all variables");
  std::vector<std::vector<double>> bounds;
  for (std::size_t r = 0; r < uppers.shape(0); ++r)
    bounds.emplace_back(uppers.data() + r * m, uppers.data() + (r + 1) * m);
  duals.set->add(std::move(dual), std::move(bounds));
}

struct BoundState {
  Array<double> alpha, v;
  bool is_v_known;
  double violation, objective;
  std::int64_t steps, rows_computed;
  Ending ending;
};

BoundState state_of(BoundDuals& duals, std::int64_t k, std::int64_t step) {
  require(k >= 0 && k < duals.set->size() && step >= 0, "there is no such machine");
  MachineState state;
  {
    nb::gil_scoped_release unlocked;
    state = duals.set->state(k, step);
  }
  const std::size_t m = state.alpha.size(), of_v = state.v.size();
  return {to_numpy(std::move(state.alpha), {m}),
          to_numpy(std::move(state.v), {of_v}),
          state.is_v_known,
          state.violation,
          state.objective,
          state.steps,
          state.rows_computed,
          state.ending};
}

// ---- searches

// What a search is about, until it first runs; then the search itself, in the type of its kernel values.
struct BoundSearch {
  nb::object owner;
  std::int64_t n, kernels;
  DualSettings settings;
  std::int64_t max_steps;
  typename Search<float>::Source single;
  typename Search<double>::Source twice;
  std::vector<double> gammas;
  std::vector<DualVariables> machines;
  std::vector<Fold> folds;
  std::vector<SearchUnit> units;
  std::unique_ptr<Search<float>> as_float;
  std::unique_ptr<Search<double>> as_double;

  template <class Body>
  auto with(Body body) {
    return as_float ? body(*as_float) : body(*as_double);
  }

  bool run(double seconds) {
    if (!as_float && !as_double) {
      if (single)
        as_float = std::make_unique<Search<float>>(single, gammas, n, std::move(machines), std::move(folds), settings,
                                                   max_steps);
      else
        as_double = std::make_unique<Search<double>>(twice, gammas, n, std::move(machines), std::move(folds), settings,
                                                     max_steps);
      with([&](auto& search) {
        for (const SearchUnit& unit : units) search.add(unit);
      });
    }
    return with([&](auto& search) { return search.run(seconds); });
  }
  bool is_running() const { return as_float || as_double; }
};

std::unique_ptr<BoundSearch> search_of(nb::object owner, std::int64_t n, std::int64_t kernels, double tol,
                                       std::int64_t working_set, int threads, std::int64_t max_steps) {
  check_settings(tol, working_set, threads);
  require(n >= 1 && kernels >= 1, "a search needs points and kernels");
  auto search = std::make_unique<BoundSearch>();
  search->owner = std::move(owner);
  search->n = n;
  search->kernels = kernels;
  search->settings = DualSettings{tol, 0.0, working_set, threads, false};
  search->max_steps = max_steps;
  return search;
}

// `by_products`: the kernels are Gaussian, and may be made of inner products that are computed once.
std::unique_ptr<BoundSearch> search_on_points(const Points& points, std::vector<KernelSpec> specs, bool by_products,
                                              bool is_double, double tol, std::int64_t working_set, int threads,
                                              std::int64_t max_steps) {
  auto search = search_of(nb::cast(points.owner), points.n, static_cast<std::int64_t>(specs.size()), tol, working_set,
                          threads, max_steps);
  if (by_products)
    for (KernelSpec& spec : specs) {
      require(spec.kind == KernelKind::rbf, "only Gaussian kernels are made of common products");
      search->gammas.push_back(spec.gamma);
      spec.kind = KernelKind::linear;
    }
  const AnyRows rows = points.rows;
  const std::int64_t n = points.n;
  const Blas<float> single = borrowed_blas<float>();
  const Blas<double> twice = borrowed_blas<double>();
  if (is_double)
    search->twice = [=](std::int64_t k, int inner) {
      return gram_of_points<double>(rows, all_rows(n), specs[static_cast<std::size_t>(k)], twice, twice, inner);
    };
  else
    search->single = [=](std::int64_t k, int inner) {
      return gram_of_points<float>(rows, all_rows(n), specs[static_cast<std::size_t>(k)], single, twice, inner);
    };
  return search;
}

template <class T>
std::unique_ptr<BoundSearch> search_on_gram(Matrix<T> gram, double tol, std::int64_t working_set, int threads,
                                            std::int64_t max_steps) {
  require(gram.shape(0) == gram.shape(1), "a Gram matrix must be square");
  const auto n = static_cast<std::int64_t>(gram.shape(0));
  auto search = search_of(nb::cast(gram), n, 1, tol, working_set, threads, max_steps);
  const DenseRows<T> rows{gram.data(), n, n};
  auto make = [=](std::int64_t, int) { return gram_given<T>(rows, all_rows(n)); };
  if constexpr (std::is_same_v<T, float>)
    search->single = make;
  else
    search->twice = make;
  return search;
}

void add_machine(BoundSearch& search, Vector<std::int8_t> y, Vector<double> p, Vector<std::int64_t> point) {
  require(!search.is_running(), "the search has begun");
  const std::size_t m = y.size();
  require(p.size() == m && point.size() == m, "y, p and point must be of one length");
  require_finite(p, "p must be finite");
  require_points(point, search.n);
  search.machines.push_back({copy_of(y), copy_of(p), copy_of(point)});
}

void add_fold(BoundSearch& search, Vector<double> weight, Vector<std::int64_t> held_out) {
  require(!search.is_running(), "the search has begun");
  require(static_cast<std::int64_t>(weight.size()) == search.n, "weight must have a value for each point");
  for (std::size_t h = 0; h < held_out.size(); ++h)
    require(held_out.data()[h] >= 0 && held_out.data()[h] < search.n, "a row held out is no point");
  search.folds.push_back({copy_of(weight), copy_of(held_out)});
}

void add_unit(BoundSearch& search, std::int64_t kernel, std::int64_t fold, double shift, Vector<double> C) {
  require(!search.is_running(), "the search has begun");
  require(kernel >= 0 && kernel < search.kernels && fold >= 0 && fold < static_cast<std::int64_t>(search.folds.size()),
          "there is no such kernel or fold");
  for (std::size_t c = 0; c < C.size(); ++c)
    require(C.data()[c] > (c > 0 ? C.data()[c - 1] : 0.0), "C must be positive and ascend");
  search.units.push_back({kernel, fold, shift, copy_of(C)});
}

struct UnitState {
  Array<double> values;              // (C, machines, held out)
  Array<double> violation, seconds;  // (C, machines)
  Array<std::int64_t> support;
  Array<bool> is_converged;
};

// None while the unit is at work.
std::optional<UnitState> take_unit(BoundSearch& search, std::int64_t unit) {
  require(search.is_running() && unit >= 0 && unit < static_cast<std::int64_t>(search.units.size()),
          "there is no such unit");
  if (!search.with([&](auto& known) { return known.has_ended(unit); })) return std::nullopt;
  UnitResult result = search.with([&](auto& known) { return known.take(unit); });
  const std::size_t n_C = search.units[static_cast<std::size_t>(unit)].C.size();
  const std::size_t machines = n_C > 0 ? result.cells.size() / n_C : 0;
  const std::size_t held = result.cells.empty() ? 0 : result.values.size() / result.cells.size();
  std::vector<double> violation, seconds;
  std::vector<std::int64_t> support;
  const auto is_converged = std::make_unique<bool[]>(result.cells.size());
  for (const SearchCell& cell : result.cells) {
    violation.push_back(cell.violation);
    seconds.push_back(cell.seconds);
    support.push_back(cell.support);
    is_converged[violation.size() - 1] = cell.ending == BlockEnding::converged;
  }
  return UnitState{to_numpy(std::move(result.values), {n_C, machines, held}),
                   to_numpy(violation.data(), {n_C, machines}), to_numpy(seconds.data(), {n_C, machines}),
                   to_numpy(support.data(), {n_C, machines}), to_numpy<bool>(is_converged.get(), {n_C, machines})};
}

// ---- leave one out

// Of one machine on a Gram matrix.
template <class T>
struct BoundLeaveOneOut {
  nb::object owner;
  std::unique_ptr<LeaveOneOut<T>> solver;
};

using AnyLeaveOneOut =
    std::variant<std::unique_ptr<BoundLeaveOneOut<float>>, std::unique_ptr<BoundLeaveOneOut<double>>>;

template <class T>
AnyLeaveOneOut leave_one_out_on_gram(Matrix<T> gram, Vector<std::int8_t> y, Vector<double> p, Vector<double> upper,
                                     Vector<double> alpha, Vector<std::int64_t> point, double tol,
                                     std::int64_t max_steps, int threads) {
  require(gram.shape(0) == gram.shape(1), "a Gram matrix must be square");
  const auto n = static_cast<std::int64_t>(gram.shape(0));
  Dual dual = dual_of(y, p, upper, alpha, point, n);
  auto bound = std::make_unique<BoundLeaveOneOut<T>>();
  bound->owner = nb::cast(gram);
  nb::gil_scoped_release unlocked;
  bound->solver = std::make_unique<LeaveOneOut<T>>(gram_given<T>({gram.data(), n, n}, all_rows(n)), std::move(dual),
                                                   tol, max_steps, threads);
  return bound;
}

template <class T>
void bind_leave_one_out(nb::module_& m, const char* name) {
  nb::class_<BoundLeaveOneOut<T>>(m, name)
      .def(
          "run",
          [](BoundLeaveOneOut<T>& bound, double seconds) {
            nb::gil_scoped_release unlocked;
            return bound.solver->run(seconds);
          },
          "seconds"_a)
      .def_prop_ro("done", [](const BoundLeaveOneOut<T>& bound) { return bound.solver->done(); })
      .def("support", [](const BoundLeaveOneOut<T>& bound) { return to_numpy(bound.solver->support()); })
      .def("values", [](const BoundLeaveOneOut<T>& bound) { return to_numpy(bound.solver->values()); })
      .def("is_converged", [](const BoundLeaveOneOut<T>& bound) { return to_numpy(bound.solver->is_converged()); });
  m.def("leave_one_out_on_gram", &leave_one_out_on_gram<T>, "gram"_a.noconvert(), nb::kw_only(), "y"_a.noconvert(),
        "p"_a.noconvert(), "upper"_a.noconvert(), "alpha"_a.noconvert(), "point"_a.noconvert(), "tol"_a, "max_steps"_a,
        "threads"_a);
}

// K(x_i, x_j) of all points, in T.
template <class T>
Array<T> gram_matrix(const Points& points, KernelSpec spec, int threads) {
  const std::int64_t n = points.n;
  const AnyRows rows = points.rows;
  auto values = std::unique_ptr<T[]>(new T[static_cast<std::size_t>(n * n)]);
  {
    nb::gil_scoped_release unlocked;
    const auto gram = gram_of_points<T>(rows, all_rows(n), spec, borrowed_blas<T>(), borrowed_blas<double>(), threads);
    constexpr std::int64_t kRows = 256;
    for (std::int64_t from = 0; from < n; from += kRows)
      fill_rows(*gram, from, std::min(n, from + kRows), values.get(), threads);
  }
  nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  const std::size_t shape[2] = {static_cast<std::size_t>(n), static_cast<std::size_t>(n)};
  return Array<T>(values.release(), 2, shape, owner);
}

}  // namespace

void bind_svm(nb::module_& m) {
  bind_leave_one_out<float>(m, "LeaveOneOutFloat");
  bind_leave_one_out<double>(m, "LeaveOneOutDouble");
  m.def("gram_matrix_float", &gram_matrix<float>, "points"_a, "kernel"_a, "threads"_a);
  m.def("gram_matrix_double", &gram_matrix<double>, "points"_a, "kernel"_a, "threads"_a);
  nb::class_<UnitState>(m, "UnitState")
      .def_ro("values", &UnitState::values, kShared)
      .def_ro("violation", &UnitState::violation, kShared)
      .def_ro("seconds", &UnitState::seconds, kShared)
      .def_ro("support", &UnitState::support, kShared)
      .def_ro("is_converged", &UnitState::is_converged, kShared);
  nb::class_<BoundSearch>(m, "Search")
      .def("add_machine", &add_machine, nb::kw_only(), "y"_a.noconvert(), "p"_a.noconvert(), "point"_a.noconvert())
      .def("add_fold", &add_fold, nb::kw_only(), "weight"_a.noconvert(), "held_out"_a.noconvert())
      .def("add_unit", &add_unit, nb::kw_only(), "kernel"_a, "fold"_a, "shift"_a, "C"_a.noconvert())
      .def(
          "run",
          [](BoundSearch& search, double seconds) {
            nb::gil_scoped_release unlocked;
            return search.run(seconds);
          },
          "seconds"_a)
      .def_prop_ro("solved",
                   [](BoundSearch& search) -> std::int64_t {
                     return search.is_running() ? search.with([](auto& known) { return known.solved(); }) : 0;
                   })
      .def("take", &take_unit, "unit"_a);
  m.attr("TILE") = PathSolver<float>::kTile;  // machines of so many variables have a copy of their kernel values
  m.def("search_on_points", &search_on_points, "points"_a, nb::kw_only(), "kernels"_a, "by_products"_a, "is_double"_a,
        "tol"_a, "working_set"_a, "threads"_a, "max_steps"_a);
  m.def("search_on_gram", &search_on_gram<float>, "gram"_a.noconvert(), nb::kw_only(), "tol"_a, "working_set"_a,
        "threads"_a, "max_steps"_a);
  m.def("search_on_gram", &search_on_gram<double>, "gram"_a.noconvert(), nb::kw_only(), "tol"_a, "working_set"_a,
        "threads"_a, "max_steps"_a);
  m.attr("MOST_OF_THEM") = kMostOfThem;
  nb::enum_<Precision>(m, "Precision")
      .value("auto", Precision::any)
      .value("single", Precision::single)
      .value("double", Precision::twice);
  nb::enum_<Ending>(m, "DualEnding")
      .value("running", Ending::running)
      .value("converged", Ending::converged)
      .value("imprecise", Ending::imprecise);
  nb::class_<BoundState>(m, "DualState")
      .def_ro("alpha", &BoundState::alpha, kShared)
      .def_ro("v", &BoundState::v, kShared)
      .def_ro("is_v_known", &BoundState::is_v_known)
      .def_ro("violation", &BoundState::violation)
      .def_ro("objective", &BoundState::objective)
      .def_ro("steps", &BoundState::steps)
      .def_ro("rows_computed", &BoundState::rows_computed)
      .def_ro("ending", &BoundState::ending);
  nb::class_<BoundDuals>(m, "Duals")
      .def("add", &add_dual, nb::kw_only(), "y"_a.noconvert(), "p"_a.noconvert(), "upper"_a.noconvert(),
           "alpha"_a.noconvert(), "point"_a.noconvert(), "by_sign"_a, "hulls"_a, "uppers"_a.noconvert())
      .def(
          "run",
          [](BoundDuals& duals, std::int64_t max_steps, double seconds) {
            nb::gil_scoped_release unlocked;
            return duals.set->run(max_steps, seconds);
          },
          "max_steps"_a, "seconds"_a)
      .def_prop_ro("ended", [](const BoundDuals& duals) { return duals.set->ended(); })
      .def_prop_ro("violation", [](const BoundDuals& duals) { return duals.set->violation(); })
      .def(
          "steps_ended",
          [](const BoundDuals& duals, std::int64_t k) {
            require(k >= 0 && k < duals.set->size(), "there is no such machine");
            return duals.set->ended(k);
          },
          "machine"_a)
      .def(
          "alpha",
          [](const BoundDuals& duals, std::int64_t k) {
            require(k >= 0 && k < duals.set->size(), "there is no such machine");
            return to_numpy(duals.set->alpha(k));
          },
          "machine"_a)
      .def("state", &state_of, "machine"_a, "step"_a = 0);
  m.def("duals_on_points", &duals_on_points, "points"_a, nb::kw_only(), "kernel"_a, "precision"_a, "tol"_a,
        "hulls_meet"_a, "cache_bytes"_a, "working_set"_a, "threads"_a, "shrinking"_a);
  m.def("duals_on_gram", &duals_on_gram<float>, "gram"_a.noconvert(), nb::kw_only(), "tol"_a, "hulls_meet"_a,
        "cache_bytes"_a, "working_set"_a, "threads"_a, "shrinking"_a);
  m.def("duals_on_gram", &duals_on_gram<double>, "gram"_a.noconvert(), nb::kw_only(), "tol"_a, "hulls_meet"_a,
        "cache_bytes"_a, "working_set"_a, "threads"_a, "shrinking"_a);
}

}  // namespace margrove
