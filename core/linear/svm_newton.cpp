#include "linear/svm_newton.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "linear/margin_lift.hpp"
#include "linear/newton_best.hpp"
#include "linear/row_hessian.hpp"
#include "linear/row_sample.hpp"
#include "linear/svm_hessian.hpp"
#include "linear/svm_rows.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostRanges = 16;             // of rows, each with sums of its own
constexpr std::int64_t kWorkOfARange = 1 << 16;      // multiplications that are worth a range
constexpr std::int64_t kBlock = 256;                 // rows judged together, so that the arithmetic is vectorised
constexpr double kFirstMultiplier = 0.5;             // kappa of signs: every row begins within its bounds
constexpr double kMultiplierGrowth = 3;              // of kappa, from one step of the multipliers to the next
constexpr double kInnerShare = 0.05;                 // of the gap that the multipliers' subproblem may leave
constexpr double kWarmMultiplier = 9;                // kappa where a start is given
constexpr double kEnoughDescent = 0.05;              // of the slope, where a line search may end
constexpr double kHardlyChanged = 0.5, kLeap = 10;   // of the slope; of a step that is too short
constexpr int kMostTrials = 12;                      // of a line search
constexpr double kShortStep = 0.1, kLongStep = 0.9;  // of a step, where it is damped more, or less
constexpr double kFirstDamping = 1e-7, kLeastDamping = 1e-11;
constexpr double kValueRounding = 1e-15;         // of a sum of products
constexpr double kRounding = 1e-13;              // of a value
constexpr std::int64_t kRowsPerColumn = 1000;    // from here on a sample of the rows goes ahead ...
constexpr std::int64_t kScoutShare = 8;          // ... one of so many, ...
constexpr std::int64_t kScoutNumbers = 1 << 21;  // ... of so many numbers at most, ...
constexpr double kScoutTolerance = 1e-3;         // ... solved to this gap ...
constexpr std::int64_t kScoutSteps = 100;        // ... or so far
constexpr double kNearMargin = 0.1, kScoutedMultiplier = 6;
constexpr int kPatience = 200;       // steps without a better gap before a solve has stalled, ...
constexpr int kPatienceAtRest = 20;  // ... and where only the multipliers move
constexpr double kWorn = 1e-8;       // of the largest |v|^2
constexpr double kStale = 1e-2;      // of the gap that is asked for
constexpr double kCgShare = 0.1;     // of the residual, where conjugate gradients end at the latest

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
        own_(rows, task),
        n_(rows.n),
        d_(rows.d),
        w_(static_cast<std::size_t>(rows.d)),
        v_(w_.size()),
        p_(static_cast<std::size_t>(hessian_size(rows.d, task))),
        f_(static_cast<std::size_t>(rows.n)),
        q_(f_.size()),
        beta_(f_.size()),
        is_free_(f_.size()),
        best_(w.empty() ? w_ : std::vector<double>(w.begin(), w.end()), task.has_intercept ? b : 0.0, f_.size(),
              kIsSquared, settings.tol) {
    const std::int64_t work = std::max<std::int64_t>(1, stored(rows));
    n_ranges_ = std::clamp<std::int64_t>(std::min(work / kWorkOfARange, work / (8 * d_ + 1)), 1, kMostRanges);
    n_ranges_ = std::min(n_ranges_, std::max<std::int64_t>(1, n_));
    sums_.resize(static_cast<std::size_t>(n_ranges_));
    partial_.resize(static_cast<std::size_t>(n_ranges_), std::vector<double>(w_.size()));
    w_ = best_.w();
    b_ = best_.b();
    if constexpr (!kIsSquared) {
      lambda_.resize(f_.size());
      if (!beta.empty()) take_pulls(beta);
      kappa_ = beta.empty() ? first_kappa() : kWarmMultiplier * first_kappa();
    } else {
      kappa_ = 2;
    }
    if (settings.hessian == NewtonHessian::columns) {
      gram_ = std::make_unique<GramHessian<Rows>>(rows, task, blas);
    } else {
      product_ = std::make_unique<ProductHessian<Rows>>(rows, task, n_ranges_);
    }
    whole_cost_ = std::accumulate(task.cost.begin(), task.cost.end(), 0.0);
    if (w.empty() && beta.empty() && settings.may_sample && n_ >= kRowsPerColumn * (d_ + 1)) send_scout();
  }

  void advance(Clock::time_point until, int threads, std::int64_t most_steps) override {
    threads_ = threads;
    while (ending_ == LinearEnding::going) {
      switch (phase_) {
        case Phase::scout:
          scout_->advance(until, threads, kScoutSteps);
          if (scout_->ending() == LinearEnding::going) return;
          std::copy(scout_->w().begin(), scout_->w().end(), w_.begin());
          b_ = scout_->b();
          scout_.reset();
          sample_.reset();
          enter(Phase::values);
          break;
        case Phase::values:
          if (!for_ranges(until, [&](std::int64_t r) { values_range(r, w_, b_, f_); })) return;
          is_moved_along_ = false;
          if (is_scouted_) guess_pulls();
          enter(Phase::pulls);
          break;
        case Phase::pulls:
          if (!for_ranges(until, [&](std::int64_t r) { pulls_range(r); })) return;
          gather_pulls();
          if (is_worn()) {
            begin_afresh();
            break;
          }
          if (judge(most_steps)) break;  // the next phase is set, or it has ended
          enter(Phase::direction);
          begin_direction();
          break;
        case Phase::direction:
          if (!go_on_with_direction(until)) return;
          if (std::isnan(slope_)) {
            ending_ = LinearEnding::nonfinite;
            break;
          }
          enter(Phase::along);
          break;
        case Phase::along:
          if (!for_ranges(until, [&](std::int64_t r) { values_range(r, p_, p_b(), q_); })) return;
          // Where w is at rest the pulls need not be: those of a table of zeros go to their bounds by themselves.
          if (step() || (since_best_ <= kPatienceAtRest && take_multipliers())) {
            enter(Phase::pulls);
          } else {
            change_matrix_or_end();
          }
          break;
      }
      if (Clock::now() >= until) return;
    }
  }

  LinearEnding ending() const override { return ending_; }
  LinearStanding standing() const override { return {best_.primal(), best_.dual(), steps_}; }
  std::span<const double> w() const override { return best_.w(); }
  double b() const override { return best_.b(); }

  // Rounding in f goes into the implied pulls and, times the rows, into their sum: where columns lie far from 0 nobody
  // who computes f anew will find this gap again, though that of the pulls themselves stays.
  //   |f - f'| ~ eps sum |w_j| rms_j,   |v - v'| <= |f - f'| 2 sum C_i |x_i|,   rms and |x| those of the free rows
  bool is_implied() const override {
    if (!kIsSquared || best_.dual() == 0 || best_.has_own_pulls()) return false;
    const std::vector<double> squares = is_by_rows_ ? by_rows_->squares()
                                        : gram_     ? gram_->squares()
                                                    : product_->squares();
    double mass = 0, size = 0, total = 0;
    for (std::size_t i = 0; i < is_free_.size(); ++i) mass += is_free_[i] ? task_.cost[i] : 0.0;
    if (mass == 0 || squares.empty()) return true;
    for (std::size_t j = 0; j < squares.size(); ++j) {
      const double weight = j < best_.w().size() ? best_.w()[j] : best_.b();
      size += std::abs(weight) * std::sqrt(squares[j] / mass);
      total += squares[j];
    }
    const double off = kValueRounding * size * 2 * task_.factor * std::sqrt(mass * total);
    return 0.5 * off * off <= 0.01 * settings_.tol * best_.primal();
  }

  std::vector<double> beta() const override { return best_.beta(); }
  std::int64_t n_free() const override { return free_among(loss_, task_, best_.beta()); }

  void rescale(double factor) override {
    if constexpr (!kIsSquared) climb(task_, factor, best_.beta());
    task_.factor *= factor;
    if constexpr (!kIsSquared) {
      take_pulls(best_.beta());
      kappa_ = kWarmMultiplier * first_kappa();
    }
    best_.forget();
    largest_primal_ = 0;
    first_step_ = steps_;
    since_best_ = 0;
    ending_ = LinearEnding::going;
    enter(Phase::pulls);  // f is that of w already
  }

 private:
  static constexpr bool kIsSquared = Loss::kIsSquared;

  enum class Phase { scout, values, pulls, direction, along };

  std::int64_t begin_of(std::int64_t range) const { return n_ * range / n_ranges_; }

  void enter(Phase phase) {
    phase_ = phase;
    next_ = 0;
  }

  template <class Body>
  bool for_ranges(Clock::time_point until, Body body) {
    return go_on(next_, n_ranges_, threads_, until, body);
  }

  double first_kappa() const {
    if constexpr (Loss::kIsOfSigns) return kFirstMultiplier;
    double sum = 0, mass = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sum += task_.cost[at] * std::abs(task_.target[at]);
      mass += task_.cost[at];
    }
    return sum > 0 ? mass / sum : 1;
  }

  // Few rows of many give a good w for little: with it most rows are settled when all are looked at.
  void send_scout() {
    const std::int64_t count = std::max<std::int64_t>(
        1, std::min(n_ / kScoutShare, kScoutNumbers / std::max<std::int64_t>(1, stored(rows_) / n_)));
    sample_ = std::make_unique<RowSample<Rows>>(rows_, task_, count);
    LinearTask task = task_;
    task.target = sample_->target;
    task.cost = sample_->cost;
    NewtonSettings settings = settings_;
    settings.tol = std::max(settings.tol, kScoutTolerance);
    settings.violation = 0;
    settings.may_sample = false;
    scout_ = std::make_unique<Newton>(sample_->rows, task, loss_, settings, blas_, std::span<const double>{}, 0.0,
                                      std::span<const double>{});
    is_scouted_ = true;
    phase_ = Phase::scout;
  }

  // The pulls that a good w suggests: those of rows near their margin lie between the bounds.
  void guess_pulls() {
    is_scouted_ = false;
    if constexpr (!kIsSquared && Loss::kIsOfSigns) {
      for (std::size_t i = 0; i < lambda_.size(); ++i) {
        const double z = task_.target[i], share = 0.5 + (1 - z * f_[i]) / (2 * kNearMargin);
        lambda_[i] = z * task_.factor * task_.cost[i] * std::clamp(share, 0.0, 1.0);
      }
      kappa_ = kScoutedMultiplier * first_kappa();
    }
  }

  // lambda <- the pulls, cut to their bounds.
  void take_pulls(std::span<const double> pulls) {
    for (std::size_t i = 0; i < lambda_.size(); ++i) {
      const double z = task_.target[i], C = task_.factor * task_.cost[i];
      lambda_[i] = std::clamp(pulls[i], loss_.low(z, C), loss_.high(z, C));
    }
  }

  BlockView view(std::int64_t from, std::int64_t count) {
    return {&task_.target[static_cast<std::size_t>(from)],
            &task_.cost[static_cast<std::size_t>(from)],
            &f_[static_cast<std::size_t>(from)],
            kIsSquared ? nullptr : &lambda_[static_cast<std::size_t>(from)],
            nullptr,
            &is_free_[static_cast<std::size_t>(from)],
            count,
            task_.factor,
            kappa_};
  }

  void values_range(std::int64_t range, const std::vector<double>& w, double b, std::vector<double>& out) {
    values_of(rows_, begin_of(range), begin_of(range + 1), w.data(), b, out.data());
  }

  // The pulls at f; what they have changed by is added to the range's part of v.
  void pulls_range(std::int64_t range) {
    RangeSums sums;
    std::vector<double>& part = partial_[static_cast<std::size_t>(range)];
    std::fill(part.begin(), part.end(), 0.0);
    double beta[kBlock];
    for (std::int64_t from = begin_of(range); from < begin_of(range + 1); from += kBlock) {
      const std::int64_t count = std::min(kBlock, begin_of(range + 1) - from);
      BlockView block = view(from, count);
      block.beta = beta;
      judge_block(loss_, block, sums);
      double* old = &beta_[static_cast<std::size_t>(from)];
      double step[kBlock];
      for (std::int64_t k = 0; k < count; ++k) {
        step[k] = beta[k] - old[k];
        old[k] = beta[k];
      }
      add_rows(rows_, from, step, count, part.data());
    }
    sums_[static_cast<std::size_t>(range)] = sums;
  }

  void gather_pulls() {
    RangeSums all;
    for (std::int64_t r = 0; r < n_ranges_; ++r) {
      const RangeSums& sums = sums_[static_cast<std::size_t>(r)];
      all.loss += sums.loss;
      all.brought += sums.brought;
      all.total += sums.total;
      all.n_free += sums.n_free;
      const std::vector<double>& part = partial_[static_cast<std::size_t>(r)];
      for (std::size_t j = 0; j < v_.size(); ++j) v_[j] += part[j];
    }
    total_ = all;
  }

  // v is the sum of all changes so far, and keeps the rounding of the largest: where it has become small it is summed
  // anew.
  bool is_worn() {
    const double size = product(v_, v_);
    largest_v_ = std::max(largest_v_, size);
    return size < kWorn * largest_v_;
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
    enter(Phase::values);
  }

  // Which matrix loses less to rounding cannot be told beforehand: that of the rows where columns are many, that of the
  // columns where rows are nearly alike. Where the one has come to an end the other goes on from the best so far.
  void change_matrix_or_end() {
    if (!gram_ || !by_rows_ || avoids_rows_) {
      ending_ = LinearEnding::stalled;
      return;
    }
    avoids_rows_ = true;
    w_ = best_.w();
    b_ = best_.b();
    if constexpr (!kIsSquared) {
      take_pulls(best_.beta());
      kappa_ = kWarmMultiplier * first_kappa();
    }
    since_best_ = 0;
    sum_afresh();
  }

  // f is moved along with w, and keeps the rounding of its largest values, which the largest primal value tells:
  // whether that could be seen in a gap as small as asked for.
  bool is_stale(double primal) const {
    const double rounding = kValueRounding * static_cast<double>(n_) * largest_primal_;
    return is_moved_along_ && rounding > kStale * settings_.tol * primal;
  }

  // The pulls that a step by rows leads to prove more than those that its weights imply, which magnify the rounding of
  // f by C: a bound like any other.
  void consider_pulls() {
    std::vector<double> pulls = beta_, v = w_;
    for (std::size_t j = 0; j < v.size(); ++j) v[j] += p_[j];
    const std::vector<std::uint32_t>& rows = by_rows_->free_rows();
    for (std::size_t a = 0; a < rows.size(); ++a) {
      const std::uint32_t i = rows[a];
      const double z = task_.target[i], C = task_.factor * task_.cost[i], wanted = by_rows_->pulls()[a];
      pulls[i] = std::clamp(wanted, loss_.low(z, C), loss_.high(z, C));
      if (pulls[i] != wanted) add_row(rows_, i, pulls[i] - wanted, v.data());
    }
    if (task_.has_intercept && task_.rho == 0) {
      const std::vector<double> given = pulls;
      take_excess(loss_, task_, given, [&](std::size_t i, double taken) {
        pulls[i] -= taken;
        add_row(rows_, static_cast<std::int64_t>(i), -taken, v.data());
      });
    }
    double dual = -0.5 * product(v, v), total = 0;
    for (std::size_t i = 0; i < pulls.size(); ++i) {
      const double C = task_.factor * task_.cost[i];
      if (C > 0) dual += loss_.brought(task_.target[i], pulls[i], C);
      total += pulls[i];
    }
    if (task_.has_intercept && task_.rho > 0) dual -= 0.5 * total * total / task_.rho;
    best_.take_pulls(dual, std::move(pulls));
  }

  // Where both values stand. True: no direction is wanted now.
  bool judge(std::int64_t most_steps) {
    const double u = task_.has_intercept ? total_.total : 0.0;
    const double primal = 0.5 * product(w_, w_) + 0.5 * task_.rho * b_ * b_ + total_.loss;
    double dual = total_.brought - 0.5 * product(v_, v_);
    double off = 0;  // what w - v and b - u/rho add to the gap
    for (std::size_t j = 0; j < w_.size(); ++j) off += 0.5 * (w_[j] - v_[j]) * (w_[j] - v_[j]);
    bool is_balanced = true;
    if (task_.has_intercept && task_.rho > 0) {
      dual -= 0.5 * u * u / task_.rho;
      off += 0.5 * task_.rho * (b_ - u / task_.rho) * (b_ - u / task_.rho);
    } else if (task_.has_intercept && std::abs(u) > 0) {
      const double before = dual;
      dual = balanced_dual(dual);
      off += std::abs(before - dual);
      is_balanced = false;
    }
    if (!std::isfinite(primal) || !std::isfinite(off)) {
      ending_ = LinearEnding::nonfinite;
      return true;
    }
    largest_primal_ = std::max(largest_primal_, primal);
    const bool is_better = primal < 0.99 * best_.primal();
    double best_primal = primal;
    const double longer = lengthened(rows_, task_, loss_, whole_cost_, w_, b_, f_, settings_.tol, best_primal);
    best_.take(best_primal, dual, w_, b_, longer, [&] {
      std::vector<double> pulls = beta_;
      if (!is_balanced) balance(pulls);
      return pulls;
    });
    if (best_.has_come_closer() || is_better) since_best_ = 0;
    const double gap = best_.gap();
    if (gap <= settings_.tol && is_stale(primal)) {
      begin_afresh();
      return true;
    }
    if (gap <= settings_.tol && (settings_.violation == 0 || is_kkt())) {
      ending_ = LinearEnding::converged;
      return true;
    }
    if (steps_ - first_step_ >= most_steps) {
      ending_ = LinearEnding::most_steps;
      return true;
    }
    if (++since_best_ > kPatience) {
      change_matrix_or_end();
      return true;
    }
    if constexpr (!kIsSquared) {
      if (off <= std::max(kInnerShare * (primal - dual), kRounding * primal) && is_moved_ && take_multipliers()) {
        enter(Phase::pulls);
        return true;
      }
    }
    return false;
  }

  // lambda <- beta, and kappa grows. False where that changes nothing.
  bool take_multipliers() {
    if (kIsSquared || lambda_ == beta_) return false;
    lambda_ = beta_;
    kappa_ *= kMultiplierGrowth;
    is_moved_ = false;
    return true;
  }

  // Whether the current pulls, balanced, violate the KKT conditions by no more than asked for, judged by the weights
  // they sum to. Then they are the answer, whatever was better before.
  bool is_kkt() {
    if (violation(beta_, nullptr) > settings_.violation) return false;
    std::vector<double> pulls = beta_;
    for (std::size_t j = 0; j < w_.size(); ++j) p_[j] = v_[j] - w_[j];
    if (task_.has_intercept && task_.rho == 0)
      take_excess(loss_, task_, beta_, [&](std::size_t i, double taken) {
        pulls[i] -= taken;
        add_row(rows_, static_cast<std::int64_t>(i), -taken, p_.data());
      });
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) { values_range(r, p_, 0.0, q_); });
    if (violation(pulls, q_.data()) > settings_.violation) return false;
    best_.beta() = std::move(pulls);
    return true;
  }

  // max of z - f over the pulls that can grow, minus its min over those that can fall.
  double violation(const std::vector<double>& pulls, const double* more) const {
    double highest = -std::numeric_limits<double>::infinity(), lowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < pulls.size(); ++i) {
      const double z = task_.target[i], C = task_.factor * task_.cost[i];
      const double residual = z - f_[i] - (more ? more[i] : 0.0);
      if (pulls[i] < loss_.high(z, C)) highest = std::max(highest, residual);
      if (pulls[i] > loss_.low(z, C)) lowest = std::min(lowest, residual);
    }
    return highest - lowest;
  }

  void balance(std::vector<double>& beta) const {
    const std::vector<double> given = beta;
    take_excess(loss_, task_, given, [&](std::size_t i, double taken) { beta[i] -= taken; });
  }

  // The dual value of the balanced pulls.
  double balanced_dual(double dual) const {
    std::vector<double> v = v_;
    dual += 0.5 * product(v_, v_);
    take_excess(loss_, task_, beta_, [&](std::size_t i, double taken) {
      const double z = task_.target[i], C = task_.factor * task_.cost[i];
      dual += loss_.brought(z, beta_[i] - taken, C) - loss_.brought(z, beta_[i], C);
      add_row(rows_, static_cast<std::int64_t>(i), -taken, v.data());
    });
    return dual - 0.5 * product(v, v);
  }

  // Rows that may bend where the step is made by a matrix of them. With no more of them than columns, that of the
  // columns is nearly singular: the steps it leads to are rounding.
  std::int64_t most_free_rows() const {
    switch (settings_.hessian) {
      case NewtonHessian::rows:
        return kMostFreeRows;
      case NewtonHessian::columns:
        return avoids_rows_ ? -1 : std::min(d_, kMostFreeRows);
      case NewtonHessian::none:
        break;
    }
    return -1;
  }

  // -(gradient) into p, and the Hessian begun.
  void begin_direction() {
    for (std::size_t j = 0; j < w_.size(); ++j) p_[j] = v_[j] - w_[j];
    if (task_.has_intercept) p_.back() = total_.total - task_.rho * b_;
    is_by_rows_ = total_.n_free <= most_free_rows();
    if (is_by_rows_) {
      if (!by_rows_) by_rows_ = std::make_unique<RowHessian<Rows>>(rows_, task_, blas_);
      by_rows_->begin(is_free_);
    } else if (gram_) {
      gram_->begin(is_free_, total_.n_free);
    } else {
      const double share = std::min(kCgShare, std::sqrt(std::max(1e-12, best_.gap())));
      product_->begin(is_free_, own_.values(scale(), damping_), scale(), p_, share);
    }
  }

  // p <- the step; false while there is more to do.
  bool go_on_with_direction(Clock::time_point until) {
    if (is_by_rows_) {
      if (!by_rows_->go_on(until, threads_)) return false;
      slope_ = by_rows_->solve(scale(), f_, beta_, is_free_, w_, b_, p_);
      if (!std::isnan(slope_)) consider_pulls();
    } else if (gram_) {
      if (!gram_->go_on(is_free_, until, threads_)) return false;
      slope_ = gram_->solve(own_.values(scale(), damping_), scale(), p_);
    } else {
      if (!product_->go_on(until, threads_)) return false;
      slope_ = product_->solve(p_);
    }
    return true;
  }

  double scale() const { return kappa_ * task_.factor; }
  double p_b() const { return task_.has_intercept ? p_.back() : 0.0; }

  // ---- the length of the step

  // The derivative along p at t, of (1/2 |w|^2 + 1/2 rho b^2 + what the pulls answer to); `bend` is its own.
  double slope_at(double t, double& bend) {
    std::vector<double> sums(static_cast<std::size_t>(n_ranges_)), bends(static_cast<std::size_t>(n_ranges_));
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) {
      double sum = 0, curve = 0;
      for (std::int64_t from = begin_of(r); from < begin_of(r + 1); from += kBlock) {
        const std::int64_t count = std::min(kBlock, begin_of(r + 1) - from);
        add_slope(loss_, view(from, count), &q_[static_cast<std::size_t>(from)], t, sum, curve);
      }
      sums[static_cast<std::size_t>(r)] = sum;
      bends[static_cast<std::size_t>(r)] = curve;
    });
    const double weights = std::inner_product(w_.begin(), w_.end(), p_.begin(), 0.0);
    const double pp = std::inner_product(p_.begin(), p_.begin() + d_, p_.begin(), 0.0) + task_.rho * p_b() * p_b();
    bend = pp + std::accumulate(bends.begin(), bends.end(), 0.0);
    return weights + task_.rho * b_ * p_b() + t * pp - std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  // Goes along p as far as the slope falls; false where it does not fall at all.
  bool step() {
    if (!(slope_ > 0)) return false;
    const double enough = kEnoughDescent * slope_;
    double low = 0, high = std::numeric_limits<double>::infinity(), t = 1, bend = 0;
    for (int trial = 0;; ++trial) {
      const double slope = slope_at(t, bend);
      if (std::isnan(slope)) return false;
      // A whole step is enough, unless the slope has hardly changed: then the curvature was not that of the rows.
      if (std::abs(slope) <= enough || (slope < 0 && t == 1 && slope > -kHardlyChanged * slope_)) break;
      (slope > 0 ? high : low) = t;
      if (trial >= kMostTrials && low > 0) {
        t = low;
        break;
      }
      if (trial >= 5 * kMostTrials) return false;
      const double guess = bend > 0 ? t - slope / bend : 0.0;
      if (high == std::numeric_limits<double>::infinity()) {
        t = guess > low ? std::min(guess, kLeap * t) : kLeap * t;
      } else {
        t = guess > low && guess < high ? guess : low == 0 ? 0.1 * high : 0.5 * (low + high);
      }
    }
    if (is_by_rows_) {
      damping_ = 0;  // its steps need none: they are exact where the other matrices are nearly singular
    } else if (t < kShortStep) {
      damping_ = std::max(10 * damping_, kFirstDamping);
    } else if (t > kLongStep) {
      damping_ = damping_ <= kLeastDamping ? 0.0 : damping_ / 10;
    }
    for (std::size_t j = 0; j < w_.size(); ++j) w_[j] += t * p_[j];
    b_ += t * p_b();
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) {
      const std::int64_t from = begin_of(r);
      move_along(&f_[static_cast<std::size_t>(from)], &q_[static_cast<std::size_t>(from)], t, begin_of(r + 1) - from);
    });
    ++steps_;
    is_moved_ = is_moved_along_ = true;
    return true;
  }

  const Rows rows_;
  LinearTask task_;
  const Loss loss_;
  const NewtonSettings settings_;
  const SymmetricBlas blas_;
  OwnDiagonal<Rows> own_;
  const std::int64_t n_, d_;
  std::int64_t n_ranges_ = 1;
  int threads_ = 1;

  std::vector<double> w_, v_, p_;  // (d): the weights, what the pulls sum to; p: the step, that of b behind it
  double b_ = 0;
  std::vector<double> f_, q_, beta_;  // (n): X w + b, X p + p_b, the pulls that v is of
  std::vector<double> lambda_;        // (n), but for squared losses
  std::vector<std::uint8_t> is_free_;
  NewtonBest best_;
  double kappa_ = 2, slope_ = 0, whole_cost_ = 0;
  double damping_ = 0;                         // of the Hessian, while its steps are too long
  bool is_moved_ = false;                      // since lambda was set
  double largest_v_ = 0, largest_primal_ = 0;  // |v|^2 and P since v and f were computed anew
  bool is_moved_along_ = false;                // f, since it was computed anew
  RangeSums total_;
  std::vector<RangeSums> sums_;               // of each range
  std::vector<std::vector<double>> partial_;  // of each range, (d)

  std::int64_t steps_ = 0, first_step_ = 0, since_best_ = 0;
  std::unique_ptr<GramHessian<Rows>> gram_;  // one of these two ...
  std::unique_ptr<ProductHessian<Rows>> product_;
  std::unique_ptr<RowHessian<Rows>> by_rows_;  // ... and this, once there are steps that few enough rows bend
  bool is_by_rows_ = false, avoids_rows_ = false;
  std::unique_ptr<RowSample<Rows>> sample_;
  std::unique_ptr<Newton> scout_;
  bool is_scouted_ = false;
  Phase phase_ = Phase::values;
  std::atomic<std::int64_t> next_{0};
  LinearEnding ending_ = LinearEnding::going;
};

}  // namespace

std::unique_ptr<LinearSolver> newton_solver(const AnyRows& rows, const LinearTask& task, NewtonSettings settings,
                                            const SymmetricBlas& blas, std::span<const double> w, double b,
                                            std::span<const double> beta) {
  return std::visit(
      [&](const auto& some) {
        return with_loss(task, [&](const auto& loss) -> std::unique_ptr<LinearSolver> {
          using Rows = std::decay_t<decltype(some)>;
          using Loss = std::decay_t<decltype(loss)>;
          return std::make_unique<Newton<Rows, Loss>>(some, task, loss, settings, blas, w, b, beta);
        });
      },
      rows);
}

}  // namespace margrove
