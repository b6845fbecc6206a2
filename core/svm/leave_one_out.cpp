#include "svm/leave_one_out.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kSteps = 5000;  // steps between two looks at the clock. Chosen, not measured: some milliseconds

}  // namespace

template <class T>
struct LeaveOneOut<T>::Worker {
  TileSmo<T> smo;
  DualState state;
  std::size_t at = 0;
  bool is_busy = false;
};

template <class T>
LeaveOneOut<T>::LeaveOneOut(std::shared_ptr<const Gram<T>> gram, Dual dual, double tol, std::int64_t max_steps,
                            int threads)
    : gram_(std::move(gram)), whole_{std::move(dual), {}}, tol_(tol), max_steps_(max_steps) {
  const Dual& known = whole_.dual;
  tile_.open(gram_, known.point);
  tile_.make_all_rows();  // all workers read them
  TileSmo<T> smo;
  smo.open(tile_);
  std::vector<double> beta(known.y.size()), sums(known.y.size(), 0.0);
  for (std::size_t t = 0; t < beta.size(); ++t) beta[t] = known.y[t] * known.alpha[t];
  smo.add_products(beta, sums);
  for (std::size_t t = 0; t < beta.size(); ++t) {
    whole_.v.push_back(-known.y[t] * known.p[t] - sums[t]);
    if (known.alpha[t] > 0) support_.push_back(t);
  }
  values_.assign(support_.size(), std::numeric_limits<double>::quiet_NaN());
  is_converged_.assign(support_.size(), 0);
  const std::int64_t side_by_side = std::clamp<std::int64_t>(size(), 1, threads);
  for (std::int64_t w = 0; w < side_by_side; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->smo.open(tile_);
  }
}

template <class T>
LeaveOneOut<T>::~LeaveOneOut() = default;

template <class T>
bool LeaveOneOut<T>::advance(Worker& worker, Clock::time_point until) {
  const std::size_t t = support_[worker.at];
  if (!worker.is_busy) {
    worker.state = whole_;
    worker.smo.push_out(worker.state, t);
    worker.state.dual.alpha[t] = worker.state.dual.upper[t] = 0;
    worker.smo.begin(tol_);
    worker.is_busy = true;
  }
  BlockEnding ending = BlockEnding::running;
  while (ending == BlockEnding::running && worker.smo.steps() < max_steps_) {
    if (Clock::now() >= until) return false;
    ending = worker.smo.advance(worker.state, std::min(kSteps, max_steps_ - worker.smo.steps()));
  }
  const Dual& dual = worker.state.dual;
  values_[worker.at] = -worker.state.v[t] - dual.y[t] * dual.p[t] + offset_of(dual, worker.state.v);
  is_converged_[worker.at] = ending == BlockEnding::converged && std::isfinite(values_[worker.at]);
  worker.is_busy = false;
  done_.fetch_add(1);
  return true;
}

template <class T>
bool LeaveOneOut<T>::run(double seconds) {
  const auto until = in_seconds(seconds);
  return take_turns(
      workers_, next_, support_.size(), until, [](const Worker& worker) { return !worker.is_busy; },
      [](Worker& worker, std::size_t job) { worker.at = job; }, [&](Worker& worker) { return advance(worker, until); });
}

template class LeaveOneOut<float>;
template class LeaveOneOut<double>;

}  // namespace margrove
