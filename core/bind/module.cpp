// margrove._core: the only place where C++ meets Python. Checks of meaning are made in Python, before; here
// only what would read outside memory is refused.
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "bind/arrays.hpp"
#include "kernel/decision.hpp"
#include "kernel/row_source.hpp"
#include "linear/centroid.hpp"
#include "linear/kernel_perceptron.hpp"
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
struct Signs {
  Matrix<std::int8_t> sign;  // (machines, n)
  Vector<double> weight;     // (n) or empty
  Signs(Matrix<std::int8_t> s, Vector<double> w, std::int64_t n, std::size_t machines) : sign(s), weight(w) {
    require(s.shape(0) == machines && static_cast<std::int64_t>(s.shape(1)) == n, "sign must be (machines, n)");
    require(w.size() == 0 || static_cast<std::int64_t>(w.size()) == n, "weight must be (n) or empty");
    require(n < (std::int64_t{1} << 32), "a perceptron takes fewer than 2^32 rows");
  }
  std::span<const std::int8_t> sign_span() const { return {sign.data(), sign.size()}; }
  std::span<const double> weight_span() const { return span_of(weight); }
};

// ---- perceptron

class BoundPerceptron {
 public:
  BoundPerceptron(Points points, Matrix<std::int8_t> sign, Vector<double> weight, std::vector<std::uint64_t> seeds,
                  double eta, bool fit_intercept, bool shuffle, int variant, std::int64_t patience, double tolerance,
                  std::int64_t kept_bytes)
      : points_(std::move(points)),
        signs_(sign, weight, points_.n, seeds.size()),
        solver_(points_.rows, signs_.sign_span(), signs_.weight_span(), std::move(seeds),
                {eta, fit_intercept, shuffle, static_cast<Variant>(variant), patience, tolerance, kept_bytes}) {}

  void run(std::int64_t max_passes, double seconds, int threads) {
    nb::gil_scoped_release unlocked;
    solver_.run(max_passes, seconds, threads);
  }

  void start_from(std::size_t machine, Vector<double> w, double b) {
    require(machine < solver_.machines().size() && static_cast<std::int64_t>(w.size()) == points_.d,
            "start must be (d) for an existing machine");
    solver_.start_from(machine, span_of(w), b);
  }

  const std::vector<PerceptronMachine>& machines() const { return solver_.machines(); }
  std::int64_t d() const { return points_.d; }

 private:
  Points points_;
  Signs signs_;
  Perceptron solver_;
};

nb::dict perceptron_state(const BoundPerceptron& p, std::size_t machine) {
  const PerceptronMachine& m = p.machines().at(machine);
  nb::dict state;
  state["w"] = to_numpy(m.w.data(), {m.w.size()});
  state["b"] = m.b;
  state["alpha"] = to_numpy(m.alpha);
  state["steps"] = m.steps;
  state["lag_w"] = to_numpy(m.lag_w);
  state["lag_b"] = m.lag_b;
  const std::size_t kept = m.prototypes.empty() ? 0 : m.makers.size();
  state["prototypes"] = to_numpy(m.prototypes.data(), {kept, static_cast<std::size_t>(p.d()) + 1});
  state["times"] = to_numpy(m.times);
  state["makers"] = to_numpy(m.makers);
  return state;
}

// How a machine stands, cheap enough to ask for between slices.
template <class Machine>
nb::tuple standing(const Machine& m) {
  bool stalled = false;
  if constexpr (requires { m.stalled; }) stalled = m.stalled;
  return nb::make_tuple(m.separated, stalled, m.passes, m.mistakes, m.pass_mistakes);
}

// ---- kernel perceptron

template <class T>
class BoundKernelPerceptron {
 public:
  BoundKernelPerceptron(nb::object owner, std::unique_ptr<RowSource<T>> source, Matrix<std::int8_t> sign,
                        Vector<double> weight, std::vector<std::uint64_t> seeds, KernelPerceptronSettings settings)
      : owner_(std::move(owner)),
        source_(std::move(source)),
        signs_(sign, weight, source_->size(), seeds.size()),
        solver_(*source_, signs_.sign_span(), signs_.weight_span(), std::move(seeds), settings) {}

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
  Signs signs_;
  KernelPerceptron<T> solver_;
};

template <class T>
using KernelPerceptronPointer = std::unique_ptr<BoundKernelPerceptron<T>>;

// The element type is that of the rows, so the class to make is known only when they are.
nb::object kernel_perceptron_on_points(const Points& points, nb::tuple kernel, std::int64_t cache_bytes, int threads,
                                       Matrix<std::int8_t> sign, Vector<double> weight,
                                       std::vector<std::uint64_t> seeds, double eta, bool fit_intercept, bool shuffle) {
  const KernelSpec spec = kernel_spec(kernel);
  return std::visit(
      [&](const auto& rows) {
        using Rows = std::decay_t<decltype(rows)>;
        using T = typename Rows::value_type;
        return nb::cast(std::make_unique<BoundKernelPerceptron<T>>(
            points.owner, std::make_unique<ComputedRows<Rows>>(rows, spec, cache_bytes, threads), sign, weight,
            std::move(seeds), KernelPerceptronSettings{eta, fit_intercept, shuffle}));
      },
      points.rows);
}

template <class T>
KernelPerceptronPointer<T> kernel_perceptron_on_gram(Matrix<T> gram, Matrix<std::int8_t> sign, Vector<double> weight,
                                                     std::vector<std::uint64_t> seeds, double eta, bool fit_intercept,
                                                     bool shuffle) {
  require(gram.shape(0) == gram.shape(1), "a Gram matrix must be square");
  const auto n = static_cast<std::int64_t>(gram.shape(0));
  return std::make_unique<BoundKernelPerceptron<T>>(
      nb::cast(gram), std::make_unique<GivenRows<T>>(DenseRows<T>{gram.data(), n, n}), sign, weight, std::move(seeds),
      KernelPerceptronSettings{eta, fit_intercept, shuffle});
}

KernelPerceptronPointer<double> kernel_perceptron_on_supply(std::int64_t n, std::int64_t cache_bytes,
                                                            Matrix<std::int8_t> sign, Vector<double> weight,
                                                            std::vector<std::uint64_t> seeds, double eta,
                                                            bool fit_intercept, bool shuffle) {
  return std::make_unique<BoundKernelPerceptron<double>>(
      nb::none(), std::make_unique<SuppliedRows<double>>(n, cache_bytes), sign, weight, std::move(seeds),
      KernelPerceptronSettings{eta, fit_intercept, shuffle});
}

template <class T>
void bind_kernel_perceptron(nb::module_& m, const char* name) {
  using Bound = BoundKernelPerceptron<T>;
  nb::class_<Bound>(m, name)
      .def("run", &Bound::run, "max_passes"_a, "seconds"_a)
      .def("supply", &Bound::supply, "i"_a, "row"_a.noconvert())
      .def("standing", [](const Bound& b, std::size_t k) { return standing(b.machines().at(k)); })
      .def("alpha", [](const Bound& b, std::size_t k) { return to_numpy(b.machines().at(k).alpha); })
      .def("decision", [](const Bound& b, std::size_t k) { return to_numpy(b.machines().at(k).decision); });
}

}  // namespace
}  // namespace margrove

NB_MODULE(_core, m) {
  using namespace margrove;
  m.doc() = "Margrove's native core.";

  m.def("max_threads", &max_threads);
  m.def("set_blas", &set_blas, "sgemm"_a, "dgemm"_a);

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
      "points"_a, "label"_a.noconvert(), "weight"_a.noconvert(), "classes"_a, "threads"_a);

  m.def(
      "kernel_decision",
      [](const Points& points, const Points& support, Matrix<double> dual, nb::tuple kernel, int threads) {
        require(points.rows.index() == support.rows.index(), "points and support differ in type");
        require(points.d == support.d, "points and support differ in their number of columns");
        require(static_cast<std::int64_t>(dual.shape(1)) == support.n, "dual must be (machines, support)");
        const KernelSpec spec = kernel_spec(kernel);
        const Blas<double>& blas = borrowed_blas<double>();
        const std::size_t machines = dual.shape(0);
        std::vector<double> out(static_cast<std::size_t>(points.n) * machines);
        {
          nb::gil_scoped_release unlocked;
          add_kernel_sums({points.rows}, {support.rows}, {dual.data(), dual.size()},
                          static_cast<std::int64_t>(machines), spec, blas, threads, out.data());
        }
        return to_numpy(out.data(), {static_cast<std::size_t>(points.n), machines});
      },
      "points"_a, "support"_a, "dual"_a.noconvert(), "kernel"_a, "threads"_a);

  nb::class_<BoundPerceptron>(m, "Perceptron")
      .def(nb::init<Points, Matrix<std::int8_t>, Vector<double>, std::vector<std::uint64_t>, double, bool, bool, int,
                    std::int64_t, double, std::int64_t>(),
           "points"_a, "sign"_a.noconvert(), "weight"_a.noconvert(), "seeds"_a, "eta"_a, "fit_intercept"_a, "shuffle"_a,
           "variant"_a, "patience"_a, "tolerance"_a, "kept_bytes"_a)
      .def("run", &BoundPerceptron::run, "max_passes"_a, "seconds"_a, "threads"_a)
      .def("start_from", &BoundPerceptron::start_from, "machine"_a, "w"_a.noconvert(), "b"_a)
      .def("standing", [](const BoundPerceptron& p, std::size_t k) { return standing(p.machines().at(k)); })
      .def("out_of_room", [](const BoundPerceptron& p, std::size_t k) { return p.machines().at(k).out_of_room; })
      .def("state", &perceptron_state, "machine"_a);

  bind_kernel_perceptron<float>(m, "KernelPerceptron32");
  bind_kernel_perceptron<double>(m, "KernelPerceptron64");
  m.def("kernel_perceptron_on_points", &kernel_perceptron_on_points, "points"_a, "kernel"_a, "cache_bytes"_a,
        "threads"_a, "sign"_a.noconvert(), "weight"_a.noconvert(), "seeds"_a, "eta"_a, "fit_intercept"_a, "shuffle"_a);
  m.def("kernel_perceptron_on_gram", &kernel_perceptron_on_gram<float>, "gram"_a.noconvert(), "sign"_a.noconvert(),
        "weight"_a.noconvert(), "seeds"_a, "eta"_a, "fit_intercept"_a, "shuffle"_a);
  m.def("kernel_perceptron_on_gram", &kernel_perceptron_on_gram<double>, "gram"_a.noconvert(), "sign"_a.noconvert(),
        "weight"_a.noconvert(), "seeds"_a, "eta"_a, "fit_intercept"_a, "shuffle"_a);
  m.def("kernel_perceptron_on_supply", &kernel_perceptron_on_supply, "n"_a, "cache_bytes"_a, "sign"_a.noconvert(),
        "weight"_a.noconvert(), "seeds"_a, "eta"_a, "fit_intercept"_a, "shuffle"_a);

  bind_svm(m);
  bind_boost(m);
  bind_linear_svm(m);
  bind_tree(m);
  bind_linear_l1(m);
}
