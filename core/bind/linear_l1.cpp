// The linear SVMs solved over columns (penalty l1) and over rows of all classes at once (Crammer and Singer).
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bind/arrays.hpp"
#include "linear/l1_svm.hpp"

using namespace nanobind::literals;

namespace margrove {
namespace {

void require_length(const Vector<double>& values, std::int64_t n, const char* message) {
  require(static_cast<std::int64_t>(values.size()) == n, message);
}

// ---- penalty l1

class BoundL1Svm {
 public:
  // intercept: the constant column's value, 0 for none; infinity: a column of ones that is not penalised
  BoundL1Svm(Points points, int loss, double intercept, double epsilon, double tol, std::int64_t max_steps)
      : points_(std::move(points)),
        scale_(std::isinf(intercept) ? 1.0 : intercept),
        solver_(make_design(points_.rows, scale_, borrowed_blas<double>()),
                {static_cast<LinearLoss>(loss), std::isinf(intercept), epsilon, tol, max_steps}) {
    require(loss >= 0 && loss <= static_cast<int>(LinearLoss::squared_epsilon_insensitive), "unknown loss");
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

  // Ending, steps, primal and dual value: cheap enough to ask for between slices.
  nb::tuple standing(std::size_t machine) const {
    const L1Machine& m = *solver_.machines().at(machine);
    return nb::make_tuple(static_cast<int>(m.ending()), m.steps(), m.primal(), m.dual());
  }

  nb::dict finish(std::size_t machine) {
    L1Machine& m = *solver_.machines().at(machine);
    {
      nb::gil_scoped_release unlocked;
      m.finish();
    }
    nb::dict state;
    state["w"] = to_numpy(m.w().data(), {static_cast<std::size_t>(points_.d)});
    state["b"] = scale_ == 0 ? 0.0 : scale_ * m.w().back();
    state["beta"] = to_numpy(m.beta());
    state["primal"] = m.primal();
    state["dual"] = m.dual();
    state["steps"] = m.steps();
    state["ending"] = static_cast<int>(m.ending());
    return state;
  }

 private:
  Points points_;
  double scale_;
  nb::list kept_;
  L1Svm solver_;
};

}  // namespace

void bind_linear_l1(nb::module_& m) {
  nb::class_<BoundL1Svm>(m, "L1Svm")
      .def(nb::init<Points, int, double, double, double, std::int64_t>(), "points"_a, "loss"_a, "intercept"_a,
           "epsilon"_a, "tol"_a, "max_steps"_a)
      .def("add", &BoundL1Svm::add, "target"_a.noconvert(), "cost"_a.noconvert(), "w"_a.noconvert(),
           "beta"_a.noconvert())
      .def("run", &BoundL1Svm::run, "seconds"_a, "threads"_a)
      .def("standing", &BoundL1Svm::standing, "machine"_a)
      .def("finish", &BoundL1Svm::finish, "machine"_a);
}

}  // namespace margrove
