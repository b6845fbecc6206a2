// The linear machines, for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bind/arrays.hpp"
#include "bind/linear_state.hpp"
#include "linear/svm_set.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

SymmetricBlas g_symmetric;

void set_symmetric_blas(nb::capsule gemm, nb::capsule syrk, nb::capsule potrf, nb::capsule potrs) {
  g_symmetric.gemm = reinterpret_cast<decltype(g_symmetric.gemm)>(gemm.data());
  g_symmetric.syrk = reinterpret_cast<decltype(g_symmetric.syrk)>(syrk.data());
  g_symmetric.potrf = reinterpret_cast<decltype(g_symmetric.potrf)>(potrf.data());
  g_symmetric.potrs = reinterpret_cast<decltype(g_symmetric.potrs)>(potrs.data());
}

struct PathState : LinearState<double> {
  LinearMethod method;
  bool is_implied;
};

class BoundLinearSet {
 public:
  BoundLinearSet(Points points, LinearMethod method, LinearMethod otherwise, std::int64_t patience, double tol,
                 std::int64_t most_steps, std::uint64_t seed, bool keeps_beta, double violation, int threads)
      : points_(std::move(points)),
        set_(points_.rows, {method, otherwise, patience, tol, most_steps, seed, keeps_beta, violation}, g_symmetric,
             threads) {
    require(g_symmetric.gemm && g_symmetric.syrk && g_symmetric.potrf && g_symmetric.potrs,
            "set_symmetric_blas has not been called");
    require(points_.n < (std::int64_t{1} << 32), "a linear machine takes fewer than 2^32 rows");
    require(method != LinearMethod::newton || points_.d < 46340, "too many columns for a matrix");
  }

  void add(Vector<double> target, Vector<double> cost, bool is_of_signs, bool is_squared, double epsilon,
           bool has_intercept, double rho, Vector<double> w, double b, Vector<double> beta,
           std::vector<double> factors) {
    const auto n = static_cast<std::size_t>(points_.n), d = static_cast<std::size_t>(points_.d);
    require(target.size() == n && cost.size() == n, "target and cost must be (n)");
    require(w.size() == 0 || w.size() == d, "w must be (d) or empty");
    require(beta.size() == 0 || beta.size() == n, "beta must be (n) or empty");
    require(!factors.empty(), "a path needs a step");
    kept_.push_back(nb::make_tuple(target, cost, w, beta));
    set_.add({span_of(target), span_of(cost), is_of_signs, is_squared, has_intercept, epsilon, rho, 1.0}, span_of(w), b,
             span_of(beta), std::move(factors));
  }

  bool run(double seconds) {
    nb::gil_scoped_release unlocked;
    return set_.run(seconds);
  }

  std::vector<PathState> path(std::size_t machine) const {
    require(machine < set_.size(), "no such machine");
    std::vector<PathState> found;
    for (PathStep& step : set_.path(machine)) {
      const std::size_t d = step.w.size(), n = step.beta.size();
      found.push_back({{to_numpy(std::move(step.w), {d}), step.b, to_numpy(std::move(step.beta), {n}),
                        step.standing.primal, step.standing.dual, step.standing.steps, step.ending},
                       step.method,
                       step.is_implied});
    }
    return found;
  }

  const LinearSet& set() const { return set_; }

 private:
  Points points_;
  std::vector<nb::object> kept_;  // what the spans of the machines look at
  LinearSet set_;
};

}  // namespace

void bind_linear_svm(nb::module_& m) {
  m.def("set_symmetric_blas", &set_symmetric_blas, "gemm"_a, "syrk"_a, "potrf"_a, "potrs"_a);
  nb::enum_<LinearMethod>(m, "LinearMethod")
      .value("newton", LinearMethod::newton)
      .value("conjugate_gradients", LinearMethod::gradients)
      .value("descent", LinearMethod::descent)
      .value("row_newton", LinearMethod::rows);
  nb::enum_<LinearEnding>(m, "LinearEnding")
      .value("going", LinearEnding::going)
      .value("converged", LinearEnding::converged)
      .value("most_steps", LinearEnding::most_steps)
      .value("stalled", LinearEnding::stalled)
      .value("nonfinite", LinearEnding::nonfinite);
  bind_linear_state<double>(m, "LinearState");
  nb::class_<PathState, LinearState<double>>(m, "PathState")
      .def_ro("method", &PathState::method)
      .def_ro("is_implied", &PathState::is_implied);
  nb::class_<BoundLinearSet>(m, "LinearSet")
      .def(nb::init<Points, LinearMethod, LinearMethod, std::int64_t, double, std::int64_t, std::uint64_t, bool, double,
                    int>(),
           "points"_a, nb::kw_only(), "method"_a, "otherwise"_a, "patience"_a, "tol"_a, "most_steps"_a, "seed"_a,
           "keeps_beta"_a, "violation"_a, "threads"_a)
      .def("add", &BoundLinearSet::add, nb::kw_only(), "target"_a.noconvert(), "cost"_a.noconvert(), "is_of_signs"_a,
           "is_squared"_a, "epsilon"_a, "has_intercept"_a, "rho"_a, "w"_a.noconvert(), "b"_a, "beta"_a.noconvert(),
           "factors"_a)
      .def("run", &BoundLinearSet::run, "seconds"_a)
      .def("path", &BoundLinearSet::path, "machine"_a)
      .def_prop_ro("ended", [](const BoundLinearSet& s) { return s.set().ended(); })
      .def_prop_ro("gap", [](const BoundLinearSet& s) { return s.set().gap(); });
}

}  // namespace margrove
