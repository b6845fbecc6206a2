#include "linear/svm_descent.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "index.hpp"
#include "linear/descent_best.hpp"
#include "linear/descent_pace.hpp"
#include "linear/order.hpp"
#include "linear/perceptron.hpp"

namespace margrove {
namespace {

using Clock = std::chrono::steady_clock;

// Multiplications between two looks at the clock. Chosen, not measured: a few milliseconds at most.
constexpr std::int64_t kWorkBetweenLooks = 1 << 20;

// A pass over the active rows under way.
struct Visit {
  const double *target, *cost, *norm;  // (n); norm: |x|^2 + spread
  double factor;
  double centre, spread;  // b = centre + spread * total
  double* w;
  double* beta;
  double total;              // of beta
  std::uint32_t* active;     // rows that are left out change places with the last one
  std::int64_t size, at;     // of it: how many are active, where the pass stands
  double limit;              // of what a row at a bound is away from moving: beyond it is left out
  double worst;              // violation of the pass
  double seeming_gap, gain;  // gap of the pass as it seemed row by row; of the dual value
};

template <class Rows, class Loss>
MARGROVE_INLINE void visit_body(const Rows& rows, const Loss& loss, Visit& visit, std::int64_t to) {
  while (visit.at < std::min(to, visit.size)) {
    if (visit.at + DescentPace::kAhead < visit.size) fetch(rows, visit.active[visit.at + DescentPace::kAhead]);
    const std::uint32_t i = visit.active[visit.at];
    const double z = visit.target[i], C = visit.factor * visit.cost[i], old = visit.beta[i];
    const double f = dot_row(rows, i, visit.w) + visit.centre + visit.spread * visit.total;
    const double extra = Loss::kIsSquared ? 1 / (2 * C) : 0.0;
    const double slope = f - z + extra * old;  // of minus the dual value, but for epsilon |beta|
    const double low = loss.low(z, C), high = loss.high(z, C);
    visit.seeming_gap += loss.value(z, f, C) + old * f - loss.brought(z, old, C);
    // Distance of the best value beyond the corner that beta is at; below 0 beta leaves the corner.
    double slack = -1;
    double violation;
    if constexpr (Loss::kIsOfSigns) {
      if (old <= low) {
        slack = slope;
        violation = std::max(0.0, -slope);
      } else if (old >= high) {
        slack = -slope;
        violation = std::max(0.0, slope);
      } else {
        violation = std::abs(slope);
      }
    } else {
      if (old == 0) {
        slack = loss.epsilon - std::abs(slope);
        violation = std::max(0.0, -slack);
      } else if (old <= low) {
        slack = slope - loss.epsilon;
        violation = std::max(0.0, -slack);
      } else if (old >= high) {
        slack = -slope - loss.epsilon;
        violation = std::max(0.0, -slack);
      } else {
        violation = std::abs(slope + (old > 0 ? loss.epsilon : -loss.epsilon));
      }
    }
    if (slack > visit.limit) {  // left out until the others have settled
      std::swap(visit.active[visit.at], visit.active[--visit.size]);
      continue;
    }
    ++visit.at;
    visit.worst = std::max(visit.worst, violation);
    if (violation <= DescentPace::kRounding * (std::abs(f) + std::abs(z))) continue;
    const double norm = visit.norm[i], bend = norm + extra;
    double best = norm * old - (f - z);
    if constexpr (!Loss::kIsOfSigns) best -= std::clamp(best, -loss.epsilon, loss.epsilon);
    // A row of zeros has no curvature of its own: its beta goes to the end that its slope points to.
    best = bend > 0 ? best / bend : (best > 0 ? high : (best < 0 ? low : old));
    best = std::min(std::max(best, low), high);
    const double step = best - old;
    if (step == 0 || !std::isfinite(step)) continue;
    visit.gain += loss.brought(z, best, C) - loss.brought(z, old, C) - step * (f + 0.5 * norm * step);
    visit.beta[i] = best;
    visit.total += step;
    add_row(rows, i, step, visit.w);
  }
}

#define MARGROVE_VISIT(Rows, Signs, Squared)                                                          \
  MARGROVE_CLONES void visit_rows(const Rows& rows, const LinearLoss<Signs, Squared>& loss, Visit& v, \
                                  std::int64_t to) {                                                  \
    visit_body(rows, loss, v, to);                                                                    \
  }
#define MARGROVE_VISITS(Rows)       \
  MARGROVE_VISIT(Rows, true, true)  \
  MARGROVE_VISIT(Rows, true, false) \
  MARGROVE_VISIT(Rows, false, true) \
  MARGROVE_VISIT(Rows, false, false)
MARGROVE_VISITS(DenseRows<float>)
MARGROVE_VISITS(DenseRows<double>)
MARGROVE_VISITS(CsrRows<float>)
MARGROVE_VISITS(CsrRows<double>)
#undef MARGROVE_VISITS
#undef MARGROVE_VISIT

template <class Rows, class Loss>
class Descent final : public LinearSolver {
 public:
  Descent(const Rows& rows, const LinearTask& task, const Loss& loss, DescentSettings settings,
          std::span<const double> beta)
      : rows_(rows),
        task_(task),
        loss_(loss),
        settings_(settings),
        random_(settings.seed),
        w_(rows.d),
        beta_(rows.n),
        norm_(beta_.size()),
        best_(beta_.size(), w_.size(), loss, settings.tol) {
    double mean = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
      norm_[i] = squared_norm(rows, i);
      mean += norm_[i] / rows.n;
    }
    is_free_intercept_ = task.has_intercept && task.rho == 0;
    spread_ = !task.has_intercept ? 0.0 : task.rho > 0 ? 1 / task.rho : (mean > 0 ? mean : 1.0);
    for (double& norm : norm_) norm += spread_;
    if (!beta.empty()) std::copy(beta.begin(), beta.end(), beta_.begin());
    begin();
  }

  void advance(Clock::time_point until, int, std::int64_t most_steps) override {
    const std::int64_t width = std::max<std::int64_t>(1, stored(rows_) / std::max<std::int64_t>(1, rows_.n));
    const std::int64_t stretch = std::max<std::int64_t>(1, kWorkBetweenLooks / (width + 16));
    while (ending_ == LinearEnding::going) {
      if (!is_under_way_) begin_pass();
      while (visit_.at < visit_.size) {
        visit_rows(rows_, loss_, visit_, std::min(visit_.size, visit_.at + stretch));
        if (Clock::now() >= until) break;
      }
      if (visit_.at < visit_.size) return;
      end_pass(most_steps);
      if (Clock::now() >= until) return;
    }
  }

  LinearEnding ending() const override { return ending_; }
  LinearStanding standing() const override { return {best_.primal(), best_.dual(), passes()}; }
  std::span<const double> w() const override { return best_.w(); }
  double b() const override { return best_.b(); }
  bool is_implied() const override { return false; }
  std::vector<double> beta() const override { return best_.beta(); }
  std::int64_t n_free() const override { return free_among(loss_, task_, best_.beta()); }

  void rescale(double factor) override {
    if constexpr (!Loss::kIsSquared) move_with_bounds(task_, factor, beta_);
    task_.factor *= factor;
    begin();
  }

 private:
  // As many as would have visited every row: those that leave rows out count for less.
  std::int64_t passes() const {
    const auto rows = std::max<std::int64_t>(1, length(active_));
    return (visits_ + rows - 1) / rows;
  }

  // Computes w from beta, and makes every row active.
  void begin() {
    std::fill(w_.begin(), w_.end(), 0.0);
    total_ = 0;
    active_.clear();
    for (std::int64_t i = 0; i < rows_.n; ++i) {
      const std::size_t at = i;
      const double z = task_.target[at], C = task_.factor * task_.cost[at];
      beta_[at] = C > 0 ? std::clamp(beta_[at], loss_.low(z, C), loss_.high(z, C)) : 0.0;
      if (C > 0) active_.push_back(i);
      if (beta_[at] == 0) continue;
      add_row(rows_, i, beta_[at], w_.data());
      total_ += beta_[at];
    }
    best_.forget();
    limit_ = std::numeric_limits<double>::infinity();
    wanted_ = std::numeric_limits<double>::infinity();
    n_active_ = active_.size();
    unchecked_ = since_best_ = 0;
    first_pass_ = passes();
    is_under_way_ = false;
    ending_ = LinearEnding::going;
    if (total_ == 0 && std::all_of(beta_.begin(), beta_.end(), [](double value) { return value == 0; })) {
      best_.take_nothing(task_);
      dual_now_ = centre_ = 0;
    } else {
      check();
    }
  }

  void begin_pass() {
    for (std::size_t left = n_active_; left > 1; --left) std::swap(active_[left - 1], active_[random_.below(left)]);
    visit_ = {.target = task_.target.data(),
              .cost = task_.cost.data(),
              .norm = norm_.data(),
              .factor = task_.factor,
              .centre = centre_,
              .spread = spread_,
              .w = w_.data(),
              .beta = beta_.data(),
              .total = total_,
              .active = active_.data(),
              .size = static_cast<std::int64_t>(n_active_),
              .at = 0,
              .limit = limit_,
              .worst = 0,
              .seeming_gap = 0,
              .gain = 0};
    is_under_way_ = true;
  }

  void end_pass(std::int64_t most_steps) {
    is_under_way_ = false;
    visits_ += n_active_;
    ++unchecked_;
    total_ = visit_.total;
    n_active_ = visit_.size;
    limit_ = visit_.worst > 0 ? visit_.worst : std::numeric_limits<double>::infinity();
    if (is_free_intercept_) centre_ += spread_ * total_;
    dual_now_ += visit_.gain;
    const double seeming = visit_.seeming_gap;
    const bool is_over = passes() - first_pass_ >= most_steps;
    // The gap seen row by row ignores the sum of beta: a free intercept is checked every fifth pass.
    const bool is_promising =
        is_free_intercept_ ? unchecked_ >= 5 : seems_to_have_ended(seeming, dual_now_, wanted_, settings_.tol);
    if (is_over || n_active_ == 0 || unchecked_ >= DescentPace::kMostPassesUnchecked || is_promising) {
      check();
      wanted_ = seeming / 2;
      if (ending_ == LinearEnding::going) {
        n_active_ = active_.size();  // all rows again
        limit_ = std::numeric_limits<double>::infinity();
      }
    }
    if (ending_ != LinearEnding::going) return;
    if (is_over) {
      ending_ = LinearEnding::most_steps;
    } else if (++since_best_ > DescentPace::kPatience) {
      ending_ = LinearEnding::stalled;
    }
  }

  // Both values, from a pass over all rows.
  void check() {
    unchecked_ = 0;
    const double b = task_.has_intercept ? centre_ + spread_ * total_ : 0.0;
    double brought = 0, squares = 0;
    for (const double weight : w_) squares += weight * weight;
    f_.resize(beta_.size());
    for (std::int64_t i = 0; i < rows_.n; ++i) {
      const std::size_t at = i;
      const double z = task_.target[at], C = task_.factor * task_.cost[at];
      f_[at] = dot_row(rows_, i, w_.data()) + b;
      if (C > 0) brought += loss_.brought(z, beta_[at], C);
    }
    double dual = brought - 0.5 * squares;
    std::vector<double> balanced;
    if (is_free_intercept_ && total_ != 0) {
      dual = balance(dual + 0.5 * squares, balanced);
    } else if (task_.has_intercept && !is_free_intercept_) {
      dual -= 0.5 * spread_ * total_ * total_;
    }
    dual_now_ = dual;
    if (!best_.take(task_, w_, b, f_, dual, balanced.empty() ? beta_ : balanced)) {
      ending_ = LinearEnding::nonfinite;
      return;
    }
    best_.lengthen(rows_, task_);
    if (best_.has_come_closer()) since_best_ = 0;
    if (best_.gap() <= settings_.tol) ending_ = LinearEnding::converged;
  }

  // The dual value of beta with its heavier side reduced to a sum of 0; `brought` is that of all of beta but for
  // |v|^2/2.
  double balance(double brought, std::vector<double>& balanced) const {
    balanced = beta_;
    std::vector<double> v(w_.begin(), w_.end());
    take_excess(loss_, task_, beta_, [&](std::size_t i, double taken) {
      const double z = task_.target[i], C = task_.factor * task_.cost[i];
      brought += loss_.brought(z, beta_[i] - taken, C) - loss_.brought(z, beta_[i], C);
      add_row(rows_, i, -taken, v.data());
      balanced[i] -= taken;
    });
    double squares = 0;
    for (const double part : v) squares += part * part;
    return brought - 0.5 * squares;
  }

  const Rows rows_;
  LinearTask task_;
  const Loss loss_;
  const DescentSettings settings_;
  SplitMix64 random_;
  AlignedVector w_;                    // (d): sum beta_i x_i
  std::vector<double> beta_;           // (n)
  std::vector<double> norm_;           // (n): |x_i|^2 + spread
  std::vector<std::uint32_t> active_;  // rows with a cost, the active ones in front
  std::size_t n_active_ = 0;
  bool is_free_intercept_ = false, is_under_way_ = false;
  double centre_ = 0, spread_ = 0, total_ = 0;  // b = centre + spread * total, total = sum beta_i
  double limit_ = 0, wanted_ = 0, dual_now_ = 0;
  Visit visit_{};
  std::int64_t visits_ = 0, first_pass_ = 0, unchecked_ = 0, since_best_ = 0;
  DescentBest<Loss> best_;
  std::vector<double> f_;  // of the weights now
  LinearEnding ending_ = LinearEnding::going;
};

}  // namespace

std::unique_ptr<LinearSolver> descent_solver(const AnyRows& rows, const LinearTask& task, DescentSettings settings,
                                             std::span<const double> beta) {
  return std::visit(
      [&](const auto& some) {
        return with_loss(task, [&](const auto& loss) -> std::unique_ptr<LinearSolver> {
          using Rows = std::decay_t<decltype(some)>;
          using Loss = std::decay_t<decltype(loss)>;
          return std::make_unique<Descent<Rows, Loss>>(some, task, loss, settings, beta);
        });
      },
      rows);
}

}  // namespace margrove
