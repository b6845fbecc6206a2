#include "linear/l1_svm.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "index.hpp"
#include "linear/quadratic_l1.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Columns: so few are all in the working set. Their products take 512 KiB, in L2.
constexpr std::int64_t kAllColumns = 256;
// Columns that come into the working set at once, at least. Chosen, not measured: fewer need more rounds, more a larger
// model.
constexpr std::size_t kFirstColumns = 128;
constexpr std::size_t kGramColumns = 2048;  // columns: products of more are not held (32 MiB)
// Of the violation: how far a model is solved. 0.01 needs fewer steps than 0.03 (numbers not recorded).
constexpr double kModelPrecision = 0.01;
// The same after a step that brought nothing: the model may have been solved too roughly. Chosen, not measured.
constexpr double kFinePrecision = 1e-6;
constexpr double kModelShare = 0.1;  // of tol: no model is solved further, as a tenth of tol does not decide the end
// A step in a face of k columns, k^3 / 6 multiplications, costs about as much as k / 6 passes of k^2.
constexpr std::int64_t kFacePasses = 6;
// Such steps in a row, at most, before passes go on. Chosen, not measured: each is cut where a sign changes.
constexpr std::int64_t kChain = 16;
// Such steps of a model, at most. Chosen, not measured: a bound on the time of a degenerate one.
constexpr std::int64_t kMostFaces = 500;
// Of the fall so far: a pass that brings less ends a model whose products are not held. Chosen, not measured.
constexpr double kColumnPrecision = 1e-4;
// Passes over such a model, at most. 10 at first; no measurement recorded.
constexpr int kColumnPasses = 30;
// Of tol: how far beyond its bound a column outside may be. Chosen, not measured: it must not keep the gap open.
constexpr double kOutsideShare = 0.05;
// sigma / C at first, times the mean residual: there beta is half its bound.
constexpr double kFirstSharpness = 0.5;
// Of a column's size: the ridge that keeps the model of a smoothed loss bounded, at least and at first. Chosen, not
// measured.
constexpr double kLeastRidge = 1e-9;
constexpr double kFirstRidge = 1e-3;
// Short steps after which a squared loss is smoothed as well. Chosen, not measured.
constexpr std::int64_t kShortSteps = 3;
// Sharpenings in a row that bring nothing: it has stalled. By then sigma has long reached its limit (4^7 > 1e4).
constexpr std::int64_t kBarrenRounds = 10;
// The ridge grows by this after a short step, and falls by it after a whole one. Chosen, not measured.
constexpr double kRidgeFactor = 4;
// Of the way to the model's minimum: a shorter step shows that the model was too bold. Chosen, not measured.
constexpr double kShortStep = 0.25;
// Factor by which sigma grows. Chosen, not measured: less needs more rounds, more makes each harder.
constexpr double kSharpening = 4;
constexpr double kMostSharpness = 1e4;  // times the first sigma: beta loses as many digits of f, four
// Of the gap: a round that leaves less needs no larger sigma. Chosen, not measured.
constexpr double kSlow = 0.25;
// Of the true gap: how far the smoothed problem is solved before sigma grows. Chosen, not measured.
constexpr double kInnerShare = 0.2;
// Steps in a row that bring nothing: it has stalled. Chosen, not measured.
constexpr std::int64_t kFailures = 3;
constexpr double kNoFall = 1e-15;  // of the value: some 5 eps, rounding
constexpr double kBarren = 0.99;   // of the least gap so far: less is no progress. Chosen, not measured
// Steps after which f is computed from w again. Chosen, not measured: updates add up rounding, and this costs a pass.
constexpr std::int64_t kStepsBetweenValues = 16;
// Seconds of a machine's turn. Chosen, not measured: long beside the change of machines.
constexpr double kTurn = 0.01;

double shrink(double value, double by) { return value > by ? value - by : value < -by ? value + by : 0.0; }

// beta of a row at the residual z - f.
MARGROVE_INLINE double beta_at(double residual, double anchor, double sigma, double epsilon, double low, double high) {
  const double raw = anchor + sigma * residual, by = sigma * epsilon;
  const double shrunk = std::max(raw - by, 0.0) + std::min(raw + by, 0.0);
  return std::min(std::max(shrunk, low), high);
}

// sum_i -beta_i(f + t step) step_i: the slope of the losses along the step.
MARGROVE_CLONES double loss_slope(std::int64_t n, const double* target, const double* values, const double* step,
                                  double t, const double* anchor, const double* sigma, double epsilon,
                                  const double* low, const double* high) {
  double slope[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::int64_t k = 0; k < 8; ++k)
      slope[k] -= step[i + k] * beta_at(target[i + k] - values[i + k] - t * step[i + k], anchor[i + k], sigma[i + k],
                                        epsilon, low[i + k], high[i + k]);
  for (; i < n; ++i)
    slope[0] -= step[i] * beta_at(target[i] - values[i] - t * step[i], anchor[i], sigma[i], epsilon, low[i], high[i]);
  return std::accumulate(slope, slope + 8, 0.0);
}

bool is_of_signs(L1Loss loss) { return loss == L1Loss::hinge || loss == L1Loss::squared_hinge; }

}  // namespace

L1Machine::L1Machine(const Design& design, const L1Settings& settings, const L1Start& start)
    : design_(design),
      settings_(settings),
      epsilon_(is_of_signs(settings.loss) ? 0.0 : settings.epsilon),
      target_(start.target),
      cost_(start.cost),
      is_squared_(settings.loss == L1Loss::squared_hinge || settings.loss == L1Loss::squared_epsilon_insensitive),
      is_of_signs_(is_of_signs(settings.loss)),
      n_(design.n()),
      columns_(design.columns()),
      w_(start.w.begin(), start.w.end()),
      values_(n_),
      anchor_(n_),
      base_(n_),
      sigma_(n_),
      low_(n_),
      high_(n_),
      beta_(n_),
      curvature_(n_),
      correlation_(columns_),
      column_size_(columns_),
      is_chosen_(columns_),
      gram_weight_(n_),
      step_(columns_),
      value_step_(n_),
      best_(w_, 0.0, n_) {
  if (settings.is_free) {
    correlation_up_.resize(columns_);
    correlation_down_.resize(columns_);
    positive_.resize(n_);
    negative_.resize(n_);
  }
  for (std::size_t i = 0; i < cost_.size(); ++i) {
    const double most = cost_[i] == 0 ? 0.0 : is_squared_ ? kInfinity : cost_[i];
    low_[i] = is_of_signs_ && target_[i] > 0 ? 0.0 : -most;
    high_[i] = is_of_signs_ && target_[i] < 0 ? 0.0 : most;
    sigma_[i] = 2 * cost_[i];
    if (!is_squared_ && !start.beta.empty()) anchor_[i] = std::clamp(start.beta[i], low_[i], high_[i]);
  }
  work_ = solve();
}

bool L1Machine::run(std::chrono::steady_clock::time_point until) {
  clock_.set(until);
  return work_.resume();
}

Resumable L1Machine::solve() {
  for (std::int64_t piece = 0; piece < design_.transposed_pieces(); ++piece) {
    design_.squares(piece, cost_.data(), column_size_.data());
    co_await clock_.pause();
  }
  Resumable valuing = compute_values();
  while (!valuing.resume()) co_await std::suspend_always{};
  if (!is_squared_) smooth(kFirstSharpness / mean_excess());
  while (true) {
    if (!is_fresh_ && steps_ % kStepsBetweenValues == 0) {
      Resumable part = compute_values();
      while (!part.resume()) co_await std::suspend_always{};
    }
    weigh();
    Resumable computing = compute_correlation();
    while (!computing.resume()) co_await std::suspend_always{};
    judge();
    note_progress();
    if (!std::isfinite(true_primal_)) ending_ = L1Ending::nonfinite;
    if (gap() <= settings_.tol * best_.primal()) {
      if (is_fresh_) {
        ending_ = L1Ending::converged;
      } else {  // the last word is said on values computed from w alone
        Resumable part = compute_values();
        while (!part.resume()) co_await std::suspend_always{};
        last_primal_ = kInfinity;
        best_.set_primal(kInfinity);
        continue;
      }
    }
    if (ending_ == L1Ending::none && (failures_ >= kFailures || barren_ >= kBarrenRounds)) ending_ = L1Ending::stalled;
    if (ending_ == L1Ending::none && steps_ >= settings_.max_steps) ending_ = L1Ending::max_steps;
    if (ending_ != L1Ending::none) co_return;
    if (!is_smoothed_ && short_steps_ >= kShortSteps) {
      anchor_ = best_.beta();
      smooth(needed_sharpness());
      last_primal_ = kInfinity;
      continue;
    }
    if (is_smoothed_ && (inner_gap_ <= kInnerShare * gap() || failures_ > 0)) {
      tighten();
      continue;
    }
    choose_columns();
    Resumable model = chosen_.size() <= kGramColumns ? solve_gram_model() : solve_column_model();
    while (!model.resume()) co_await std::suspend_always{};
    line_search();
    ++steps_;
  }
}

Resumable L1Machine::compute_values() {
  std::vector<std::int32_t> present;
  for (std::int64_t j = 0; j < columns_; ++j)
    if (w_[j] != 0) present.push_back(j);
  std::fill(values_.begin(), values_.end(), 0.0);
  const std::int64_t pieces = design_.product_pieces(present);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    design_.add_product(piece, present, w_.data(), values_.data());
    co_await clock_.pause();
  }
  is_fresh_ = true;
}

// beta and its slope at f, the losses and the smoothed losses.
void L1Machine::weigh() {
  double penalty = 0, smoothed = 0, losses = 0;
  for (std::int64_t j = 0; j < columns_; ++j)
    if (is_penalised(j)) penalty += std::abs(w_[j]);
  for (std::size_t i = 0; i < cost_.size(); ++i) {
    curvature_[i] = beta_[i] = 0;
    if (cost_[i] == 0) continue;
    const double residual = target_[i] - values_[i];
    const double beta = beta_at(residual, base_[i], sigma_[i], epsilon_, low_[i], high_[i]);
    const double away = beta - anchor_[i];
    beta_[i] = beta;
    curvature_[i] = beta != 0 && beta > low_[i] && beta < high_[i] ? sigma_[i] : 0.0;
    smoothed += beta * residual - epsilon_ * std::abs(beta) -
                (square_share() * beta * beta + softness() * away * away) / (2 * cost_[i]);
    const double excess = std::max(0.0, is_of_signs_ ? residual * target_[i] : std::abs(residual) - epsilon_);
    losses += cost_[i] * (is_squared_ ? excess * excess : excess);
  }
  smoothed_primal_ = penalty + smoothed;
  true_primal_ = penalty + losses;
}

Resumable L1Machine::compute_correlation() {
  std::fill(correlation_.begin(), correlation_.end(), 0.0);
  if (!settings_.is_free) {
    for (std::int64_t piece = 0; piece < design_.transposed_pieces(); ++piece) {
      design_.add_transposed(piece, beta_.data(), correlation_.data());
      co_await clock_.pause();
    }
    co_return;
  }
  // Each side by itself, so that one can be weighed down to the other.
  std::fill(correlation_up_.begin(), correlation_up_.end(), 0.0);
  std::fill(correlation_down_.begin(), correlation_down_.end(), 0.0);
  for (std::size_t i = 0; i < beta_.size(); ++i) {
    positive_[i] = std::max(beta_[i], 0.0);
    negative_[i] = std::min(beta_[i], 0.0);
  }
  for (std::int64_t piece = 0; piece < design_.transposed_pieces(); ++piece) {
    design_.add_transposed(piece, positive_.data(), correlation_up_.data());
    design_.add_transposed(piece, negative_.data(), correlation_down_.data());
    co_await clock_.pause();
  }
  for (std::size_t j = 0; j < correlation_.size(); ++j) correlation_[j] = correlation_up_[j] + correlation_down_[j];
}

// Makes beta feasible and keeps it, and w, where it is the best so far. For a free intercept the sides of beta are
// balanced first. Then theta beta, theta <= most, is feasible; and of those the best is taken:
//   D(theta) = theta gain - theta^2 square / 2 - rest,  least at theta = gain / square.
void L1Machine::judge() {
  double above = 1, below = 1;
  if (settings_.is_free) {
    const double up = std::accumulate(positive_.begin(), positive_.end(), 0.0);
    const double down = -std::accumulate(negative_.begin(), negative_.end(), 0.0);
    if (up > down) above = down / up;
    if (down > up) below = up / down;
  }
  double largest = 0;
  for (std::int64_t j = 0; j < columns_; ++j) {
    if (!is_penalised(j)) continue;
    const std::size_t at = j;
    largest = std::max(largest, std::abs(settings_.is_free ? above * correlation_up_[at] + below * correlation_down_[at]
                                                           : correlation_[at]));
  }
  double gain = 0, square = 0, inner_gain = 0, inner_square = 0, inner_rest = 0;
  for (std::size_t i = 0; i < beta_.size(); ++i) {
    if (cost_[i] == 0) continue;
    const double beta = beta_[i] * (beta_[i] > 0 ? above : below), soft = softness() / cost_[i];
    gain += target_[i] * beta - epsilon_ * std::abs(beta);
    square += beta * beta * square_share() / cost_[i];
    inner_square += beta * beta * soft;
    inner_gain += beta * anchor_[i] * soft;
    inner_rest += anchor_[i] * anchor_[i] * soft / 2;
  }
  inner_gain += gain;
  inner_square += square;
  const double most = std::min(is_squared_ ? kInfinity : 1.0, largest > 0 ? 1 / largest : kInfinity);
  const auto best = [&](double linear, double quadratic) {
    if (!(linear > 0)) return 0.0;
    return quadratic > 0 ? std::min(most, linear / quadratic) : std::isfinite(most) ? most : 0.0;
  };
  const double inner = best(inner_gain, inner_square);
  inner_gap_ = smoothed_primal_ - (inner * inner_gain - inner * inner * inner_square / 2 - inner_rest);
  if (true_primal_ < best_.primal()) best_.keep_weights(true_primal_, w_, 0.0);
  const double theta = best(gain, square), dual = theta * gain - theta * theta * square / 2;
  if (dual > best_.dual()) {
    std::vector<double> beta = beta_;
    for (double& one : beta) one = theta * one * (one > 0 ? above : below);
    best_.keep_beta(dual, std::move(beta));
  }
}

// A step has failed when neither the value nor the gap has fallen: near the end the value no longer does, for it is
// flat there to within rounding, and the gap, which is made from its slope, still can.
void L1Machine::note_progress() {
  const bool has_fallen = smoothed_primal_ + kNoFall * std::abs(smoothed_primal_) < last_primal_;
  failures_ = has_fallen || gap() < kBarren * least_gap_ ? 0 : failures_ + 1;
  last_primal_ = smoothed_primal_;
  least_gap_ = std::min(least_gap_, gap());
}

double L1Machine::mean_excess() const {
  double sum = 0, mass = 0;
  for (std::size_t i = 0; i < cost_.size(); ++i) {
    sum += cost_[i] * std::max(0.0, std::abs(target_[i] - values_[i]) - epsilon_);
    mass += cost_[i];
  }
  return sum > 0 ? sum / mass : 1.0;
}

// sigma / C at which residuals of the mean size, not tiny ones, make the best beta.
double L1Machine::needed_sharpness() const {
  double total = 0, mass = 0;
  for (std::size_t i = 0; i < cost_.size(); ++i) {
    total += std::abs(best_.beta()[i]);
    mass += beta_[i] != 0 ? cost_[i] : 0.0;
  }
  return total > 0 ? kFirstSharpness * total / (mass * mean_excess()) : 1.0;
}

void L1Machine::smooth(double sharpness) {
  if (!is_smoothed_) {
    is_smoothed_ = true;
    most_sharpness_ = kMostSharpness * sharpness;
    ridge_ = kFirstRidge;
  }
  sharpness_ = sharpness;
  for (std::size_t i = 0; i < cost_.size(); ++i) {
    sigma_[i] = steepness() * cost_[i];
    base_[i] = anchor_[i] * softness() * steepness();
  }
}

void L1Machine::tighten() {
  barren_ = gap() < kBarren * last_gap_ ? 0 : barren_ + 1;
  const bool is_slow = gap() > kSlow * last_gap_;
  last_gap_ = gap();
  last_primal_ = kInfinity;
  anchor_ = beta_;
  smooth(is_slow ? std::min(most_sharpness_, kSharpening * sharpness_) : sharpness_);
}

// The working set holds every column with a weight, and goes on being used until a column outside of it is beyond its
// bound; then those that promise most, (|v_j| - 1)^2 / size_j, come in.
void L1Machine::choose_columns() {
  const double bound = 1 + kOutsideShare * settings_.tol;
  if (columns_ <= kAllColumns) {
    if (!chosen_.empty()) return;
    chosen_.resize(columns_);
    std::iota(chosen_.begin(), chosen_.end(), 0);
  } else {
    std::vector<std::pair<double, std::int32_t>> promise;
    std::vector<std::int32_t> next;
    bool is_one_outside = chosen_.empty();
    for (std::int64_t j = 0; j < columns_; ++j) {
      const double beyond = std::abs(correlation_[j]) - 1;
      if (w_[j] != 0 || !is_penalised(j)) {
        next.push_back(j);
        is_one_outside |= !is_chosen_[j];
      } else if (beyond > 0 && column_size_[j] > 0) {
        promise.emplace_back(beyond * beyond / column_size_[j], static_cast<std::int32_t>(j));
        is_one_outside |= beyond + 1 > bound && !is_chosen_[j];
      }
    }
    if (!is_one_outside) return;
    const std::size_t taken = std::min(promise.size(), std::max(kFirstColumns, next.size()));
    std::partial_sort(
        promise.begin(), promise.begin() + static_cast<std::ptrdiff_t>(taken), promise.end(),
        [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
    for (std::size_t k = 0; k < taken; ++k) next.push_back(promise[k].second);
    std::sort(next.begin(), next.end());
    chosen_ = std::move(next);
  }
  std::fill(is_chosen_.begin(), is_chosen_.end(), char{0});
  chosen_penalty_.clear();
  for (const std::int32_t j : chosen_) {
    is_chosen_[j] = 1;
    chosen_penalty_.push_back(is_penalised(j) ? 1.0 : 0.0);
  }
  is_gram_of_chosen_ = false;
}

// The products of the chosen columns, weighted with the curvature. Only rows whose weight has changed are added or
// taken away, unless starting afresh is less work or little would be left of what is there (cancellation).
Resumable L1Machine::build_gram() {
  const std::size_t width = chosen_.size();
  std::vector<std::int32_t> changed, present;
  double mass = 0;
  for (std::size_t i = 0; i < curvature_.size(); ++i) {
    mass += curvature_[i];
    if (curvature_[i] != 0) present.push_back(i);
    if (curvature_[i] != gram_weight_[i]) changed.push_back(i);
  }
  const bool is_afresh =
      !is_gram_of_chosen_ || failures_ > 0 || changed.size() >= present.size() || mass < gram_mass_ / 16;
  std::vector<double> weight(curvature_);
  if (is_afresh) {
    if (!is_gram_of_chosen_) design_.choose(chosen_, rows_);
    gram_.assign(width * width, 0.0);
    gram_mass_ = 0;
  } else {
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] -= gram_weight_[i];
  }
  gram_mass_ = std::max(gram_mass_, mass);
  const std::span<const std::int32_t> listed = is_afresh ? present : changed;
  const std::size_t block = (design_.gram_rows(width));
  for (std::size_t from = 0; from < listed.size(); from += block) {
    design_.add_gram(chosen_, rows_, listed.subspan(from, std::min(block, listed.size() - from)), weight.data(),
                     gram_.data());
    co_await clock_.pause();
  }
  for (std::size_t r = 0; r < width; ++r)
    for (std::size_t c = 0; c < r; ++c) gram_[c * width + r] = gram_[r * width + c];
  gram_weight_ = curvature_;
  is_gram_of_chosen_ = true;
}

Resumable L1Machine::solve_gram_model() {
  Resumable building = build_gram();
  while (!building.resume()) co_await std::suspend_always{};
  std::vector<double> x0, gradient;
  for (const std::int32_t j : chosen_) {
    x0.push_back(w_[j]);
    gradient.push_back(-correlation_[j]);
  }
  std::vector<double> ridge;
  for (const std::int32_t j : chosen_) ridge.push_back(ridge_of(j));
  QuadraticL1 model({gram_, ridge, chosen_penalty_, design_.blas()}, std::move(x0), std::move(gradient));
  const double enough =
      std::max((failures_ > 0 ? kFinePrecision : kModelPrecision) * model.violation(), kModelShare * settings_.tol);
  std::int64_t passes = 0, faces = 0;
  while (faces < kMostFaces) {
    model.descend();
    co_await clock_.pause();
    if (!(model.violation() > enough)) break;
    // A step in the face costs about as much as this many passes.
    if (++passes < std::max<std::int64_t>(5, model.face_size() / kFacePasses)) continue;
    passes = 0;
    const std::int64_t chain = faces;
    for (bool is_cut = true; is_cut && faces < chain + kChain; ++faces) {
      is_cut = model.step_in_face();
      co_await clock_.pause();
    }
  }
  moved_.clear();
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    const double step = model.x()[k] - w_[chosen_[k]];
    if (step == 0) continue;
    moved_.push_back(chosen_[k]);
    step_[chosen_[k]] = step;
  }
  std::fill(value_step_.begin(), value_step_.end(), 0.0);
  const std::int64_t pieces = design_.product_pieces(moved_);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    design_.add_product(piece, moved_, step_.data(), value_step_.data());
    co_await clock_.pause();
  }
}

// The same model with its products computed as they are needed, through f: for more columns than can be held.
Resumable L1Machine::solve_column_model() {
  std::fill(value_step_.begin(), value_step_.end(), 0.0);
  std::vector<double> curvature(chosen_.size());
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    curvature[k] = design_.column_square(chosen_[k], curvature_.data()) + ridge_of(chosen_[k]);
    if (k % 64 == 0) co_await clock_.pause();
  }
  double fall = 0;
  for (int pass = 0; pass < kColumnPasses; ++pass) {
    double brought = 0;
    for (std::size_t k = 0; k < chosen_.size(); ++k) {
      const std::int32_t j = chosen_[k];
      if (k % 64 == 0) co_await clock_.pause();
      const double before = w_[j] + step_[j], penalty = chosen_penalty_[k];
      const double gradient =
          design_.column_dot(j, curvature_.data(), value_step_.data()) - correlation_[j] + ridge_of(j) * step_[j];
      const double after = curvature[k] > 0 ? shrink(before - gradient / curvature[k], penalty / curvature[k])
                           : penalty > 0    ? 0.0
                                            : before;
      const double step = after - before;
      if (step == 0) continue;
      brought -= step * (gradient + curvature[k] * step / 2) + penalty * (std::abs(after) - std::abs(before));
      step_[j] = after - w_[j];
      design_.column_add(j, step, value_step_.data());
    }
    fall += brought;
    if (!(brought > kColumnPrecision * fall)) break;
  }
  moved_.clear();
  for (const std::int32_t j : chosen_)
    if (step_[j] != 0) moved_.push_back(j);
}

// The slope of the smoothed value at w + t step, from the right.
double L1Machine::slope_at(double t) const {
  double slope = loss_slope(n_, target_.data(), values_.data(), value_step_.data(), t, base_.data(), sigma_.data(),
                            epsilon_, low_.data(), high_.data());
  for (const std::int32_t j : moved_) {
    if (!is_penalised(j)) continue;
    const double step = step_[j], there = w_[j] + t * step;
    slope += there > 0 ? step : there < 0 ? -step : std::abs(step);
  }
  return slope;
}

// The value is convex along the step: if it still falls at its end, or nearly, the whole step is taken; else about the
// place where it ceases to fall.
void L1Machine::line_search() {
  const double first = slope_at(0);
  if (first < 0) {
    double t = 1, low = 0, high = 1, slope = slope_at(1), low_slope = first, high_slope = slope;
    for (int tries = 0; tries < 40 && std::abs(slope) > -0.1 * first; ++tries) {
      if (slope < 0 && t == 1) break;
      // Between a chord's crossing and the middle: the slope may jump.
      const double chord = low + (high - low) * low_slope / (low_slope - high_slope);
      t = tries % 3 == 2 ? (low + high) / 2 : chord;
      slope = slope_at(t);
      if (slope < 0) {
        low = t, low_slope = slope;
      } else {
        high = t, high_slope = slope;
      }
      if (high - low < 1e-6 * high) break;
    }
    if (slope > 0 && t != 1) t = low > 0 ? low : t;
    for (const std::int32_t j : moved_) {
      double& weight = w_[j];
      weight = t == 1 && std::abs(weight + step_[j]) <= 1e-15 * std::abs(weight) ? 0.0 : weight + t * step_[j];
    }
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += t * value_step_[i];
    is_fresh_ = false;
    short_steps_ += t < kShortStep;
    if (t < kShortStep) ridge_ = std::max(kRidgeFactor * ridge_, kLeastRidge);
    if (t == 1) ridge_ = ridge_ > kLeastRidge ? ridge_ / kRidgeFactor : is_smoothed_ ? kLeastRidge : 0.0;
  }
  for (const std::int32_t j : moved_) step_[j] = 0;
}

void L1Machine::finish() {
  w_ = best_.w();
  clock_.set(std::chrono::steady_clock::time_point::max());
  compute_values().resume();
  weigh();
  best_.set_primal(true_primal_);
}

bool L1Svm::run(double seconds, int threads) {
  const auto until = in_seconds(seconds);
  std::vector<L1Machine*> waiting;
  do {
    waiting.clear();
    for (const auto& machine : machines_)
      if (machine->ending() == L1Ending::none) waiting.push_back(machine.get());
    parallel_for(length(waiting), threads,
                 [&](std::int64_t k) { waiting[k]->run(std::min(until, in_seconds(kTurn))); });
  } while (!waiting.empty() && std::chrono::steady_clock::now() < until);
  return waiting.empty();
}

}  // namespace margrove
