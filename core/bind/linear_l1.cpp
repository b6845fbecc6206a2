// The linear SVMs solved over columns (penalty l1) and over rows of all classes at once (Crammer and Singer).
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bind/arrays.hpp"
#include "bind/linear_state.hpp"
#include "linear/crammer_singer.hpp"
#include "linear/l1_svm.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

static_assert(linear_ending(L1Ending::none) == LinearEnding::going &&
              linear_ending(L1Ending::converged) == LinearEnding::converged &&
              linear_ending(L1Ending::max_steps) == LinearEnding::most_steps &&
              linear_ending(L1Ending::stalled) == LinearEnding::stalled &&
              linear_ending(L1Ending::nonfinite) == LinearEnding::nonfinite);
static_assert(linear_ending(PassesEnding::none) == LinearEnding::going &&
              linear_ending(PassesEnding::converged) == LinearEnding::converged &&
              linear_ending(PassesEnding::max_passes) == LinearEnding::most_steps &&
              linear_ending(PassesEnding::stalled) == LinearEnding::stalled &&
              linear_ending(PassesEnding::nonfinite) == LinearEnding::nonfinite);

void require_length(const Vector<double>& values, std::int64_t n, const char* message) {
  require(static_cast<std::int64_t>(values.size()) == n, message);
}

// ---- penalty l1

class BoundL1Svm {
 public:
  // intercept: the constant column's value, 0 for none; infinity: a column of ones that is not penalised
  BoundL1Svm(Points points, L1Loss loss, double intercept, double epsilon, double tol, std::int64_t max_steps)
      : points_(std::move(points)),
        scale_(std::isinf(intercept) ? 1.0 : intercept),
        solver_(make_design(points_.rows, scale_, borrowed_blas<double>()),
                {loss, std::isinf(intercept), epsilon, tol, max_steps}) {
    require(points_.n < (std::int64_t{1} << 31), "a linear SVM with penalty l1 takes fewer than 2^31 rows");
  }

  // w: (d + 1), the intercept behind the weights
  void add(Vector<double> target, Vector<double> cost, Vector<double> w, Vector<double> beta) {
    require_length(target, points_.n, "target must be (n)");
    require_length(cost, points_.n, "cost must be (n)");
    require_length(w, points_.d + 1, "w must be (d + 1)");
    require(beta.size() == 0 || static_cast<std::int64_t>(beta.size()) == points_.n, "beta must be (n) or empty");
    std::vector<double> start(w.data(), w.data() + points_.d);
    if (scale_ != 0) start.push_back(w.data()[points_.d] / scale_);
    kept_.append(nb::make_tuple(target, cost));
    solver_.add({span_of(target), span_of(cost), start, span_of(beta)});
  }

  bool run(double seconds, int threads) {
    nb::gil_scoped_release unlocked;
    return solver_.run(seconds, threads);
  }

  LinearProgress standing(std::size_t machine) const {
    const L1Machine& m = *solver_.machines().at(machine);
    return {linear_ending(m.ending()), m.steps(), m.primal(), m.dual()};
  }

  LinearState<double> finish(std::size_t machine) {
    L1Machine& m = *solver_.machines().at(machine);
    {
      nb::gil_scoped_release unlocked;
      m.finish();
    }
    return {to_numpy(m.w().data(), {static_cast<std::size_t>(points_.d)}),
            scale_ == 0 ? 0.0 : scale_ * m.w().back(),
            to_numpy(m.beta()),
            m.primal(),
            m.dual(),
            m.steps(),
            linear_ending(m.ending())};
  }

 private:
  Points points_;
  double scale_;
  nb::list kept_;
  L1Svm solver_;
};

// ---- Crammer and Singer

class BoundCrammerSinger {
 public:
  BoundCrammerSinger(Points points, Vector<std::int32_t> codes, Vector<double> cost, Vector<double> beta,
                     std::int64_t classes, double constant, double tol, std::int64_t max_passes, std::uint64_t seed)
      : points_(std::move(points)), kept_(nb::make_tuple(codes, cost)), classes_(classes) {
    const std::int64_t n = points_.n;
    require(n < (std::int64_t{1} << 32), "Crammer and Singer's machine takes fewer than 2^32 rows");
    require(classes >= 2, "there must be two classes or more");
    require(static_cast<std::int64_t>(codes.size()) == n, "codes must be (n)");
    require_length(cost, n, "cost must be (n)");
    require(beta.size() == 0 || static_cast<std::int64_t>(beta.size()) == n * classes,
            "beta must be (n, classes) or empty");
    for (std::size_t i = 0; i < codes.size(); ++i)
      require(codes.data()[i] >= 0 && codes.data()[i] < classes, "a code lies outside the classes");
    solver_ = std::make_unique<CrammerSinger>(points_.rows, span_of(codes), span_of(cost), span_of(beta),
                                              CrammerSingerSettings{classes, constant, tol, max_passes, seed});
    constant_ = constant;
  }

  bool run(double seconds, int threads) {
    nb::gil_scoped_release unlocked;
    return solver_->run(seconds, threads);
  }

  LinearProgress standing() const {
    return {linear_ending(solver_->ending()), solver_->passes(), solver_->primal(), solver_->dual()};
  }

  LinearState<Array<double>> finish(int threads) {
    {
      nb::gil_scoped_release unlocked;
      solver_->finish(threads);
    }
    std::vector<double> w, b;
    for (std::int64_t k = 0; k < classes_; ++k) {
      for (std::int64_t j = 0; j < points_.d; ++j) w.push_back(solver_->weight(k, j));
      b.push_back(constant_ * solver_->weight(k, points_.d));
    }
    const auto n = static_cast<std::size_t>(points_.n), classes = static_cast<std::size_t>(classes_);
    return {to_numpy(std::move(w), {classes, static_cast<std::size_t>(points_.d)}),
            to_numpy(b),
            to_numpy(solver_->beta().data(), {n, classes}),
            solver_->primal(),
            solver_->dual(),
            solver_->passes(),
            linear_ending(solver_->ending())};
  }

 private:
  Points points_;
  nb::object kept_;
  std::int64_t classes_;
  double constant_ = 0;
  std::unique_ptr<CrammerSinger> solver_;
};

}  // namespace

void bind_linear_l1(nb::module_& m) {
  nb::enum_<L1Loss>(m, "Loss")
      .value("hinge", L1Loss::hinge)
      .value("squared_hinge", L1Loss::squared_hinge)
      .value("epsilon_insensitive", L1Loss::epsilon_insensitive)
      .value("squared_epsilon_insensitive", L1Loss::squared_epsilon_insensitive);
  nb::class_<LinearProgress>(m, "LinearProgress")
      .def_ro("ending", &LinearProgress::ending)
      .def_ro("steps", &LinearProgress::steps)
      .def_ro("primal", &LinearProgress::primal)
      .def_ro("dual", &LinearProgress::dual);
  bind_linear_state<Array<double>>(m, "JointState");
  nb::class_<BoundL1Svm>(m, "L1Svm")
      .def(nb::init<Points, L1Loss, double, double, double, std::int64_t>(), "points"_a, nb::kw_only(), "loss"_a,
           "intercept"_a, "epsilon"_a, "tol"_a, "max_steps"_a)
      .def("add", &BoundL1Svm::add, nb::kw_only(), "target"_a.noconvert(), "cost"_a.noconvert(), "w"_a.noconvert(),
           "beta"_a.noconvert())
      .def("run", &BoundL1Svm::run, "seconds"_a, "threads"_a)
      .def("standing", &BoundL1Svm::standing, "machine"_a)
      .def("finish", &BoundL1Svm::finish, "machine"_a);

  nb::class_<BoundCrammerSinger>(m, "CrammerSinger")
      .def(nb::init<Points, Vector<std::int32_t>, Vector<double>, Vector<double>, std::int64_t, double, double,
                    std::int64_t, std::uint64_t>(),
           "points"_a, nb::kw_only(), "codes"_a.noconvert(), "cost"_a.noconvert(), "beta"_a.noconvert(), "classes"_a,
           "constant"_a, "tol"_a, "max_passes"_a, "seed"_a)
      .def("run", &BoundCrammerSinger::run, "seconds"_a, "threads"_a)
      .def("standing", &BoundCrammerSinger::standing)
      .def("finish", &BoundCrammerSinger::finish, "threads"_a);
}

}  // namespace margrove
