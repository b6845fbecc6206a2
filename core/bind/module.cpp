// margrove._core: the only place where C++ meets Python. Checks of meaning are made in Python, before; here
// only what would read outside memory is refused.
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "bind/arrays.hpp"
#include "kernel/decision.hpp"
#include "kernel/row_source.hpp"
#include "linear/centroid.hpp"
#include "linear/kernel_perceptron.hpp"
#include "linear/penalised_perceptron.hpp"
#include "linear/perceptron.hpp"
#include "parallel.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

void set_blas(nb::capsule sgemm, nb::capsule dgemm) {
  g_blas.single.gemm = reinterpret_cast<Gemm<float>>(sgemm.data());
  g_blas.twice.gemm = reinterpret_cast<Gemm<double>>(dgemm.data());
}

// ---- rows

template <class T>
Points dense_points(Matrix<T> x) {
  const auto n = static_cast<std::int64_t>(x.shape(0)), d = static_cast<std::int64_t>(x.shape(1));
  return {DenseRows<T>{x.data(), n, d}, nb::cast(x), n, d};
}

template <class T>
Points csr_points(Vector<T> data, Vector<std::int32_t> column, Vector<std::int64_t> start, std::int64_t d) {
  require(start.size() >= 1 && data.size() == column.size(), "CSR arrays disagree in length");
  const auto n = static_cast<std::int64_t>(start.size()) - 1;
  const std::int64_t* at = start.data();
  require(at[0] == 0 && at[n] <= static_cast<std::int64_t>(data.size()), "CSR row starts leave the data");
  for (std::int64_t i = 0; i < n; ++i) require(at[i] <= at[i + 1], "CSR row starts must not fall");
  for (std::int64_t k = 0; k < at[n]; ++k)
    require(column.data()[k] >= 0 && column.data()[k] < d, "a CSR column index lies outside the matrix");
  return {CsrRows<T>{data.data(), column.data(), at, n, d}, nb::make_tuple(data, column, start), n, d};
}

// What every perceptron is given beside its rows.
struct Walk {
  Matrix<std::int8_t> sign;          // (machines, n)
  Vector<double> weight;             // (n) or empty
  std::vector<std::uint64_t> seeds;  // (machines)
  double eta;
  bool fit_intercept, shuffle;

  const Walk& of_rows(std::int64_t n) const {
    require(sign.shape(0) == seeds.size() && static_cast<std::int64_t>(sign.shape(1)) == n,
            "sign must be (machines, n)");
    require(weight.size() == 0 || static_cast<std::int64_t>(weight.size()) == n, "weight must be (n) or empty");
    require(n < (std::int64_t{1} << 32), "a perceptron takes fewer than 2^32 rows");
    return *this;
  }
  std::span<const std::int8_t> sign_span() const { return {sign.data(), sign.size()}; }
  std::span<const double> weight_span() const { return span_of(weight); }
};

// How a machine stands, cheap enough to ask for between slices.
struct WalkStanding {
  bool separated, stalled;
  std::int64_t passes, mistakes, pass_mistakes;
};

template <class Machine>
WalkStanding standing(const Machine& m) {
  bool stalled = false;
  if constexpr (requires { m.stalled; }) stalled = m.stalled;
  return {m.separated, stalled, m.passes, m.mistakes, m.pass_mistakes};
}

// ---- perceptron

template <class Solver>
class BoundWalk {
 public:
  template <class Settings>
  BoundWalk(const Points& points, const Walk& walk, const Settings& settings)
      : points_(points),
        walk_(walk.of_rows(points_.n)),
        solver_(points_.rows, walk_.sign_span(), walk_.weight_span(), walk_.seeds, settings) {}

  void run(std::int64_t max_passes, double seconds, int threads) {
    nb::gil_scoped_release unlocked;
    solver_.run(max_passes, seconds, threads);
  }

  void start_from(std::size_t machine, Vector<double> w, double b) {
    require(machine < solver_.machines().size() && static_cast<std::int64_t>(w.size()) == points_.d,
            "start must be (d) for an existing machine");
    solver_.start_from(machine, span_of(w), b);
  }

  const Solver& solver() const { return solver_; }
  std::int64_t d() const { return points_.d; }

 private:
  Points points_;
  Walk walk_;
  Solver solver_;
};
using BoundPerceptron = BoundWalk<Perceptron>;
using BoundPenalisedPerceptron = BoundWalk<PenalisedPerceptron>;

// The methods that both perceptrons have.
template <class Solver>
nb::class_<BoundWalk<Solver>> bind_walk(nb::module_& m, const char* name) {
  using Bound = BoundWalk<Solver>;
  return nb::class_<Bound>(m, name)
      .def("run", &Bound::run, "max_passes"_a, "seconds"_a, "threads"_a)
      .def("start_from", &Bound::start_from, "machine"_a, "w"_a.noconvert(), "b"_a)
      .def(
          "standing", [](const Bound& p, std::size_t k) { return standing(p.solver().machines().at(k)); }, "machine"_a);
}

struct PerceptronState {
  Array<double> w;  // (d)
  double b;
  Array<double> alpha;  // (n)
  std::int64_t steps;
  Array<double> lag_w;  // (d)
  double lag_b;
  Array<double> prototypes;           // (mistakes, d + 1)
  Array<std::int64_t> times, makers;  // (mistakes)
};

PerceptronState perceptron_state(const BoundPerceptron& p, std::size_t machine) {
  const PerceptronMachine& m = p.solver().machines().at(machine);
  const std::size_t kept = m.prototypes.empty() ? 0 : m.makers.size();
  return {to_numpy(m.w.data(), {m.w.size()}),
          m.b,
          to_numpy(m.alpha),
          m.steps,
          to_numpy(m.lag_w),
          m.lag_b,
          to_numpy(m.prototypes.data(), {kept, static_cast<std::size_t>(p.d()) + 1}),
          to_numpy(m.times),
          to_numpy(m.makers)};
}

// What only a perceptron without a penalty keeps is empty.
PerceptronState penalised_state(const BoundPenalisedPerceptron& p, std::size_t machine) {
  PerceptronState state{};
  const AlignedVector w = p.solver().weights(machine);
  state.w = to_numpy(w.data(), {w.size()});
  state.b = p.solver().machines().at(machine).b;
  state.alpha = state.lag_w = to_numpy(std::vector<double>{});
  state.prototypes = to_numpy(std::vector<double>{}, {0, w.size() + 1});
  state.times = state.makers = to_numpy(std::vector<std::int64_t>{});
  return state;
}

// ---- kernel perceptron

template <class T>
class BoundKernelPerceptron {
 public:
  BoundKernelPerceptron(nb::object owner, std::unique_ptr<RowSource<T>> source, const Walk& walk)
      : owner_(std::move(owner)),
        source_(std::move(source)),
        walk_(walk.of_rows(source_->size())),
        solver_(*source_, walk_.sign_span(), walk_.weight_span(), walk_.seeds,
                {walk.eta, walk.fit_intercept, walk.shuffle}) {}

  std::int64_t run(std::int64_t max_passes, double seconds) {
    nb::gil_scoped_release unlocked;
    return solver_.run(max_passes, seconds);
  }

  void supply(std::int64_t i, Vector<T> row) {
    auto* supplied = dynamic_cast<SuppliedRows<T>*>(source_.get());
    require(supplied != nullptr, "this kernel computes its own rows");
    require(i >= 0 && i < source_->size() && static_cast<std::int64_t>(row.size()) == source_->size(),
            "a kernel row must have n values");
    supplied->supply(i, row.data());
  }

  const std::vector<KernelPerceptronMachine>& machines() const { return solver_.machines(); }

 private:
  nb::object owner_;
  std::unique_ptr<RowSource<T>> source_;
  Walk walk_;
  KernelPerceptron<T> solver_;
};

template <class T>
using KernelPerceptronPointer = std::unique_ptr<BoundKernelPerceptron<T>>;
// The element type is that of the rows, so the class to make is known only when they are.
using AnyKernelPerceptron = std::variant<KernelPerceptronPointer<float>, KernelPerceptronPointer<double>>;

AnyKernelPerceptron kernel_perceptron_on_points(const Points& points, const Walk& walk, KernelSpec kernel,
                                                std::int64_t cache_bytes, int threads) {
  return std::visit(
      [&](const auto& rows) -> AnyKernelPerceptron {
        using Rows = std::decay_t<decltype(rows)>;
        using T = typename Rows::value_type;
        return std::make_unique<BoundKernelPerceptron<T>>(
            points.owner, std::make_unique<ComputedRows<Rows>>(rows, kernel, cache_bytes, threads), walk);
      },
      points.rows);
}

template <class T>
AnyKernelPerceptron kernel_perceptron_on_gram(Matrix<T> gram, const Walk& walk) {
  require(gram.shape(0) == gram.shape(1), "a Gram matrix must be square");
  const auto n = static_cast<std::int64_t>(gram.shape(0));
  return std::make_unique<BoundKernelPerceptron<T>>(
      nb::cast(gram), std::make_unique<GivenRows<T>>(DenseRows<T>{gram.data(), n, n}), walk);
}

KernelPerceptronPointer<double> kernel_perceptron_on_supply(std::int64_t n, const Walk& walk,
                                                            std::int64_t cache_bytes) {
  return std::make_unique<BoundKernelPerceptron<double>>(nb::none(),
                                                         std::make_unique<SuppliedRows<double>>(n, cache_bytes), walk);
}

template <class T>
void bind_kernel_perceptron(nb::module_& m, const char* name) {
  using Bound = BoundKernelPerceptron<T>;
  nb::class_<Bound>(m, name)
      .def("run", &Bound::run, "max_passes"_a, "seconds"_a)
      .def("supply", &Bound::supply, "i"_a, "row"_a.noconvert())
      .def(
          "standing", [](const Bound& b, std::size_t k) { return standing(b.machines().at(k)); }, "machine"_a)
      .def(
          "alpha", [](const Bound& b, std::size_t k) { return to_numpy(b.machines().at(k).alpha); }, "machine"_a)
      .def(
          "decision", [](const Bound& b, std::size_t k) { return to_numpy(b.machines().at(k).decision); }, "machine"_a);
}

}  // namespace
}  // namespace margrove

NB_MODULE(_core, m) {
  using namespace margrove;
  m.doc() = "Margrove's native core.";

  m.def("set_blas", &set_blas, "sgemm"_a, "dgemm"_a);

  nb::enum_<KernelKind>(m, "KernelKind")
      .value("linear", KernelKind::linear)
      .value("rbf", KernelKind::rbf)
      .value("poly", KernelKind::poly)
      .value("sigmoid", KernelKind::sigmoid)
      .value("laplacian", KernelKind::laplacian)
      .value("chi2", KernelKind::chi2)
      .value("intersection", KernelKind::intersection);
  nb::class_<KernelSpec>(m, "KernelSpec")
      .def(
          "__init__",
          [](KernelSpec* self, KernelKind kind, double gamma, double coef0, double degree) {
            new (self) KernelSpec{kind, gamma, coef0, degree};
          },
          "kind"_a, nb::kw_only(), "gamma"_a, "coef0"_a, "degree"_a);

  nb::class_<Points>(m, "Points").def_ro("n", &Points::n).def_ro("d", &Points::d);
  m.def("dense_points", &dense_points<float>, "x"_a.noconvert());
  m.def("dense_points", &dense_points<double>, "x"_a.noconvert());
  m.def("csr_points", &csr_points<float>, "data"_a.noconvert(), "column"_a.noconvert(), "start"_a.noconvert(), "d"_a);
  m.def("csr_points", &csr_points<double>, "data"_a.noconvert(), "column"_a.noconvert(), "start"_a.noconvert(), "d"_a);

  m.def(
      "class_sums",
      [](const Points& points, Vector<std::int32_t> label, Vector<double> weight, std::int64_t classes, int threads) {
        require(static_cast<std::int64_t>(label.size()) == points.n, "label must be (n)");
        require(weight.size() == 0 || static_cast<std::int64_t>(weight.size()) == points.n,
                "weight must be (n) or empty");
        for (std::size_t i = 0; i < label.size(); ++i)
          require(label.data()[i] >= 0 && label.data()[i] < classes, "a label lies outside the classes");
        std::vector<double> sums(static_cast<std::size_t>(classes * points.d));
        {
          nb::gil_scoped_release unlocked;
          class_sums(points.rows, span_of(label), span_of(weight), classes, threads, sums.data());
        }
        return to_numpy(sums.data(), {static_cast<std::size_t>(classes), static_cast<std::size_t>(points.d)});
      },
      "points"_a, nb::kw_only(), "label"_a.noconvert(), "weight"_a.noconvert(), "classes"_a, "threads"_a);

  m.def(
      "kernel_decision",
      [](const Points& points, const Points& support, Matrix<double> dual, KernelSpec kernel, int threads) {
        require(points.rows.index() == support.rows.index(), "points and support differ in type");
        require(points.d == support.d, "points and support differ in their number of columns");
        require(static_cast<std::int64_t>(dual.shape(1)) == support.n, "dual must be (machines, support)");
        const Blas<double>& blas = borrowed_blas<double>();
        const std::size_t machines = dual.shape(0);
        std::vector<double> out(static_cast<std::size_t>(points.n) * machines);
        {
          nb::gil_scoped_release unlocked;
          add_kernel_sums({points.rows}, {support.rows}, {dual.data(), dual.size()},
                          static_cast<std::int64_t>(machines), kernel, blas, threads, out.data());
        }
        return to_numpy(out.data(), {static_cast<std::size_t>(points.n), machines});
      },
      "points"_a, "support"_a, "dual"_a.noconvert(), nb::kw_only(), "kernel"_a, "threads"_a);

  nb::class_<Walk>(m, "Walk").def(
      "__init__",
      [](Walk* self, Matrix<std::int8_t> sign, Vector<double> weight, std::vector<std::uint64_t> seeds, double eta,
         bool fit_intercept,
         bool shuffle) { new (self) Walk{sign, weight, std::move(seeds), eta, fit_intercept, shuffle}; },
      nb::kw_only(), "sign"_a.noconvert(), "weight"_a.noconvert(), "seeds"_a, "eta"_a, "fit_intercept"_a, "shuffle"_a);
  nb::class_<WalkStanding>(m, "WalkStanding")
      .def_ro("separated", &WalkStanding::separated)
      .def_ro("stalled", &WalkStanding::stalled)
      .def_ro("passes", &WalkStanding::passes)
      .def_ro("mistakes", &WalkStanding::mistakes)
      .def_ro("pass_mistakes", &WalkStanding::pass_mistakes);
  nb::class_<PerceptronState>(m, "PerceptronState")
      .def_ro("w", &PerceptronState::w, kShared)
      .def_ro("b", &PerceptronState::b)
      .def_ro("alpha", &PerceptronState::alpha, kShared)
      .def_ro("steps", &PerceptronState::steps)
      .def_ro("lag_w", &PerceptronState::lag_w, kShared)
      .def_ro("lag_b", &PerceptronState::lag_b)
      .def_ro("prototypes", &PerceptronState::prototypes, kShared)
      .def_ro("times", &PerceptronState::times, kShared)
      .def_ro("makers", &PerceptronState::makers, kShared);
  nb::enum_<Variant>(m, "Variant")
      .value("last", Variant::last)
      .value("averaged", Variant::averaged)
      .value("voted", Variant::voted);

  bind_walk<Perceptron>(m, "Perceptron")
      .def(
          "__init__",
          [](BoundPerceptron* self, const Points& points, const Walk& walk, Variant variant, std::int64_t patience,
             double tolerance, std::int64_t kept_bytes) {
            new (self) BoundPerceptron(points, walk,
                                       PerceptronSettings{walk.eta, walk.fit_intercept, walk.shuffle, variant, patience,
                                                          tolerance, kept_bytes});
          },
          "points"_a, "walk"_a, nb::kw_only(), "variant"_a, "patience"_a, "tolerance"_a, "kept_bytes"_a)
      .def(
          "out_of_room",
          [](const BoundPerceptron& p, std::size_t k) { return p.solver().machines().at(k).out_of_room; }, "machine"_a)
      .def("state", &perceptron_state, "machine"_a);
  bind_walk<PenalisedPerceptron>(m, "PenalisedPerceptron")
      .def(
          "__init__",
          [](BoundPenalisedPerceptron* self, const Points& points, const Walk& walk, double alpha, double l1_ratio,
             std::int64_t patience, double tolerance) {
            new (self) BoundPenalisedPerceptron(
                points, walk,
                PenalisedSettings{walk.eta, alpha, l1_ratio, walk.fit_intercept, walk.shuffle, patience, tolerance});
          },
          "points"_a, "walk"_a, nb::kw_only(), "alpha"_a, "l1_ratio"_a, "patience"_a, "tolerance"_a)
      .def("state", &penalised_state, "machine"_a);

  bind_kernel_perceptron<float>(m, "KernelPerceptron32");
  bind_kernel_perceptron<double>(m, "KernelPerceptron64");
  m.def("kernel_perceptron_on_points", &kernel_perceptron_on_points, "points"_a, "walk"_a, nb::kw_only(), "kernel"_a,
        "cache_bytes"_a, "threads"_a);
  m.def("kernel_perceptron_on_gram", &kernel_perceptron_on_gram<float>, "gram"_a.noconvert(), "walk"_a);
  m.def("kernel_perceptron_on_gram", &kernel_perceptron_on_gram<double>, "gram"_a.noconvert(), "walk"_a);
  m.def("kernel_perceptron_on_supply", &kernel_perceptron_on_supply, "n"_a, "walk"_a, nb::kw_only(), "cache_bytes"_a);

  bind_svm(m);
  bind_boost(m);
  bind_linear_svm(m);
  bind_tree(m);
  bind_forest(m);
  bind_linear_l1(m);
}
