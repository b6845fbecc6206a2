// Support vector machines for Python: one resumable solver for every dual.
#include <nanobind/stl/unique_ptr.h>

#include "bind/arrays.hpp"
#include "svm/block_smo.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

template <class T>
std::vector<T> copy_of(const Vector<T>& v) {
  return {v.data(), v.data() + v.size()};
}

template <class T>
class BoundDual {
 public:
  BoundDual(nb::object owner, std::shared_ptr<const Gram<T>> gram, Vector<std::int8_t> y, Vector<double> p,
            Vector<double> upper, Vector<double> alpha, Vector<std::int64_t> point, DualSettings settings)
      : owner_(std::move(owner)), solver_(gram, checked(*gram, y, p, upper, alpha, point), settings) {}

  bool run(std::int64_t max_steps, double seconds) {
    nb::gil_scoped_release unlocked;
    return solver_.run(max_steps, seconds);
  }
  const BlockSmo<T>& solver() const { return solver_; }

 private:
  static DualProblem checked(const Gram<T>& gram, const Vector<std::int8_t>& y, const Vector<double>& p,
                             const Vector<double>& upper, const Vector<double>& alpha,
                             const Vector<std::int64_t>& point) {
    const std::size_t m = y.size();
    require(p.size() == m && upper.size() == m && alpha.size() == m && point.size() == m,
            "y, p, upper, alpha and point must be of one length");
    for (std::size_t t = 0; t < m; ++t)
      require(point.data()[t] >= 0 && point.data()[t] < gram.size(), "a variable stands for no point");
    return {copy_of(y), copy_of(p), copy_of(upper), copy_of(alpha), copy_of(point)};
  }

  nb::object owner_;
  BlockSmo<T> solver_;
};

void check_chosen(const Vector<std::int64_t>& chosen, std::int64_t n) {
  for (std::size_t k = 0; k < chosen.size(); ++k)
    require(chosen.data()[k] >= 0 && chosen.data()[k] < n, "a chosen row is not there");
}

// On points: kernel values computed from the `chosen` rows of them, in T.
template <class T>
std::unique_ptr<BoundDual<T>> dual_on_points(const Points& points, Vector<std::int64_t> chosen, nb::tuple kernel,
                                             Vector<std::int8_t> y, Vector<double> p, Vector<double> upper,
                                             Vector<double> alpha, Vector<std::int64_t> point, double tol,
                                             std::int64_t cache_bytes, std::int64_t working_set, int threads) {
  check_chosen(chosen, points.n);
  auto gram =
      std::make_shared<const DenseGram<T>>(points.rows, span_of(chosen), kernel_spec(kernel), borrowed_blas<T>());
  return std::make_unique<BoundDual<T>>(nb::none(), gram, y, p, upper, alpha, point,
                                        DualSettings{tol, cache_bytes, working_set, threads});
}

// On a Gram matrix that is given.
template <class T>
std::unique_ptr<BoundDual<T>> dual_on_gram(Matrix<T> gram, Vector<std::int64_t> chosen, Vector<std::int8_t> y,
                                           Vector<double> p, Vector<double> upper, Vector<double> alpha,
                                           Vector<std::int64_t> point, double tol, std::int64_t cache_bytes,
                                           std::int64_t working_set, int threads) {
  require(gram.shape(0) == gram.shape(1), "a Gram matrix must be square");
  const auto n = static_cast<std::int64_t>(gram.shape(0));
  check_chosen(chosen, n);
  auto given = std::make_shared<const GivenGram<T>>(DenseRows<T>{gram.data(), n, n}, span_of(chosen));
  return std::make_unique<BoundDual<T>>(nb::cast(gram), given, y, p, upper, alpha, point,
                                        DualSettings{tol, cache_bytes, working_set, threads});
}

template <class T>
void bind_dual(nb::module_& m, const char* name, const char* on_points) {
  using Bound = BoundDual<T>;
  nb::class_<Bound>(m, name)
      .def("run", &Bound::run, "max_steps"_a, "seconds"_a)
      .def_prop_ro("converged", [](const Bound& b) { return b.solver().has_converged(); })
      .def_prop_ro("stalled", [](const Bound& b) { return b.solver().has_stalled(); })
      .def_prop_ro("violation", [](const Bound& b) { return b.solver().violation(); })
      .def_prop_ro("objective", [](const Bound& b) { return b.solver().objective(); })
      .def_prop_ro("steps", [](const Bound& b) { return b.solver().steps(); })
      .def_prop_ro("rounds", [](const Bound& b) { return b.solver().rounds(); })
      .def_prop_ro("rows_computed", [](const Bound& b) { return b.solver().rows_computed(); })
      .def_prop_ro(
          "alpha", [](const Bound& b) { return to_numpy(b.solver().alpha()); }, nb::rv_policy::automatic)
      .def_prop_ro("v", [](const Bound& b) { return to_numpy(b.solver().v()); }, nb::rv_policy::automatic);
  m.def(on_points, &dual_on_points<T>, "points"_a, "chosen"_a.noconvert(), "kernel"_a, "y"_a.noconvert(),
        "p"_a.noconvert(), "upper"_a.noconvert(), "alpha"_a.noconvert(), "point"_a.noconvert(), "tol"_a,
        "cache_bytes"_a, "working_set"_a, "threads"_a);
  m.def("dual_on_gram", &dual_on_gram<T>, "gram"_a.noconvert(), "chosen"_a.noconvert(), "y"_a.noconvert(),
        "p"_a.noconvert(), "upper"_a.noconvert(), "alpha"_a.noconvert(), "point"_a.noconvert(), "tol"_a,
        "cache_bytes"_a, "working_set"_a, "threads"_a);
}

}  // namespace

void bind_svm(nb::module_& m) {
  bind_dual<float>(m, "Dual32", "dual32_on_points");
  bind_dual<double>(m, "Dual64", "dual64_on_points");
}

}  // namespace margrove
