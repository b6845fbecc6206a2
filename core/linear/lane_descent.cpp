#include "linear/lane_descent.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "index.hpp"
#include "linear/descent_best.hpp"
#include "linear/descent_pace.hpp"
#include "linear/order.hpp"
#include "linear/perceptron.hpp"

namespace margrove {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLanes = kMostLanes;  // of a vector; those without a machine are switched off
// Cells visited between two looks at the clock, eight multiplications each. Chosen, not measured: some milliseconds.
constexpr std::int64_t kWorkBetweenLooks = 1 << 18;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Values = Simd<double, kLanes>;
using Flags = Simd<std::int64_t, kLanes>;

MARGROVE_INLINE Values load(const double* from) { return margrove::load<Values>(from); }
MARGROVE_INLINE Flags flags_of(std::uint8_t bits) {
  constexpr Flags kBit = {1, 2, 4, 8, 16, 32, 64, 128};  // of each lane
  return ((Flags{} + static_cast<std::int64_t>(bits)) & kBit) != 0;
}
MARGROVE_INLINE bool any(const Flags& flags) {
  const auto bytes = converted<Simd<std::int8_t, kLanes>>(flags);
  std::uint64_t found;
  std::memcpy(&found, &bytes, sizeof found);
  return found != 0;
}

// A pass over the active rows under way. alpha: z beta, at least 0.
struct LaneVisit {
  const double *target, *norm;  // (n); norm: |x|^2 + spread
  const double* cost;           // (n): of the lanes that a row costs something
  double factor, spread;        // b = spread * total
  double *w, *alpha;            // (d, lanes), (n, lanes)
  std::uint8_t* bits;           // (n): the lanes in which a row is active
  std::uint8_t running;         // the lanes that have not ended
  std::uint32_t* active;        // rows that no lane wants change places with the last one
  std::int64_t size, at;        // of it: how many are active, where the pass stands
  Values total;                 // of beta
  Values limit;                 // of what a row at a bound is away from moving: beyond it is left out
  Values worst;                 // violation of the pass
  Values seeming_gap, gain;     // gap of the pass as it seemed row by row; of the dual value
};

template <class T>
MARGROVE_INLINE Values values_of_row(const CsrRows<T>& rows, std::int64_t i, const double* w) {
  Values even{}, odd{};
  std::int64_t at = rows.start[i];
  for (; at + 1 < rows.start[i + 1]; at += 2) {
    even += static_cast<double>(rows.data[at]) * load(w + kLanes * rows.column[at]);
    odd += static_cast<double>(rows.data[at + 1]) * load(w + kLanes * rows.column[at + 1]);
  }
  if (at < rows.start[i + 1]) even += static_cast<double>(rows.data[at]) * load(w + kLanes * rows.column[at]);
  return even + odd;
}

template <class T>
MARGROVE_INLINE void add_to_weights(const CsrRows<T>& rows, std::int64_t i, const Values& step, double* w) {
  const T* data = rows.data;
  const std::int32_t* column = rows.column;
  const Values change = step;
  for (std::int64_t at = rows.start[i], end = rows.start[i + 1]; at < end; ++at) {
    double* weights = w + kLanes * column[at];
    store(weights, load(weights) + static_cast<double>(data[at]) * change);
  }
}

template <bool is_squared, class T>
MARGROVE_INLINE void visit_lanes_body(const CsrRows<T>& rows, LaneVisit& visit, std::int64_t to) {
  while (visit.at < std::min(to, visit.size)) {
    if (visit.at + DescentPace::kAhead < visit.size) {
      const std::uint32_t next = visit.active[visit.at + DescentPace::kAhead];
      fetch(rows, next);
      prefetch(visit.alpha + kLanes * next);
    }
    const std::uint32_t i = visit.active[visit.at];
    const std::uint8_t wanted = visit.bits[i] & visit.running;
    if (wanted == 0) {
      std::swap(visit.active[visit.at], visit.active[--visit.size]);
      continue;
    }
    const Flags is_on = flags_of(wanted);
    const double z = visit.target[i], norm = visit.norm[i];
    const Values f = z * (values_of_row(rows, i, visit.w) + visit.spread * visit.total);
    const double C = visit.factor * visit.cost[i];
    // A squared loss bends by 1/(2C) more and knows no bound.
    const double extra = is_squared ? 0.5 / C : 0.0, high = is_squared ? kInfinity : C;
    const double inverse = 1 / (norm + extra);  // of the curvature; known before the slope is
    const Values alpha = load(visit.alpha + kLanes * i);
    const Values slope = f - 1 + extra * alpha;  // of minus the dual value
    const Values excess = larger(1 - f, Values{});
    const Values lost = is_squared ? C * excess * excess : C * excess;
    visit.seeming_gap += is_on ? lost + alpha * (f - 1 + 0.5 * extra * alpha) : Values{};
    // Distance of the best value beyond the bound that alpha is at; below 0 alpha leaves the bound.
    const Flags is_low = alpha <= 0, is_high = alpha >= high;
    const Values slack = is_low ? slope : (is_high ? -slope : Values{} - 1);
    const Values violation = (is_low | is_high) ? larger(-slack, Values{}) : larger(slope, -slope);
    const Flags leaves = is_on & (slack > visit.limit);
    if (any(leaves)) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        if (leaves[lane]) visit.bits[i] = visit.bits[i] & ~(1u << lane);
      if ((visit.bits[i] & visit.running) == 0) {
        std::swap(visit.active[visit.at], visit.active[--visit.size]);
        continue;
      }
    }
    ++visit.at;
    const Flags stays = is_on & ~leaves;
    visit.worst = stays ? larger(visit.worst, violation) : visit.worst;
    const Flags moves = stays & (violation > DescentPace::kRounding * (larger(f, -f) + 1));
    if (!any(moves)) continue;
    // A row of zeros has no curvature of its own: its alpha goes to the end that its slope points to.
    const Values aim = smaller(larger(alpha - slope * inverse, Values{}), Values{} + high);
    const Values best = moves ? aim : alpha;
    const Values step = best - alpha;
    visit.gain += step * (1 - f - 0.5 * norm * step - 0.5 * extra * (best + alpha));
    store(visit.alpha + kLanes * i, best);
    visit.total += z * step;
    add_to_weights(rows, i, z * step, visit.w);
  }
}

// f of every row: (n, lanes).
template <class T>
MARGROVE_INLINE void values_of_lanes_body(const CsrRows<T>& rows, const LaneVisit& visit, double* f) {
  for (std::int64_t i = 0; i < rows.n; ++i)
    store(f + kLanes * i, values_of_row(rows, i, visit.w) + visit.spread * visit.total);
}

// w <- sum beta_i x_i, and total <- sum beta_i.
template <class T>
MARGROVE_INLINE void sum_weights_body(const CsrRows<T>& rows, LaneVisit& visit) {
  std::fill_n(visit.w, kLanes * rows.d, 0.0);
  visit.total = Values{};
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const Values beta = visit.target[i] * load(visit.alpha + kLanes * i);
    if (!any(beta != 0)) continue;
    visit.total += beta;
    add_to_weights(rows, i, beta, visit.w);
  }
}

#define MARGROVE_LANES(T)                                                                                        \
  MARGROVE_CLONES void visit_lanes(const CsrRows<T>& rows, std::true_type, LaneVisit& visit, std::int64_t to) {  \
    visit_lanes_body<true>(rows, visit, to);                                                                     \
  }                                                                                                              \
  MARGROVE_CLONES void visit_lanes(const CsrRows<T>& rows, std::false_type, LaneVisit& visit, std::int64_t to) { \
    visit_lanes_body<false>(rows, visit, to);                                                                    \
  }                                                                                                              \
  MARGROVE_CLONES void values_of_lanes(const CsrRows<T>& rows, const LaneVisit& visit, double* f) {              \
    values_of_lanes_body(rows, visit, f);                                                                        \
  }                                                                                                              \
  MARGROVE_CLONES void sum_weights(const CsrRows<T>& rows, LaneVisit& visit) { sum_weights_body(rows, visit); }
MARGROVE_LANES(float)
MARGROVE_LANES(double)
#undef MARGROVE_LANES

template <class Rows, class Loss>
class Lanes final : public LaneDescent {
 public:
  Lanes(const Rows& rows, const std::vector<LinearTask>& tasks, const Loss& loss, DescentSettings settings,
        const std::vector<std::span<const double>>& beta)
      : rows_(rows),
        loss_(loss),
        settings_(settings),
        random_(settings.seed),
        w_(kLanes * rows.d),
        alpha_(kLanes * rows.n),
        f_(alpha_.size()),
        norm_(rows.n),
        cost_(norm_.size()),
        own_(norm_.size()),
        bits_(norm_.size()),
        values_of_lane_(norm_.size()),
        beta_of_lane_(norm_.size()),
        weights_of_lane_(rows.d) {
    const double spread = tasks.front().has_intercept ? 1 / tasks.front().rho : 0.0;
    for (std::int64_t i = 0; i < rows.n; ++i) norm_[i] = squared_norm(rows, i) + spread;
    for (std::size_t lane = 0; lane < tasks.size(); ++lane) {
      const LinearTask& task = tasks[lane];
      lanes_.push_back({.task = task, .best = {rows.n, rows.d, loss, settings.tol}});
      for (std::size_t i = 0; i < norm_.size(); ++i) {
        cost_[i] = std::max(cost_[i], task.cost[i]);
        if (task.cost[i] > 0) own_[i] = own_[i] | 1u << lane;
        if (!beta[lane].empty()) alpha_[kMostLanes * i + lane] = task.target[i] * beta[lane][i];
      }
    }
    visit_.target = tasks.front().target.data();
    visit_.norm = norm_.data();
    visit_.cost = cost_.data();
    visit_.factor = tasks.front().factor;
    visit_.spread = spread;
    visit_.w = w_.data();
    visit_.alpha = alpha_.data();
    visit_.bits = bits_.data();
    clip_alpha();
    sum_weights(rows_, visit_);
    begin();
    if (std::any_of(alpha_.begin(), alpha_.end(), [](double value) { return value != 0; })) {
      check(visit_.running);
    } else {
      for (Lane& lane : lanes_) lane.best.take_nothing(lane.task);
    }
    note_running();
  }

  void advance(Clock::time_point until, std::int64_t most_passes) override {
    const std::int64_t width = std::max<std::int64_t>(1, stored(rows_) / std::max<std::int64_t>(1, rows_.n));
    const std::int64_t stretch = std::max<std::int64_t>(1, kWorkBetweenLooks / (width + 16));
    while (!is_over_) {
      if (!is_under_way_) begin_pass();
      while (visit_.at < visit_.size) {
        visit_lanes(rows_, std::bool_constant<Loss::kIsSquared>{}, visit_, std::min(visit_.size, visit_.at + stretch));
        if (Clock::now() >= until) break;
      }
      if (visit_.at < visit_.size) return;
      end_pass(most_passes);
      if (Clock::now() >= until) return;
    }
  }

  bool is_over() const override { return is_over_; }
  LinearEnding ending(std::size_t lane) const override { return lanes_[lane].ending; }
  LinearStanding standing(std::size_t lane) const override {
    return {lanes_[lane].best.primal(), lanes_[lane].best.dual(), lanes_[lane].passes};
  }
  const std::vector<double>& w(std::size_t lane) const override { return lanes_[lane].best.w(); }
  double b(std::size_t lane) const override { return lanes_[lane].best.b(); }
  const std::vector<double>& beta(std::size_t lane) const override { return lanes_[lane].best.beta(); }
  std::int64_t n_free(std::size_t lane) const override {
    return free_among(loss_, lanes_[lane].task, lanes_[lane].best.beta());
  }

  void rescale(double factor) override {
    if constexpr (!Loss::kIsSquared) {  // a variable at its bound stays at it
      for (std::size_t k = 0; k < alpha_.size(); ++k)
        if (alpha_[k] >= visit_.factor * cost_[k / kMostLanes] * (1 - 1e-12)) alpha_[k] *= factor;
    }
    visit_.factor *= factor;
    for (Lane& lane : lanes_) lane.task.factor *= factor;
    if constexpr (!Loss::kIsSquared) {
      clip_alpha();
      sum_weights(rows_, visit_);
    }
    begin();
  }

 private:
  struct Lane {
    LinearTask task;
    DescentBest<Loss> best;
    LinearEnding ending = LinearEnding::going;
    double wanted = kInfinity, dual = 0;
    std::int64_t unchecked = 0, since_best = 0, passes = 0;
  };

  // As many as would have visited every row: those that leave rows out count for less.
  std::int64_t passes() const { return (visits_ + rows_.n - 1) / std::max<std::int64_t>(1, rows_.n); }

  // Into their bounds.
  void clip_alpha() {
    for (std::size_t i = 0; i < norm_.size(); ++i)
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        const double C = own_[i] >> lane & 1 ? visit_.factor * cost_[i] : 0.0;
        double& alpha = alpha_[kMostLanes * i + lane];
        alpha = C > 0 ? std::clamp(alpha, 0.0, Loss::kIsSquared ? kInfinity : C) : 0.0;
      }
  }

  // Starts a step of the path from alpha and its w: every row active.
  void begin() {
    bits_ = own_;
    list_active();
    visit_.limit = Values{} + kInfinity;
    visits_ = 0;
    is_under_way_ = false;
    const Values dual = duals();
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      Lane& lane = lanes_[k];
      lane.best.forget();
      lane.ending = LinearEnding::going;
      lane.wanted = kInfinity;
      lane.dual = dual[static_cast<int>(k)];
      lane.unchecked = lane.since_best = lane.passes = 0;
    }
    note_running();
  }

  // The dual values of alpha.
  Values duals() const {
    Values sum = -0.5 * visit_.spread * visit_.total * visit_.total;
    for (std::size_t j = 0; j < w_.size(); j += kMostLanes) {
      const Values weights = load(&w_[j]);
      sum -= 0.5 * weights * weights;
    }
    for (std::size_t i = 0; i < norm_.size(); ++i) {
      const double C = visit_.factor * cost_[i];
      if (!(C > 0)) continue;
      const Values alpha = load(&alpha_[kMostLanes * i]);
      sum += alpha;
      if constexpr (Loss::kIsSquared) sum -= alpha * alpha * (0.25 / C);
    }
    return sum;
  }

  void note_running() {
    visit_.running = 0;
    for (std::size_t k = 0; k < lanes_.size(); ++k)
      if (lanes_[k].ending == LinearEnding::going) visit_.running = visit_.running | 1u << k;
    is_over_ = visit_.running == 0;
  }

  void list_active() {
    active_.clear();
    for (std::size_t i = 0; i < bits_.size(); ++i)
      if (bits_[i]) active_.push_back(i);
    visit_.active = active_.data();
    visit_.size = length(active_);
  }

  void begin_pass() {
    for (std::uint32_t left = visit_.size; left > 1; --left) std::swap(active_[left - 1], active_[random_.below(left)]);
    size_of_pass_ = visit_.size;
    visit_.at = 0;
    visit_.worst = visit_.seeming_gap = visit_.gain = Values{};
    is_under_way_ = true;
  }

  void end_pass(std::int64_t most_passes) {
    is_under_way_ = false;
    visits_ += std::max<std::int64_t>(1, size_of_pass_);
    const bool is_last = passes() >= most_passes;
    std::uint8_t asked = 0;
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      Lane& lane = lanes_[k];
      if (lane.ending != LinearEnding::going) continue;
      const int at = k;
      lane.passes = passes();
      lane.dual += visit_.gain[at];
      visit_.limit[at] = visit_.worst[at] > 0 ? visit_.worst[at] : kInfinity;
      const double seeming = visit_.seeming_gap[at];
      if (is_last || ++lane.unchecked >= DescentPace::kMostPassesUnchecked ||
          seems_to_have_ended(seeming, lane.dual, lane.wanted, settings_.tol)) {
        lane.wanted = seeming / 2;
        asked = asked | 1u << k;
      }
      if (++lane.since_best > DescentPace::kPatience) lane.ending = LinearEnding::stalled;
    }
    if (asked) {
      check(asked);
      // In lanes that go on all rows again.
      for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] = bits_[i] | (own_[i] & asked);
      for (std::size_t k = 0; k < lanes_.size(); ++k)
        if (asked >> k & 1) visit_.limit[static_cast<int>(k)] = kInfinity;
      list_active();
    }
    for (Lane& lane : lanes_)
      if (is_last && lane.ending == LinearEnding::going) lane.ending = LinearEnding::most_steps;
    note_running();
  }

  // Both values of the lanes that are asked about, from a pass over all rows.
  void check(std::uint8_t asked) {
    values_of_lanes(rows_, visit_, f_.data());
    const Values dual = duals();
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      if (!(asked >> k & 1)) continue;
      Lane& lane = lanes_[k];
      for (std::size_t j = 0; j < weights_of_lane_.size(); ++j) weights_of_lane_[j] = w_[kMostLanes * j + k];
      for (std::size_t i = 0; i < values_of_lane_.size(); ++i) {
        values_of_lane_[i] = f_[kMostLanes * i + k];
        beta_of_lane_[i] = visit_.target[i] * alpha_[kMostLanes * i + k];
      }
      lane.dual = dual[static_cast<int>(k)];
      lane.unchecked = 0;
      if (!lane.best.take(lane.task, weights_of_lane_, visit_.spread * visit_.total[static_cast<int>(k)],
                          values_of_lane_, lane.dual, beta_of_lane_)) {
        lane.ending = LinearEnding::nonfinite;
        continue;
      }
      lane.best.lengthen(rows_, lane.task);
      if (lane.best.has_come_closer()) lane.since_best = 0;
      if (lane.best.gap() <= settings_.tol) lane.ending = LinearEnding::converged;
    }
  }

  const Rows rows_;
  const Loss loss_;
  const DescentSettings settings_;
  SplitMix64 random_;
  AlignedVector w_, alpha_, f_;           // (d, lanes), and (n, lanes)
  std::vector<double> norm_, cost_;       // (n): |x_i|^2 + spread
  std::vector<std::uint8_t> own_, bits_;  // (n): the lanes that a row costs something; those in which it is active
  std::vector<double> values_of_lane_, beta_of_lane_, weights_of_lane_;  // room for one
  std::vector<std::uint32_t> active_;
  std::vector<Lane> lanes_;
  LaneVisit visit_{};
  std::int64_t visits_ = 0, size_of_pass_ = 0;  // since the last `rescale`; rows of the pass under way
  bool is_under_way_ = false, is_over_ = false;
};

template <class Rows>
constexpr bool kIsSparse = !requires(const Rows& rows) { rows.row(0); };

}  // namespace

bool can_share_rows(const AnyRows& rows, const LinearTask& task) {
  const bool is_sparse = std::visit([](const auto& some) { return kIsSparse<std::decay_t<decltype(some)>>; }, rows);
  return is_sparse && task.is_of_signs && !(task.has_intercept && task.rho == 0);
}

bool can_go_together(const LinearTask& one, const LinearTask& other) {
  if (one.target.data() != other.target.data() || one.is_squared != other.is_squared ||
      one.has_intercept != other.has_intercept || one.rho != other.rho)
    return false;
  for (std::size_t i = 0; i < one.cost.size(); ++i)
    if (one.cost[i] != other.cost[i] && one.cost[i] != 0 && other.cost[i] != 0) return false;
  return true;
}

std::unique_ptr<LaneDescent> lane_descent(const AnyRows& rows, const std::vector<LinearTask>& tasks,
                                          DescentSettings settings, const std::vector<std::span<const double>>& beta) {
  return std::visit(
      [&](const auto& some) -> std::unique_ptr<LaneDescent> {
        using Rows = std::decay_t<decltype(some)>;
        if constexpr (kIsSparse<Rows>) {
          if (tasks.front().is_squared)
            return std::make_unique<Lanes<Rows, LinearLoss<true, true>>>(some, tasks, LinearLoss<true, true>{0.0},
                                                                         settings, beta);
          return std::make_unique<Lanes<Rows, LinearLoss<true, false>>>(some, tasks, LinearLoss<true, false>{0.0},
                                                                        settings, beta);
        } else {
          return nullptr;
        }
      },
      rows);
}

}  // namespace margrove
