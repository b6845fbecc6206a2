#include "linear/svm_newton.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "linear/order.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostRanges = 16;             // of rows, each with sums of its own
constexpr std::int64_t kWorkOfARange = 1 << 16;      // multiplications that are worth a range
constexpr std::int64_t kBlock = 256;                 // rows judged together, so that the arithmetic is vectorised
constexpr std::int64_t kOuterRows = 128;             // rows whose outer products are added by one call
constexpr std::int64_t kGramParts = 4;               // parts of a list of rows that are added at the same time
constexpr std::int64_t kWorkOfAPart = 1 << 26;       // multiplications between two looks at the clock
constexpr double kFirstMultiplier = 0.5;             // kappa of signs: every row begins within its bounds
constexpr double kMultiplierGrowth = 3;              // of kappa, from one step of the multipliers to the next
constexpr double kInnerShare = 0.05;                 // of the gap that the multipliers' subproblem may leave
constexpr double kWarmMultiplier = 9;                // kappa where a start is given
constexpr double kEnoughDescent = 0.05;              // of the slope, where a line search may end
constexpr int kMostTrials = 12;                      // of a line search
constexpr double kShortStep = 0.1, kLongStep = 0.9;  // of a step, where it is damped more, or less
constexpr double kFirstDamping = 1e-7, kLeastDamping = 1e-11;
constexpr double kRounding = 1e-13;              // of a value
constexpr std::int64_t kRowsPerColumn = 1000;    // from here on a sample of the rows goes ahead ...
constexpr std::int64_t kScoutShare = 8;          // ... one of so many, ...
constexpr std::int64_t kScoutNumbers = 1 << 21;  // ... of so many numbers at most, ...
constexpr double kScoutTolerance = 1e-3;         // ... solved to this gap ...
constexpr std::int64_t kScoutSteps = 100;        // ... or so far
constexpr double kNearMargin = 0.1, kScoutedMultiplier = 6;
constexpr int kPatience = 200;       // steps without a better gap before a solve has stalled, ...
constexpr int kPatienceAtRest = 20;  // ... and where only the multipliers move
constexpr double kCgShare = 0.1;     // of the residual, where conjugate gradients end at the latest

// ---- what is done with every row of a range; each function is compiled for several instruction sets

// q = X p + p_b
#define MARGROVE_ROWS_FUNCTION(Rows)                                                                                \
  MARGROVE_CLONES void values_of(const Rows& rows, std::int64_t from, std::int64_t to, const double* p, double p_b, \
                                 double* q) {                                                                       \
    for (std::int64_t i = from; i < to; ++i) q[i] = dot_row(rows, i, p) + p_b;                                      \
  }                                                                                                                 \
  MARGROVE_CLONES void add_rows(const Rows& rows, std::int64_t from, const double* step, std::int64_t count,        \
                                double* v) {                                                                        \
    for (std::int64_t k = 0; k < count; ++k)                                                                        \
      if (step[k] != 0) add_row(rows, from + k, step[k], v);                                                        \
  }                                                                                                                 \
  /* sum of C_i x_i (x_i·p + p_b) over listed rows; the sum without x_i is returned */                              \
  MARGROVE_CLONES double add_curvature(const Rows& rows, const std::uint32_t* list, std::int64_t count,             \
                                       const double* cost, const double* p, double p_b, double* out) {              \
    double sum = 0;                                                                                                 \
    for (std::int64_t k = 0; k < count; ++k) {                                                                      \
      const std::int64_t i = list[k];                                                                               \
      const double step = cost[i] * (dot_row(rows, i, p) + p_b);                                                    \
      add_row(rows, i, step, out);                                                                                  \
      sum += step;                                                                                                  \
    }                                                                                                               \
    return sum;                                                                                                     \
  }
MARGROVE_ROWS_FUNCTION(DenseRows<float>)
MARGROVE_ROWS_FUNCTION(DenseRows<double>)
MARGROVE_ROWS_FUNCTION(CsrRows<float>)
MARGROVE_ROWS_FUNCTION(CsrRows<double>)
#undef MARGROVE_ROWS_FUNCTION

// out_j += sum of C_i x_ij^2 over listed rows
template <class T>
void add_squares(const DenseRows<T>& rows, const std::uint32_t* list, std::int64_t count, const double* cost,
                 double* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const T* x = rows.row(list[k]);
    const double c = cost[list[k]];
    for (std::int64_t j = 0; j < rows.d; ++j) out[j] += c * static_cast<double>(x[j]) * static_cast<double>(x[j]);
  }
}
template <class T>
void add_squares(const CsrRows<T>& rows, const std::uint32_t* list, std::int64_t count, const double* cost,
                 double* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const double c = cost[list[k]];
    for (std::int64_t at = rows.start[list[k]]; at < rows.start[list[k] + 1]; ++at)
      out[rows.column[at]] += c * static_cast<double>(rows.data[at]) * static_cast<double>(rows.data[at]);
  }
}

struct RangeSums {
  double loss = 0, brought = 0, total = 0;  // of C loss; of what beta brings; of beta
  std::int64_t n_free = 0;
};

// The pulls of a block of rows at f, and the sums over them.
struct BlockView {
  const double *target, *cost, *f, *lambda;  // lambda is null for a squared loss
  double* beta;
  std::uint8_t* is_free;
  std::int64_t count;
  double factor, kappa;
};

template <class Loss>
MARGROVE_INLINE double lambda_of(const BlockView& block, std::int64_t k) {
  return Loss::kIsSquared ? 0.0 : block.lambda[k];
}

template <class Loss>
MARGROVE_INLINE void judge_block_body(const Loss& loss, const BlockView& block, RangeSums& sums) {
  double value = 0, brought = 0, total = 0;
  MARGROVE_SUMS(value, brought, total)
  for (std::int64_t k = 0; k < block.count; ++k) {
    const double z = block.target[k], f = block.f[k], C = block.factor * block.cost[k];
    const double beta = loss.pull(z, f, C, lambda_of<Loss>(block, k), block.kappa * C).beta;
    const double lost = loss.value(z, f, C);
    block.beta[k] = beta;
    value += lost;
    // The pull that a squared loss implies gives back as much as is lost: beta^2 / (4C) = C loss.
    brought += Loss::kIsSquared ? loss.linear_part(z, beta) - lost : loss.brought(z, beta, C);
    total += beta;
  }
  // Bytes may be anything's, so the compiler must be told that they are nobody else's.
  const double *target = block.target, *cost = block.cost, *pulls = block.beta, factor = block.factor;
  std::uint8_t* __restrict is_free = block.is_free;
  const std::int64_t count = block.count;
  std::int64_t n_free = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const double z = target[k], C = factor * cost[k], beta = pulls[k];
    is_free[k] = (beta > loss.low(z, C)) & (beta < loss.high(z, C)) & (Loss::kIsOfSigns | (beta != 0.0));
  }
  for (std::int64_t k = 0; k < count; ++k) n_free += is_free[k];
  sums.loss += value;
  sums.brought += brought;
  sums.total += total;
  sums.n_free += n_free;
}

// Of the slope along a direction: sum of beta(f + t q) q, and how fast it falls with t.
template <class Loss>
MARGROVE_INLINE void slope_body(const Loss& loss, const BlockView& block, const double* q, double t, double& pull_sum,
                                double& curvature) {
  double sum = 0, bend = 0;
  MARGROVE_SUMS(sum, bend)
  for (std::int64_t k = 0; k < block.count; ++k) {
    const double C = block.factor * block.cost[k], sigma = block.kappa * C;
    const auto pull = loss.pull(block.target[k], block.f[k] + t * q[k], C, lambda_of<Loss>(block, k), sigma);
    sum += pull.beta * q[k];
    bend += pull.is_free ? sigma * q[k] * q[k] : 0.0;
  }
  pull_sum += sum;
  curvature += bend;
}

#define MARGROVE_LOSS_FUNCTION(Signs, Squared)                                                                     \
  MARGROVE_CLONES void judge_block(const LinearLoss<Signs, Squared>& loss, const BlockView& block, RangeSums& s) { \
    judge_block_body(loss, block, s);                                                                              \
  }                                                                                                                \
  MARGROVE_CLONES void add_slope(const LinearLoss<Signs, Squared>& loss, const BlockView& block, const double* q,  \
                                 double t, double& sum, double& curvature) {                                       \
    slope_body(loss, block, q, t, sum, curvature);                                                                 \
  }
MARGROVE_LOSS_FUNCTION(true, true)
MARGROVE_LOSS_FUNCTION(true, false)
MARGROVE_LOSS_FUNCTION(false, true)
MARGROVE_LOSS_FUNCTION(false, false)
#undef MARGROVE_LOSS_FUNCTION

MARGROVE_CLONES void move_along(double* f, const double* q, double t, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) f[k] += t * q[k];
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Some of the rows, copied: one of each stretch, so that sorted rows are represented too.
template <class Rows>
struct RowSample {
  using T = typename Rows::value_type;
  std::vector<T> data;
  std::vector<std::int32_t> column;  // of sparse rows, as `start`
  std::vector<std::int64_t> start;
  std::vector<double> target, cost;
  Rows rows{};

  RowSample(const Rows& all, const LinearTask& task, std::int64_t count) {
    SplitMix64 random(0);
    std::vector<std::int64_t> chosen;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t from = all.n * k / count, to = all.n * (k + 1) / count;
      chosen.push_back(from + random.below(static_cast<std::uint32_t>(std::max<std::int64_t>(1, to - from))));
    }
    double of_all = 0, of_some = 0;
    for (const double one : task.cost) of_all += one;
    for (const std::int64_t i : chosen) {
      target.push_back(task.target[static_cast<std::size_t>(i)]);
      cost.push_back(task.cost[static_cast<std::size_t>(i)]);
      of_some += cost.back();
    }
    for (double& one : cost) one *= of_some > 0 ? of_all / of_some : 0.0;
    if constexpr (requires { all.row(0); }) {
      for (const std::int64_t i : chosen) data.insert(data.end(), all.row(i), all.row(i) + all.d);
      rows = Rows{data.data(), count, all.d};
    } else {
      start.push_back(0);
      for (const std::int64_t i : chosen) {
        data.insert(data.end(), all.data + all.start[i], all.data + all.start[i + 1]);
        column.insert(column.end(), all.column + all.start[i], all.column + all.start[i + 1]);
        start.push_back(static_cast<std::int64_t>(data.size()));
      }
      rows = Rows{data.data(), column.data(), start.data(), count, all.d};
    }
  }
};

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
        w_(static_cast<std::size_t>(rows.d)),
        v_(w_.size()),
        p_(w_.size()),
        f_(static_cast<std::size_t>(rows.n)),
        q_(f_.size()),
        beta_(f_.size()),
        is_free_(f_.size()) {
    const std::int64_t work = std::max<std::int64_t>(1, stored(rows));
    n_ranges_ = std::clamp<std::int64_t>(std::min(work / kWorkOfARange, work / (8 * d_ + 1)), 1, kMostRanges);
    n_ranges_ = std::min(n_ranges_, std::max<std::int64_t>(1, n_));
    sums_.resize(static_cast<std::size_t>(n_ranges_));
    partial_.resize(static_cast<std::size_t>(n_ranges_), std::vector<double>(w_.size()));
    if (!w.empty()) std::copy(w.begin(), w.end(), w_.begin());
    b_ = task.has_intercept ? b : 0.0;
    if constexpr (!kIsSquared) {
      lambda_.resize(f_.size());
      if (!beta.empty()) take_pulls(beta);
      kappa_ = beta.empty() ? first_kappa() : kWarmMultiplier * first_kappa();
    } else {
      kappa_ = 2;
    }
    if (!settings.by_gradients) {
      gram_.resize(static_cast<std::size_t>(size() * size()));
      in_gram_.resize(f_.size());
    }
    best_w_ = w_;
    best_b_ = b_;
    best_beta_.resize(f_.size());
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
          if (is_scouted_) guess_pulls();
          enter(Phase::pulls);
          break;
        case Phase::pulls:
          if (!for_ranges(until, [&](std::int64_t r) { pulls_range(r); })) return;
          gather_pulls();
          if (judge(most_steps)) break;  // the next phase is set, or it has ended
          enter(settings_.by_gradients ? Phase::curvature : Phase::gram);
          begin_direction();
          break;
        case Phase::gram:
          if (!go_on_with_gram(until)) return;
          if (!solve_by_factor()) {
            ending_ = LinearEnding::nonfinite;
            break;
          }
          enter(Phase::along);
          break;
        case Phase::curvature:
          if (!go_on_with_gradients(until)) return;
          enter(Phase::along);
          break;
        case Phase::along:
          if (!for_ranges(until, [&](std::int64_t r) { values_range(r, p_, p_b_, q_); })) return;
          // Where w is at rest the pulls need not be: those of a table of zeros go to their bounds by themselves.
          if (!step() && !(since_best_ <= kPatienceAtRest && take_multipliers())) ending_ = LinearEnding::stalled;
          enter(Phase::pulls);
          break;
      }
      if (Clock::now() >= until) return;
    }
  }

  LinearEnding ending() const override { return ending_; }
  LinearStanding standing() const override { return {best_primal_, best_dual_, steps_}; }
  std::span<const double> w() const override { return best_w_; }
  double b() const override { return best_b_; }

  std::vector<double> beta() const override { return best_beta_; }

  void rescale(double factor) override {
    task_.factor *= factor;
    if constexpr (!kIsSquared) {
      // A pull on its bound goes on standing there; the others stay as they are.
      std::vector<double> pulls = best_beta_;
      for (std::size_t i = 0; i < pulls.size(); ++i) {
        const double old = task_.factor / factor * task_.cost[i];
        if (std::abs(pulls[i]) >= old * (1 - 1e-12)) pulls[i] *= factor;
      }
      take_pulls(pulls);
      kappa_ = kWarmMultiplier * first_kappa();
    }
    best_primal_ = std::numeric_limits<double>::infinity();
    best_dual_ = 0;
    std::fill(best_beta_.begin(), best_beta_.end(), 0.0);
    best_gap_ = std::numeric_limits<double>::infinity();
    first_step_ = steps_;
    since_best_ = 0;
    ending_ = LinearEnding::going;
    enter(Phase::pulls);  // f is that of w already
  }

 private:
  static constexpr bool kIsSquared = Loss::kIsSquared;

  enum class Phase { scout, values, pulls, gram, curvature, along };

  std::int64_t size() const { return d_ + (task_.has_intercept ? 1 : 0); }
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
    // For a squared loss w alone proves its gap, so the two must belong together; elsewhere each is kept at its best.
    const bool is_best = LinearStanding{primal, std::max(0.0, dual), 0}.gap() < best_gap_;
    if (kIsSquared ? is_best : primal < best_primal_) {
      best_primal_ = primal;
      best_w_ = w_;
      best_b_ = b_;
    }
    if (dual <= 0) {
      if (kIsSquared && is_best) {  // no pull at all proves more
        best_dual_ = 0;
        std::fill(best_beta_.begin(), best_beta_.end(), 0.0);
      }
    } else if (kIsSquared ? is_best : dual > best_dual_) {
      best_dual_ = dual;
      best_beta_ = beta_;
      if (!is_balanced) balance(best_beta_);
    }
    const double gap = standing().gap();
    if (gap < 0.99 * best_gap_) {
      best_gap_ = gap;
      since_best_ = 0;
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
      ending_ = LinearEnding::stalled;
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
      take_excess(beta_, [&](std::size_t i, double taken) {
        pulls[i] -= taken;
        add_row(rows_, static_cast<std::int64_t>(i), -taken, p_.data());
      });
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) { values_range(r, p_, 0.0, q_); });
    if (violation(pulls, q_.data()) > settings_.violation) return false;
    best_beta_ = std::move(pulls);
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

  // Takes from the heavier side what is too much for a sum of 0: first from pulls that are free, which are worth least.
  template <class Take>
  void take_excess(const std::vector<double>& beta, Take take) const {
    double excess = std::accumulate(beta.begin(), beta.end(), 0.0);
    const double side = excess > 0 ? 1 : -1;
    excess = std::abs(excess);
    for (const bool from_free : {true, false})
      for (std::size_t i = 0; i < beta.size() && excess > 0; ++i) {
        if (side * beta[i] <= 0 || (is_free_[i] != 0) != from_free) continue;
        const double taken = std::min(excess, side * beta[i]);
        take(i, side * taken);
        excess -= taken;
      }
  }

  void balance(std::vector<double>& beta) const {
    const std::vector<double> given = beta;
    take_excess(given, [&](std::size_t i, double taken) { beta[i] -= taken; });
  }

  // The dual value of the balanced pulls.
  double balanced_dual(double dual) const {
    std::vector<double> v = v_;
    dual += 0.5 * product(v_, v_);
    take_excess(beta_, [&](std::size_t i, double taken) {
      const double z = task_.target[i], C = task_.factor * task_.cost[i];
      dual += loss_.brought(z, beta_[i] - taken, C) - loss_.brought(z, beta_[i], C);
      add_row(rows_, static_cast<std::int64_t>(i), -taken, v.data());
    });
    return dual - 0.5 * product(v, v);
  }

  // -(gradient) into p.
  void begin_direction() {
    for (std::size_t j = 0; j < w_.size(); ++j) p_[j] = v_[j] - w_[j];
    p_b_ = task_.has_intercept ? total_.total - task_.rho * b_ : 0.0;
    list_.clear();
    list_at_ = 0;
    if (settings_.by_gradients) {
      for (std::int64_t i = 0; i < n_; ++i)
        if (is_free_[static_cast<std::size_t>(i)]) list_.push_back(static_cast<std::uint32_t>(i));
      begin_gradients();
      return;
    }
    std::int64_t changes = 0;
    for (std::size_t i = 0; i < is_free_.size(); ++i) changes += is_free_[i] != in_gram_[i];
    if (changes >= total_.n_free) {  // begin anew: less work, and no rounding of the past
      std::fill(gram_.begin(), gram_.end(), 0.0);
      std::fill(in_gram_.begin(), in_gram_.end(), std::uint8_t{0});
    }
    for (std::size_t i = 0; i < is_free_.size(); ++i)
      if (is_free_[i] != in_gram_[i]) list_.push_back(static_cast<std::uint32_t>(i));
  }

  // ---- the Hessian as a matrix: gram = sum of (C_i/factor) x_i x_i^T over the free rows

  bool go_on_with_gram(Clock::time_point until) {
    const std::int64_t count = static_cast<std::int64_t>(list_.size());
    const std::int64_t width = std::max<std::int64_t>(1, stored(rows_) / std::max<std::int64_t>(1, n_));
    const std::int64_t rows_of_part = std::max<std::int64_t>(kOuterRows, kWorkOfAPart / (width * width + 16));
    while (list_at_ < count) {
      const std::int64_t end = std::min(count, list_at_ + kGramParts * rows_of_part);
      const std::int64_t parts = std::clamp<std::int64_t>((end - list_at_) / (16 * kOuterRows), 1, kGramParts);
      while (static_cast<std::int64_t>(parts_.size()) < parts - 1) parts_.emplace_back(gram_.size());
      const std::int64_t from = list_at_;
      parallel_for(parts, threads_, [&](std::int64_t part) {
        std::vector<double>& sums = part == 0 ? gram_ : parts_[static_cast<std::size_t>(part - 1)];
        if (part > 0) std::fill(sums.begin(), sums.end(), 0.0);
        add_to_gram(from + (end - from) * part / parts, from + (end - from) * (part + 1) / parts, sums.data());
      });
      for (std::int64_t part = 1; part < parts; ++part)
        for (std::size_t k = 0; k < gram_.size(); ++k) gram_[k] += parts_[static_cast<std::size_t>(part - 1)][k];
      list_at_ = end;
      if (list_at_ < count && Clock::now() >= until) return false;
    }
    for (const std::uint32_t i : list_) in_gram_[i] = is_free_[i];
    return true;
  }

  void add_to_gram(std::int64_t from, std::int64_t to, double* sums) const {
    if constexpr (requires { rows_.row(0); }) {
      const std::int64_t width = size();
      std::vector<double> batch(static_cast<std::size_t>(2 * kOuterRows * width));
      std::int64_t filled[2] = {0, 0};  // of rows that leave, and of rows that come
      const auto flush = [&](int comes) {
        double* vectors = batch.data() + comes * kOuterRows * width;
        blas_.add_outer_products(sums, vectors, static_cast<int>(width), static_cast<int>(filled[comes]),
                                 comes ? 1.0 : -1.0);
        filled[comes] = 0;
      };
      for (std::int64_t k = from; k < to; ++k) {
        const std::int64_t i = list_[static_cast<std::size_t>(k)];
        const int comes = is_free_[static_cast<std::size_t>(i)] ? 1 : 0;
        double* out = batch.data() + (comes * kOuterRows + filled[comes]) * width;
        const double root = std::sqrt(task_.cost[static_cast<std::size_t>(i)]);
        const auto* x = rows_.row(i);
        for (std::int64_t j = 0; j < d_; ++j) out[j] = root * static_cast<double>(x[j]);
        if (task_.has_intercept) out[d_] = root;
        if (++filled[comes] == kOuterRows) flush(comes);
      }
      for (const int comes : {0, 1})
        if (filled[comes] > 0) flush(comes);
    } else {
      const std::int64_t width = size();
      for (std::int64_t k = from; k < to; ++k) {
        const std::int64_t i = list_[static_cast<std::size_t>(k)];
        const double cost = task_.cost[static_cast<std::size_t>(i)];
        const double scale = is_free_[static_cast<std::size_t>(i)] ? cost : -cost;
        const std::int64_t start = rows_.start[i], end = rows_.start[i + 1];
        for (std::int64_t a = start; a < end; ++a) {
          const double x = scale * static_cast<double>(rows_.data[a]);
          const std::int64_t col = rows_.column[a];
          for (std::int64_t c = start; c <= a; ++c) {
            const std::int64_t other = rows_.column[c];
            sums[std::min(col, other) + std::max(col, other) * width] += x * static_cast<double>(rows_.data[c]);
          }
          if (task_.has_intercept) sums[col + d_ * width] += x;
        }
        if (task_.has_intercept) sums[d_ + d_ * width] += scale;
      }
    }
  }

  bool solve_by_factor() {
    const std::int64_t width = size();
    const double scale = kappa_ * task_.factor;
    std::vector<double> solution(static_cast<std::size_t>(width));
    double ridge = 0;
    for (int attempt = 0; attempt < 12; ++attempt) {
      work_.resize(gram_.size());
      for (std::int64_t column = 0; column < width; ++column)
        for (std::int64_t row = 0; row <= column; ++row)
          work_[static_cast<std::size_t>(row + column * width)] =
              scale * gram_[static_cast<std::size_t>(row + column * width)];
      for (std::int64_t j = 0; j < width; ++j) {
        double& diagonal = work_[static_cast<std::size_t>(j + j * width)];
        if (damping_ > 0) diagonal += damping_ * scale * squares()[static_cast<std::size_t>(j)];
        diagonal = (diagonal + (j < d_ ? 1.0 : task_.rho)) * (1 + ridge);
        if (j == d_) diagonal = bent(diagonal, scale);
      }
      if (blas_.factor(work_.data(), static_cast<int>(width))) {
        std::copy(p_.begin(), p_.end(), solution.begin());
        if (task_.has_intercept) solution[static_cast<std::size_t>(d_)] = p_b_;
        blas_.solve(work_.data(), static_cast<int>(width), solution.data());
        slope_ = 0;
        for (std::size_t j = 0; j < p_.size(); ++j) slope_ += p_[j] * solution[j];
        if (task_.has_intercept) slope_ += p_b_ * solution.back();
        if (std::isfinite(slope_) && slope_ > 0) {
          std::copy(solution.begin(), solution.begin() + d_, p_.begin());
          p_b_ = task_.has_intercept ? solution.back() : 0.0;
          return true;
        }
        if (slope_ == 0) return true;  // nothing to be gained: `step` will say so
      }
      ridge = ridge == 0 ? 1e-14 : ridge * 100;
    }
    return false;
  }

  // sum C_i x_ij^2 of every column, over all rows: what a Hessian would have on its diagonal if every row were free.
  const std::vector<double>& squares() {
    if (squares_.empty()) {
      squares_.assign(static_cast<std::size_t>(d_) + 1, 0.0);
      std::vector<std::uint32_t> every(static_cast<std::size_t>(n_));
      std::iota(every.begin(), every.end(), 0u);
      add_squares(rows_, every.data(), n_, task_.cost.data(), squares_.data());
      squares_.back() = std::accumulate(task_.cost.begin(), task_.cost.end(), 0.0);
    }
    return squares_;
  }

  // The curvature of the intercept. Where it is free and no row bends it any will do: the line search finds the length.
  double bent(double curvature, double scale) const {
    if (curvature > 0) return curvature;
    const double largest = task_.cost.empty() ? 0.0 : *std::max_element(task_.cost.begin(), task_.cost.end());
    return std::max(1e-12, scale * largest * static_cast<double>(n_));
  }

  // ---- the Hessian as a product

  struct Gradients {
    std::vector<double> solution, residual, direction, image, diagonal;  // (size)
    std::vector<double> own;       // the diagonal of the Hessian beside what the rows make
    double energy = 0, least = 0;  // residual·M^-1 residual, and where it is small enough
    std::int64_t rounds = 0, most = 0;
    bool has_diagonal = false;
  };

  void begin_gradients() {
    const auto width = static_cast<std::size_t>(size());
    cg_.solution.assign(width, 0.0);
    cg_.residual.assign(p_.begin(), p_.end());
    if (task_.has_intercept) cg_.residual.push_back(p_b_);
    cg_.image.assign(width, 0.0);
    cg_.diagonal.assign(width, 0.0);
    cg_.rounds = 0;
    cg_.most = std::max<std::int64_t>(50, std::min<std::int64_t>(size(), 500));
    cg_.has_diagonal = false;
  }

  // list_ in as many parts as there are ranges; part sums into partial_, answers into `scalar` of each.
  template <class Body>
  void over_list(Body body) {
    const auto count = static_cast<std::int64_t>(list_.size());
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) {
      std::vector<double>& part = partial_[static_cast<std::size_t>(r)];
      std::fill(part.begin(), part.end(), 0.0);
      const std::int64_t from = count * r / n_ranges_, to = count * (r + 1) / n_ranges_;
      sums_[static_cast<std::size_t>(r)].total = body(list_.data() + from, to - from, part.data());
    });
  }

  double gather(std::vector<double>& out, double scale) const {
    double sum = 0;
    for (std::int64_t r = 0; r < n_ranges_; ++r) {
      const std::vector<double>& part = partial_[static_cast<std::size_t>(r)];
      for (std::size_t j = 0; j < part.size(); ++j) out[j] += scale * part[j];
      sum += scale * sums_[static_cast<std::size_t>(r)].total;
    }
    return sum;
  }

  bool go_on_with_gradients(Clock::time_point until) {
    const double scale = kappa_ * task_.factor;
    const auto d = static_cast<std::size_t>(d_);
    if (!cg_.has_diagonal) {
      over_list([&](const std::uint32_t* list, std::int64_t count, double* part) {
        add_squares(rows_, list, count, task_.cost.data(), part);
        double sum = 0;
        for (std::int64_t k = 0; k < count; ++k) sum += task_.cost[list[k]];
        return sum;
      });
      const double sum = gather(cg_.diagonal, scale);
      cg_.own.assign(cg_.diagonal.size(), 1.0);
      if (damping_ > 0)
        for (std::size_t j = 0; j < cg_.own.size(); ++j) cg_.own[j] += damping_ * scale * squares()[j];
      for (std::size_t j = 0; j < d; ++j) cg_.diagonal[j] += cg_.own[j];
      if (task_.has_intercept) {
        cg_.own[d] += task_.rho - 1.0;
        cg_.diagonal[d] = bent(sum + cg_.own[d], scale);
        cg_.own[d] = cg_.diagonal[d] - sum;
      }
      cg_.direction = cg_.residual;
      for (std::size_t j = 0; j < cg_.direction.size(); ++j) cg_.direction[j] /= cg_.diagonal[j];
      cg_.energy = product(cg_.residual, cg_.direction);
      const double share = std::min(kCgShare, std::sqrt(std::max(1e-12, standing().gap())));
      cg_.least = share * share * cg_.energy;
      cg_.has_diagonal = true;
    }
    while (cg_.energy > cg_.least && cg_.energy > 0 && cg_.rounds < cg_.most) {
      const double p_b = task_.has_intercept ? cg_.direction[d] : 0.0;
      over_list([&](const std::uint32_t* list, std::int64_t count, double* part) {
        return add_curvature(rows_, list, count, task_.cost.data(), cg_.direction.data(), p_b, part);
      });
      std::fill(cg_.image.begin(), cg_.image.end(), 0.0);
      const double sum = gather(cg_.image, scale);
      for (std::size_t j = 0; j < d; ++j) cg_.image[j] += cg_.own[j] * cg_.direction[j];
      if (task_.has_intercept) cg_.image[d] = sum + cg_.own[d] * p_b;
      const double bend = product(cg_.direction, cg_.image);
      if (!(bend > 0)) break;
      const double length = cg_.energy / bend;
      for (std::size_t j = 0; j < cg_.solution.size(); ++j) {
        cg_.solution[j] += length * cg_.direction[j];
        cg_.residual[j] -= length * cg_.image[j];
      }
      double energy = 0;
      for (std::size_t j = 0; j < cg_.residual.size(); ++j)
        energy += cg_.residual[j] * cg_.residual[j] / cg_.diagonal[j];
      const double ratio = energy / cg_.energy;
      for (std::size_t j = 0; j < cg_.direction.size(); ++j)
        cg_.direction[j] = cg_.residual[j] / cg_.diagonal[j] + ratio * cg_.direction[j];
      cg_.energy = energy;
      ++cg_.rounds;
      if (Clock::now() >= until) return false;
    }
    slope_ = 0;
    for (std::size_t j = 0; j < d; ++j) slope_ += p_[j] * cg_.solution[j];
    if (task_.has_intercept) slope_ += p_b_ * cg_.solution[d];
    std::copy(cg_.solution.begin(), cg_.solution.begin() + d_, p_.begin());
    p_b_ = task_.has_intercept ? cg_.solution[d] : 0.0;
    return true;
  }

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
    const double pp = product(p_, p_) + task_.rho * p_b_ * p_b_;
    bend = pp + std::accumulate(bends.begin(), bends.end(), 0.0);
    return product(w_, p_) + task_.rho * b_ * p_b_ + t * pp - std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  // Goes along p as far as the slope falls; false where it does not fall at all.
  bool step() {
    if (!(slope_ > 0)) return false;
    const double enough = kEnoughDescent * slope_;
    double low = 0, high = std::numeric_limits<double>::infinity(), t = 1, bend = 0;
    for (int trial = 0;; ++trial) {
      const double slope = slope_at(t, bend);
      if (std::isnan(slope)) return false;
      if (std::abs(slope) <= enough || (slope < 0 && t == 1)) break;
      (slope > 0 ? high : low) = t;
      if (trial >= kMostTrials && low > 0) {
        t = low;
        break;
      }
      if (trial >= 5 * kMostTrials) return false;
      const double guess = bend > 0 ? t - slope / bend : 0.0;
      t = guess > low && guess < high ? guess : low == 0 ? 0.1 * high : 0.5 * (low + high);
    }
    if (t < kShortStep) {
      damping_ = std::max(10 * damping_, kFirstDamping);
    } else if (t > kLongStep) {
      damping_ = damping_ <= kLeastDamping ? 0.0 : damping_ / 10;
    }
    for (std::size_t j = 0; j < w_.size(); ++j) w_[j] += t * p_[j];
    b_ += t * p_b_;
    parallel_for(n_ranges_, threads_, [&](std::int64_t r) {
      const std::int64_t from = begin_of(r);
      move_along(&f_[static_cast<std::size_t>(from)], &q_[static_cast<std::size_t>(from)], t, begin_of(r + 1) - from);
    });
    ++steps_;
    is_moved_ = true;
    return true;
  }

  const Rows rows_;
  LinearTask task_;
  const Loss loss_;
  const NewtonSettings settings_;
  const SymmetricBlas blas_;
  const std::int64_t n_, d_;
  std::int64_t n_ranges_ = 1;
  int threads_ = 1;

  std::vector<double> w_, v_, p_;  // (d): the weights, what the pulls sum to, the direction
  double b_ = 0, p_b_ = 0;
  std::vector<double> f_, q_, beta_;  // (n): X w + b, X p + p_b, the pulls that v is of
  std::vector<double> lambda_;        // (n), but for squared losses
  std::vector<std::uint8_t> is_free_;
  double kappa_ = 2, slope_ = 0;
  double damping_ = 0;  // share of `squares` that is added to the Hessian while its steps are too long
  std::vector<double> squares_;
  bool is_moved_ = false;  // since lambda was set
  RangeSums total_;
  std::vector<RangeSums> sums_;               // of each range
  std::vector<std::vector<double>> partial_;  // of each range, (d)
  std::vector<std::uint32_t> list_;           // rows to go through
  std::int64_t list_at_ = 0;
  std::vector<double> gram_, work_;
  std::vector<std::vector<double>> parts_;
  std::vector<std::uint8_t> in_gram_;
  Gradients cg_;

  double best_primal_ = std::numeric_limits<double>::infinity();
  double best_dual_ = 0;  // no pull at all is worth 0
  double best_gap_ = std::numeric_limits<double>::infinity();
  std::vector<double> best_w_, best_beta_;
  double best_b_ = 0;
  std::int64_t steps_ = 0, first_step_ = 0, since_best_ = 0;
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
