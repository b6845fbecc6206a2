// The method that svm_newton.hpp describes, for rows of one type: svm_newton_*.cpp compile it for one number type each.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "linear/line_search.hpp"
#include "linear/margin_lift.hpp"
#include "linear/multipliers.hpp"
#include "linear/newton_best.hpp"
#include "linear/row_sample.hpp"
#include "linear/svm_newton.hpp"
#include "linear/svm_rows.hpp"
#include "parallel.hpp"
#include "resumable.hpp"

namespace margrove {

using Clock = std::chrono::steady_clock;

// "Measured" is, here and in the files that are part of the method: the steps of 144 fits of made tables (60 to 25,000
// rows, 5 to 1,500 columns, dense and sparse, each loss, C from 0.01 to 10,000), 1,803 with the constants as they are.

// Ranges of rows, each with sums of its own. One is worth this many multiplications (chosen, not measured), and eight
// times the columns, so that clearing and adding its sums is little beside them.
constexpr std::int64_t kMostRanges = 16, kWorkOfARange = 1 << 16, kColumnsOfARange = 8;
constexpr std::int64_t kBlock = 256;  // rows judged together: their arrays stay in the first-level cache

// Share of the gap that a round of the multipliers may leave to the step of w. Measured: 1,839 steps with 0.01, 1,757
// with 0.2: it matters little.
constexpr double kInnerShare = 0.05;
constexpr double kRounding = 1e-13;  // of a primal value: no round can be solved further

// Where rows are so many a sample of them is solved first. Measured: 1,836 steps without it. Share and gap of the
// sample matter little: 1,797 to 1,805 steps with half and twice the share, with ten times and a tenth of the gap.
constexpr std::int64_t kRowsPerColumn = 1000;     // rows to each column, from here on
constexpr std::int64_t kSampleShare = 8;          // one row of so many ...
constexpr std::int64_t kSampleNumbers = 1 << 21;  // ... but no more numbers than this: 16 MiB of copies ...
constexpr double kSampleTolerance = 1e-3;         // ... to this gap ...
constexpr std::int64_t kSampleSteps = 100;        // ... or so far: it is a start, and may be a bad one

// Steps without a better gap after which the solve has stalled. Measured: 50 to 1,000 are the same.
constexpr int kPatience = 200;
// The same while w is at rest and only beta moves. Measured: with 0 one fit more does not converge; with 200 as many
// do, in 2,066 steps.
constexpr int kPatienceAtRest = 20;
constexpr double kBetter =
    0.99;  // of the primal value: progress, though the gap is no smaller. 0.9 to 0.999 are the same

// Rounding. Double has eps = 2e-16.
constexpr double kValueRounding = 1e-15;  // of a sum of products: a few eps
constexpr double kWorn = 1e-8;  // of the largest |v|^2: v has lost half of its digits. Measured: 1,981 steps with 1e-6
constexpr double kUnseen = 1e-2;  // of the gap asked for: rounding below it is not seen. Measured: 2,502 steps with 0

template <class Rows, class Loss>
class Newton final : public LinearSolver {
 public:
  Newton(const Rows& rows, const LinearTask& task, const Loss& loss, NewtonSettings settings, const SymmetricBlas& blas,
         std::span<const double> w, double b, std::span<const double> beta)
      : rows_(rows),
        task_(task),
        loss_(loss),
        settings_(settings),
        blas_(blas),
        n_(rows.n),
        d_(rows.d),
        n_ranges_(ranges_for(rows)),
        whole_cost_(std::accumulate(task.cost.begin(), task.cost.end(), 0.0)),
        w_(w.empty() ? std::vector<double>(d_) : std::vector<double>(w.begin(), w.end())),
        b_(task.has_intercept ? b : 0.0),
        v_(d_),
        p_(hessian_size(d_, task)),
        f_(n_),
        q_(n_),
        beta_(n_),
        is_free_(n_),
        sums_(n_ranges_),
        partial_(n_ranges_, std::vector<double>(d_)),
        multipliers_(task_, loss, beta),
        direction_(rows, task, settings.hessian, blas, n_ranges_),
        best_(w_, b_, n_, kIsSquared, settings.tol),
        work_(solve(w.empty() && beta.empty() && settings.may_sample && n_ >= kRowsPerColumn * (d_ + 1))) {}

  void advance(Clock::time_point until, int threads, std::int64_t most_steps) override {
    clock_.set(until);
    threads_ = threads;
    most_steps_ = most_steps;
    if (ending_ == LinearEnding::going) work_.resume();
  }

  LinearEnding ending() const override { return ending_; }
  LinearStanding standing() const override { return {best_.primal(), best_.dual(), steps_}; }
  std::span<const double> w() const override { return best_.w(); }
  double b() const override { return best_.b(); }

  // Rounding in f goes into the implied beta and, times the rows, into their sum: where columns lie far from 0 nobody
  // who computes f anew will find this gap again, though that of the kept beta stays.
  //   |f - f'| ~ eps sum |w_j| rms_j,   |v - v'| <= |f - f'| 2 sum C_i |x_i|,   rms and |x| those of the free rows
  bool is_implied() const override {
    if (!kIsSquared || best_.dual() == 0 || best_.has_own_beta()) return false;
    const std::vector<double> squares = direction_.squares();
    double mass = 0, size = 0, total = 0;
    for (std::int64_t i = 0; i < n_; ++i) mass += is_free_[i] ? task_.cost[i] : 0.0;
    if (mass == 0 || squares.empty()) return true;
    for (std::int64_t j = 0; j < length(squares); ++j) {
      const double weight = j < d_ ? best_.w()[j] : best_.b();
      size += std::abs(weight) * std::sqrt(squares[j] / mass);
      total += squares[j];
    }
    const double off = kValueRounding * size * 2 * task_.factor * std::sqrt(mass * total);
    return 0.5 * off * off <= kUnseen * settings_.tol * best_.primal();
  }

  std::vector<double> beta() const override { return best_.beta(); }
  std::int64_t n_free() const override { return free_among(loss_, task_, best_.beta()); }

  void rescale(double factor) override {
    if constexpr (!kIsSquared) move_with_bounds(task_, factor, best_.beta());
    task_.factor *= factor;
    multipliers_.begin_at(best_.beta());
    best_.forget();
    largest_primal_ = 0;
    first_step_ = steps_;
    since_best_ = 0;
    ending_ = LinearEnding::going;
    work_ = solve(false);
  }

 private:
  static constexpr bool kIsSquared = Loss::kIsSquared;

  // ---- the iteration

  // The numbers are those of the steps in the header. `begins_by_sample`: w is first that of some of the rows.
  Resumable solve(bool begins_by_sample) {
    if (begins_by_sample) {
      // Few rows of many give a good w for little: with it most rows are settled when all are looked at.
      const RowSample<Rows> sample(rows_, task_, sample_size());
      Newton ahead(sample.rows, task_of(sample), loss_, settings_of_sample(), blas_, {}, 0.0, {});
      while (ahead.advance(clock_.until(), threads_, kSampleSteps), ahead.ending() == LinearEnding::going)
        co_await std::suspend_always{};
      w_ = ahead.best_.w();
      b_ = ahead.best_.b();
    }
    bool is_first = begins_by_sample;
    while (ending_ == LinearEnding::going) {
      co_await clock_.pause();
      if (!is_f_known_) {
        for (next_ = 0; !over_ranges([&](std::int64_t r) { values_range(r, w_, b_, f_); });)
          co_await std::suspend_always{};
        is_f_known_ = true;
        is_moved_along_ = false;
        if (std::exchange(is_first, false)) multipliers_.guess_from(f_);
        co_await clock_.pause();
      }
      // 1 and 2
      for (next_ = 0; !over_ranges([&](std::int64_t r) { beta_range(r); });) co_await std::suspend_always{};
      gather_beta();
      if (is_worn()) {
        begin_afresh();
        continue;
      }
      if (!wants_step()) continue;
      // 3
      begin_direction();
      co_await clock_.pause();
      while (!direction_.go_on(is_free_, clock_.until(), threads_)) co_await std::suspend_always{};
      const double descent = direction_.solve(f_, beta_, is_free_, w_, b_, p_);
      if (std::isnan(descent)) {
        ending_ = LinearEnding::nonfinite;
        continue;
      }
      if (direction_.by_rows()) consider_beta_of(*direction_.by_rows());
      co_await clock_.pause();
      // 4
      for (next_ = 0; !over_ranges([&](std::int64_t r) { values_range(r, p_, p_b(), q_); });)
        co_await std::suspend_always{};
      const double t = step_length(descent, [&](double at, double& bend) { return slope_at(at, bend); });
      // Where w is at rest beta need not be: that of a table of zeros goes to its bounds by itself.
      if (t > 0)
        move(t);
      else if (since_best_ > kPatienceAtRest || !next_round())
        change_matrix_or_end();
    }
  }

  std::int64_t sample_size() const {
    return std::max<std::int64_t>(
        1, std::min(n_ / kSampleShare, kSampleNumbers / std::max<std::int64_t>(1, stored(rows_) / n_)));
  }
  LinearTask task_of(const RowSample<Rows>& sample) const {
    LinearTask task = task_;
    task.target = sample.target;
    task.cost = sample.cost;
    return task;
  }
  NewtonSettings settings_of_sample() const {
    return {std::max(settings_.tol, kSampleTolerance), settings_.hessian, false, 0};
  }

  // ---- f, beta and v

  static std::int64_t ranges_for(const Rows& rows) {
    const std::int64_t work = std::max<std::int64_t>(1, stored(rows));
    const std::int64_t worth = std::min(work / kWorkOfARange, work / (kColumnsOfARange * rows.d + 1));
    return std::min(std::clamp<std::int64_t>(worth, 1, kMostRanges), std::max<std::int64_t>(1, rows.n));
  }

  std::int64_t begin_of(std::int64_t range) const { return n_ * range / n_ranges_; }

  // body(range) for those from `next_` on; false when the time is over before the last.
  template <class Body>
  bool over_ranges(Body body) {
    return go_on(next_, n_ranges_, threads_, clock_.until(), body);
  }

  BlockView view(std::int64_t from, std::int64_t count) {
    return {
        &task_.target[from], &task_.cost[from],   &f_[from], multipliers_.lambda(from), nullptr, &is_free_[from], count,
        task_.factor,        multipliers_.kappa()};
  }

  void values_range(std::int64_t range, const std::vector<double>& w, double b, std::vector<double>& out) {
    values_of(rows_, begin_of(range), begin_of(range + 1), w.data(), b, out.data());
  }

  // beta at f; what it has changed by is added to the range's part of v.
  void beta_range(std::int64_t range) {
    RangeSums sums;
    std::vector<double>& part = partial_[range];
    std::fill(part.begin(), part.end(), 0.0);
    double beta[kBlock], step[kBlock];
    for (std::int64_t from = begin_of(range); from < begin_of(range + 1); from += kBlock) {
      const std::int64_t count = std::min(kBlock, begin_of(range + 1) - from);
      BlockView block = view(from, count);
      block.beta = beta;
      judge_block(loss_, block, sums);
      double* old = &beta_[from];
      for (std::int64_t k = 0; k < count; ++k) {
        step[k] = beta[k] - old[k];
        old[k] = beta[k];
      }
      add_rows(rows_, from, step, count, part.data());
    }
    sums_[range] = sums;
  }

  void gather_beta() {
    total_ = {};
    for (const RangeSums& sums : sums_) {
      total_.loss += sums.loss;
      total_.brought += sums.brought;
      total_.total += sums.total;
      total_.n_free += sums.n_free;
    }
    for (const std::vector<double>& part : partial_)
      for (std::int64_t j = 0; j < d_; ++j) v_[j] += part[j];
  }

  // v is the sum of all changes so far, and keeps the rounding of the largest: where it has become small it is summed
  // anew.
  bool is_worn() {
    const double size = product(v_, v_);
    largest_v_ = std::max(largest_v_, size);
    return size < kWorn * largest_v_;
  }

  // f is moved along with w, and keeps the rounding of its largest values, which the largest primal value tells:
  // whether that could be seen in a gap as small as asked for.
  bool is_stale(double primal) const {
    const double rounding = kValueRounding * n_ * largest_primal_;
    return is_moved_along_ && rounding > kUnseen * settings_.tol * primal;
  }

  // f, v and what was best so far, from w alone.
  void begin_afresh() {
    best_.forget();
    sum_afresh();
  }

  // f and v, from w alone.
  void sum_afresh() {
    std::fill(v_.begin(), v_.end(), 0.0);
    std::fill(beta_.begin(), beta_.end(), 0.0);
    largest_v_ = largest_primal_ = 0;
    is_f_known_ = false;
  }

  // ---- where it stands

  struct Values {
    double primal = 0, dual = 0;  // dual: that of beta made feasible
    double off = 0;               // what w - v and b - u/rho add to the gap
    bool is_balanced = true;      // whether beta is feasible as it is
  };

  Values values() const {
    const double u = task_.has_intercept ? total_.total : 0.0;
    Values now;
    now.primal = 0.5 * product(w_, w_) + 0.5 * task_.rho * b_ * b_ + total_.loss;
    now.dual = total_.brought - 0.5 * product(v_, v_);
    for (std::int64_t j = 0; j < d_; ++j) now.off += 0.5 * (w_[j] - v_[j]) * (w_[j] - v_[j]);
    if (task_.has_intercept && task_.rho > 0) {
      now.dual -= 0.5 * u * u / task_.rho;
      now.off += 0.5 * task_.rho * (b_ - u / task_.rho) * (b_ - u / task_.rho);
    } else if (task_.has_intercept && std::abs(u) > 0) {
      const double before = now.dual;
      now.dual = balanced_dual(before);
      now.off += std::abs(before - now.dual);
      now.is_balanced = false;
    }
    return now;
  }

  // Whether w is still zero, and is not the best. With tiny costs such a w has a small gap, but predicts one class.
  bool is_unmoved() const {
    const auto is_zero = [](const std::vector<double>& of) {
      return std::all_of(of.begin(), of.end(), [](double x) { return x == 0; });
    };
    return is_zero(w_) && !is_zero(v_);
  }

  // Keeps the best, ends where that is good enough, or begins another round. True: a step of w is wanted.
  bool wants_step() {
    const Values now = values();
    if (!std::isfinite(now.primal) || !std::isfinite(now.off)) {
      ending_ = LinearEnding::nonfinite;
      return false;
    }
    keep_best(now);
    if (best_.gap() <= settings_.tol && is_stale(now.primal)) {
      begin_afresh();
      return false;
    }
    if (best_.gap() <= settings_.tol && !is_unmoved() && (settings_.violation == 0 || is_kkt())) {
      ending_ = LinearEnding::converged;
      return false;
    }
    if (steps_ - first_step_ >= most_steps_) {
      ending_ = LinearEnding::most_steps;
      return false;
    }
    if (++since_best_ > kPatience) {
      change_matrix_or_end();
      return false;
    }
    const bool is_solved = now.off <= std::max(kInnerShare * (now.primal - now.dual), kRounding * now.primal);
    return !(is_solved && is_moved_ && next_round());
  }

  void keep_best(const Values& now) {
    largest_primal_ = std::max(largest_primal_, now.primal);
    const bool is_better = now.primal < kBetter * best_.primal();
    double primal = now.primal;
    const double longer = lengthened(rows_, task_, loss_, whole_cost_, w_, b_, f_, settings_.tol, primal);
    best_.take(primal, now.dual, w_, b_, longer, [&] {
      std::vector<double> beta = beta_;
      if (!now.is_balanced) take_excess(loss_, task_, beta_, [&](std::size_t i, double taken) { beta[i] -= taken; });
      return beta;
    });
    if (best_.has_come_closer() || is_better) since_best_ = 0;
  }

  // The next round of the multipliers; false where there is none.
  bool next_round() {
    if (!multipliers_.next(beta_)) return false;
    is_moved_ = false;
    return true;
  }

  // Where the one matrix has come to an end the other goes on from the best so far.
  void change_matrix_or_end() {
    if (!direction_.leave_rows()) {
      ending_ = LinearEnding::stalled;
      return;
    }
    w_ = best_.w();
    b_ = best_.b();
    multipliers_.begin_at(best_.beta());
    since_best_ = 0;
    sum_afresh();
  }

  // Whether beta, balanced, violates the KKT conditions by no more than asked for, judged by the weights that it sums
  // to. Then it is the solution, whatever was better before.
  bool is_kkt() {
    if (violation(beta_, nullptr) > settings_.violation) return false;
    std::vector<double> beta = beta_;
    for (std::int64_t j = 0; j < d_; ++j) p_[j] = v_[j] - w_[j];
    if (task_.has_intercept && task_.rho == 0) balance(beta, p_);
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) { values_range(r, p_, 0.0, q_); });
    if (violation(beta, q_.data()) > settings_.violation) return false;
    best_.beta() = std::move(beta);
    return true;
  }

  // max of z - f over the beta that can grow, minus its min over those that can fall; f moved by `more`.
  double violation(const std::vector<double>& beta, const double* more) const {
    double highest = -std::numeric_limits<double>::infinity(), lowest = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n_; ++i) {
      const double z = task_.target[i], C = task_.factor * task_.cost[i];
      const double residual = z - f_[i] - (more ? more[i] : 0.0);
      if (beta[i] < loss_.high(z, C)) highest = std::max(highest, residual);
      if (beta[i] > loss_.low(z, C)) lowest = std::min(lowest, residual);
    }
    return highest - lowest;
  }

  // Makes the sum of beta 0; `v` follows.
  void balance(std::vector<double>& beta, std::vector<double>& v) const {
    const std::vector<double> given = beta;
    take_excess(loss_, task_, given, [&](std::size_t i, double taken) {
      beta[i] -= taken;
      add_row(rows_, i, -taken, v.data());
    });
  }

  // The dual value of beta with a sum of 0, from that of beta.
  double balanced_dual(double dual) const {
    std::vector<double> v = v_;
    dual += 0.5 * product(v_, v_);
    take_excess(loss_, task_, beta_, [&](std::size_t i, double taken) {
      const double z = task_.target[i], C = task_.factor * task_.cost[i];
      dual += loss_.brought(z, beta_[i] - taken, C) - loss_.brought(z, beta_[i], C);
      add_row(rows_, i, -taken, v.data());
    });
    return dual - 0.5 * product(v, v);
  }

  // The beta that a step by rows leads to proves more than the one that its weights imply, which magnifies the rounding
  // of f by C: a bound like any other.
  void consider_beta_of(const RowHessian<Rows>& step) {
    std::vector<double> beta = beta_, v = w_;
    for (std::int64_t j = 0; j < d_; ++j) v[j] += p_[j];
    const std::vector<std::uint32_t>& rows = step.free_rows();
    for (std::size_t a = 0; a < rows.size(); ++a) {
      const std::uint32_t i = rows[a];
      const double z = task_.target[i], C = task_.factor * task_.cost[i], wanted = step.beta()[a];
      beta[i] = std::clamp(wanted, loss_.low(z, C), loss_.high(z, C));
      if (beta[i] != wanted) add_row(rows_, i, beta[i] - wanted, v.data());
    }
    if (task_.has_intercept && task_.rho == 0) balance(beta, v);
    double dual = -0.5 * product(v, v), total = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const double C = task_.factor * task_.cost[i];
      if (C > 0) dual += loss_.brought(task_.target[i], beta[i], C);
      total += beta[i];
    }
    if (task_.has_intercept && task_.rho > 0) dual -= 0.5 * total * total / task_.rho;
    best_.take_beta(dual, std::move(beta));
  }

  // ---- the step

  double p_b() const { return task_.has_intercept ? p_.back() : 0.0; }

  void begin_direction() {
    for (std::int64_t j = 0; j < d_; ++j) p_[j] = v_[j] - w_[j];
    if (task_.has_intercept) p_.back() = total_.total - task_.rho * b_;
    direction_.begin(is_free_, total_.n_free, multipliers_.kappa() * task_.factor, best_.gap(), p_);
  }

  // The derivative along p at t, of (1/2 |w|^2 + 1/2 rho b^2 + what beta answers to); `bend` is its own.
  double slope_at(double t, double& bend) {
    std::vector<double> sums(n_ranges_), bends(n_ranges_);
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) {
      double sum = 0, curve = 0;
      for (std::int64_t from = begin_of(r); from < begin_of(r + 1); from += kBlock) {
        const std::int64_t count = std::min(kBlock, begin_of(r + 1) - from);
        add_slope(loss_, view(from, count), &q_[from], t, sum, curve);
      }
      sums[r] = sum;
      bends[r] = curve;
    });
    const double weights = std::inner_product(w_.begin(), w_.end(), p_.begin(), 0.0);
    const double pp = std::inner_product(p_.begin(), p_.begin() + d_, p_.begin(), 0.0) + task_.rho * p_b() * p_b();
    bend = pp + std::accumulate(bends.begin(), bends.end(), 0.0);
    return weights + task_.rho * b_ * p_b() + t * pp - std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  // (w, b) <- (w, b) + t p, and f with them.
  void move(double t) {
    direction_.adapt_damping(t);
    for (std::int64_t j = 0; j < d_; ++j) w_[j] += t * p_[j];
    b_ += t * p_b();
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) {
      const std::int64_t from = begin_of(r);
      move_along(&f_[from], &q_[from], t, begin_of(r + 1) - from);
    });
    ++steps_;
    is_moved_ = is_moved_along_ = true;
  }

  const Rows rows_;
  LinearTask task_;
  const Loss loss_;
  const NewtonSettings settings_;
  const SymmetricBlas blas_;
  const std::int64_t n_, d_, n_ranges_;
  const double whole_cost_;

  std::vector<double> w_;
  double b_;
  std::vector<double> v_, p_;         // (d): what beta sums to; the step, that of b behind it
  std::vector<double> f_, q_, beta_;  // (n): X w + b, X p + p_b, the dual variables that v is of
  std::vector<std::uint8_t> is_free_;
  RangeSums total_;
  std::vector<RangeSums> sums_;               // of each range
  std::vector<std::vector<double>> partial_;  // of each range, (d)
  Multipliers<Loss> multipliers_;
  NewtonDirection<Rows> direction_;
  NewtonBest best_;

  bool is_f_known_ = false;
  bool is_moved_ = false;                      // w, since lambda was set
  bool is_moved_along_ = false;                // f, since it was computed anew
  double largest_v_ = 0, largest_primal_ = 0;  // |v|^2 and P since v and f were computed anew
  std::int64_t steps_ = 0, first_step_ = 0, most_steps_ = 0, since_best_ = 0;
  LinearEnding ending_ = LinearEnding::going;

  SliceClock clock_;
  int threads_ = 1;
  std::atomic<std::int64_t> next_{0};
  Resumable work_;
};

template <class Rows>
std::unique_ptr<LinearSolver> newton_on(const Rows& rows, const LinearTask& task, NewtonSettings settings,
                                        const SymmetricBlas& blas, std::span<const double> w, double b,
                                        std::span<const double> beta) {
  return with_loss(task, [&](const auto& loss) -> std::unique_ptr<LinearSolver> {
    using Loss = std::decay_t<decltype(loss)>;
    return std::make_unique<Newton<Rows, Loss>>(rows, task, loss, settings, blas, w, b, beta);
  });
}

#define MARGROVE_NEWTON_ON(T)                                                                                         \
  template std::unique_ptr<LinearSolver> newton_on(const T&, const LinearTask&, NewtonSettings, const SymmetricBlas&, \
                                                   std::span<const double>, double, std::span<const double>);

}  // namespace margrove
