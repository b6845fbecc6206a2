// Support vector machines for Python: one resumable set of machines for every dual.
#include <nanobind/stl/unique_ptr.h>

#include "bind/arrays.hpp"
#include "kernel/duplicates.hpp"
#include "svm/dual_set.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

template <class T>
std::vector<T> copy_of(const Vector<T>& v) {
  return {v.data(), v.data() + v.size()};
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

// On points: kernel values computed from them. `precision`: 1 float, 2 double, 0 float and then double if need be.
std::unique_ptr<BoundDuals> duals_on_points(const Points& points, nb::tuple kernel, int precision, double tol,
                                            double hulls_meet, std::int64_t cache_bytes, std::int64_t working_set,
                                            int threads, bool shrinking) {
  check_settings(tol, working_set, threads);
  const KernelSpec spec = kernel_spec(kernel);
  const AnyRows rows = points.rows;
  const Blas<float> single = borrowed_blas<float>();
  const Blas<double> twice = borrowed_blas<double>();
  KernelSource source;
  if (precision != 2)
    source.single = [=](std::vector<std::int64_t> chosen, int inner) {
      return gram_of_points<float>(rows, std::move(chosen), spec, single, twice, inner);
    };
  if (precision != 1)
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
              Vector<std::int64_t> point, bool by_sign, bool hulls) {
  const std::size_t m = y.size();
  require(p.size() == m && upper.size() == m && alpha.size() == m && point.size() == m,
          "y, p, upper, alpha and point must be of one length");
  require(m > 0, "a machine needs variables");
  for (std::size_t t = 0; t < m; ++t)
    require(point.data()[t] >= 0 && point.data()[t] < duals.n, "a variable stands for no point");
  duals.set->add({copy_of(y), copy_of(p), copy_of(upper), copy_of(alpha), copy_of(point), by_sign, hulls});
}

nb::dict state_of(BoundDuals& duals, std::int64_t k) {
  require(k >= 0 && k < duals.set->size(), "there is no such machine");
  MachineState state;
  {
    nb::gil_scoped_release unlocked;
    state = duals.set->state(k);
  }
  nb::dict out;
  out["alpha"] = to_numpy(state.alpha);
  out["v"] = to_numpy(state.v);
  out["is_v_known"] = state.is_v_known;
  out["violation"] = state.violation;
  out["objective"] = state.objective;
  out["steps"] = state.steps;
  out["rounds"] = state.rounds;
  out["rows_computed"] = state.rows_computed;
  out["ending"] = static_cast<int>(state.ending);
  out["is_double"] = state.is_double;
  return out;
}

}  // namespace

void bind_svm(nb::module_& m) {
  nb::class_<BoundDuals>(m, "Duals")
      .def("add", &add_dual, "y"_a.noconvert(), "p"_a.noconvert(), "upper"_a.noconvert(), "alpha"_a.noconvert(),
           "point"_a.noconvert(), "by_sign"_a, "hulls"_a)
      .def(
          "run",
          [](BoundDuals& duals, std::int64_t max_steps, double seconds) {
            nb::gil_scoped_release unlocked;
            return duals.set->run(max_steps, seconds);
          },
          "max_steps"_a, "seconds"_a)
      .def_prop_ro("ended", [](const BoundDuals& duals) { return duals.set->ended(); })
      .def_prop_ro("violation", [](const BoundDuals& duals) { return duals.set->violation(); })
      .def("state", &state_of, "machine"_a);
  m.def("duals_on_points", &duals_on_points, "points"_a, "kernel"_a, "precision"_a, "tol"_a, "hulls_meet"_a,
        "cache_bytes"_a, "working_set"_a, "threads"_a, "shrinking"_a);
  m.def("duals_on_gram", &duals_on_gram<float>, "gram"_a.noconvert(), "tol"_a, "hulls_meet"_a, "cache_bytes"_a,
        "working_set"_a, "threads"_a, "shrinking"_a);
  m.def("duals_on_gram", &duals_on_gram<double>, "gram"_a.noconvert(), "tol"_a, "hulls_meet"_a, "cache_bytes"_a,
        "working_set"_a, "threads"_a, "shrinking"_a);
}

}  // namespace margrove
