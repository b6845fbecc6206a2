#include "linear/crammer_singer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "index.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

// Visits without a change after which a row is left out. Chosen, not measured: after one it may only have waited for
// others.
constexpr std::uint8_t kIdle = 2;
// Rows of a piece of the look at the gap, fixed so that sums do not depend on threads. Chosen, not measured.
constexpr std::int64_t kRowsOfALook = 1024;
// Multiplications between two looks at the clock. Chosen, not measured: well below a millisecond.
constexpr std::int64_t kWorkBetweenLooks = 1 << 16;
// Passes between two looks at the gap, at least. A look costs about a pass: a quarter of the time at most.
constexpr double kLeastPasses = 3;
// Of all visits so far: the least between two looks at the gap. 0.15 at first; no measurement recorded.
constexpr double kWorkShare = 0.3;
// Decisions that differ by less are equal: some 500 eps, as they are about 1 at the margin.
constexpr double kAtItsBest = 1e-13;
constexpr double kNoStep = 1e-14;      // of beta: some 50 eps, rounding and no change
constexpr double kNoGain = 1e-15;      // of the dual value: some 5 eps, rounding
constexpr double kBarren = 0.99;       // of the least gap so far: less is no progress. Chosen, not measured
constexpr std::int64_t kPatience = 5;  // looks at the gap without progress: it has stalled. Chosen, not measured

template <class T, class Body>
MARGROVE_INLINE void each_entry(const DenseRows<T>& rows, std::int64_t i, Body&& body) {
  const T* row = rows.row(i);
  for (std::int64_t j = 0; j < rows.d; ++j) body(j, row[j]);
}
template <class T, class Body>
MARGROVE_INLINE void each_entry(const CsrRows<T>& rows, std::int64_t i, Body&& body) {
  for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) body(rows.column[k], rows.data[k]);
}

// out (stride) = constant w_d + sum_j x_ij w_j, `Width` vectors of classes at a time so that their sums stay in
// registers.
template <int Width, class Rows>
MARGROVE_INLINE void decide_some(const Rows& rows, std::int64_t i, const double* w, std::int64_t stride,
                                 double constant, double* out) {
  Wide sum[Width];
  for (int v = 0; v < Width; ++v) sum[v] = constant * load_wide(w + rows.d * stride + v * kLanes);
  each_entry(rows, i, [&](std::int64_t j, double x) MARGROVE_INLINE_LAMBDA {
    const double* line = w + j * stride;
    for (int v = 0; v < Width; ++v) sum[v] += x * load_wide(line + v * kLanes);
  });
  for (int v = 0; v < Width; ++v) store(out + v * kLanes, sum[v]);
}
template <class Rows>
MARGROVE_INLINE void decide_body(const Rows& rows, std::int64_t i, const double* w, std::int64_t stride,
                                 double constant, double* out) {
  std::int64_t k = 0;
  for (; k + 8 * kLanes <= stride; k += 8 * kLanes) decide_some<8>(rows, i, w + k, stride, constant, out + k);
  for (; k + 3 * kLanes <= stride; k += 3 * kLanes) decide_some<3>(rows, i, w + k, stride, constant, out + k);
  for (; k + 2 * kLanes <= stride; k += 2 * kLanes) decide_some<2>(rows, i, w + k, stride, constant, out + k);
  for (; k < stride; k += kLanes) decide_some<1>(rows, i, w + k, stride, constant, out + k);
}

// w_jk += step_k x_ij.
template <class Rows>
MARGROVE_INLINE void add_step_body(const Rows& rows, std::int64_t i, double* w, std::int64_t stride, double constant,
                                   const double* step) {
  each_entry(rows, i, [&](std::int64_t j, double x) MARGROVE_INLINE_LAMBDA {
    if (x == 0) return;
    double* line = w + j * stride;
    for (std::int64_t k = 0; k < stride; k += kLanes) store(line + k, load_wide(line + k) + x * load_wide(step + k));
  });
  double* line = w + rows.d * stride;
  for (std::int64_t k = 0; k < stride; ++k) line[k] += constant * step[k];
}

#define MARGROVE_CLASSES_LOOPS(ROWS)                                                                                   \
  MARGROVE_CLONES void decide(const ROWS& rows, std::int64_t i, const double* w, std::int64_t stride, double constant, \
                              double* out) {                                                                           \
    decide_body(rows, i, w, stride, constant, out);                                                                    \
  }                                                                                                                    \
  MARGROVE_CLONES void add_step(const ROWS& rows, std::int64_t i, double* w, std::int64_t stride, double constant,     \
                                const double* step) {                                                                  \
    add_step_body(rows, i, w, stride, constant, step);                                                                 \
  }
MARGROVE_CLASSES_LOOPS(DenseRows<float>)
MARGROVE_CLASSES_LOOPS(DenseRows<double>)
MARGROVE_CLASSES_LOOPS(CsrRows<float>)
MARGROVE_CLASSES_LOOPS(CsrRows<double>)
#undef MARGROVE_CLASSES_LOOPS

std::int64_t work_of(const DenseRows<float>& rows, std::int64_t) { return rows.d; }
std::int64_t work_of(const DenseRows<double>& rows, std::int64_t) { return rows.d; }
template <class T>
std::int64_t work_of(const CsrRows<T>& rows, std::int64_t i) {
  return rows.start[i + 1] - rows.start[i];
}

// t with  sum_k max(0, value_k - t) = offset + slope t,  slope 0 or 1: values no larger than t are dropped until there
// is none (Michelot). `value` is reordered.
double threshold(double* value, std::int64_t size, double offset, int slope) {
  while (true) {
    const double t = (std::accumulate(value, value + size, 0.0) - offset) / (size + slope);
    const std::int64_t left = std::partition(value, value + size, [&](double v) { return v > t; }) - value;
    if (left == size || left + slope == 0) return t;
    size = left;
  }
}

}  // namespace

CrammerSinger::CrammerSinger(AnyRows rows, std::span<const std::int32_t> codes, std::span<const double> cost,
                             std::span<const double> beta, const CrammerSingerSettings& settings)
    : rows_(rows),
      codes_(codes),
      cost_(cost),
      settings_(settings),
      stride_((settings.classes + kLanes - 1) / kLanes * kLanes),
      beta_(beta.begin(), beta.end()),
      decision_(stride_),
      others_(stride_),
      step_(stride_),
      random_(settings.seed) {
  std::visit(
      [&](const auto& r) {
        n_ = r.n, d_ = r.d;
        work_ = solve(r);
      },
      rows_);
  w_.resize((d_ + 1) * stride_);
  beta_.resize(n_ * settings.classes);
  size_.resize(n_);
  idle_.resize(n_);
  is_awake_.resize(n_);
}

double CrammerSinger::weight(std::int64_t k, std::int64_t column) const { return w_[column * stride_ + k]; }

bool CrammerSinger::run(double seconds, int threads) {
  clock_.set(in_seconds(seconds));
  threads_ = threads;
  return work_.resume();
}

template <class Rows>
void CrammerSinger::compute_weights(const Rows& rows) {
  std::fill(w_.begin(), w_.end(), 0.0);
  for (std::int64_t i = 0; i < n_; ++i) {
    const double* beta = beta_.data() + i * settings_.classes;
    if (std::all_of(beta, beta + settings_.classes, [](double b) { return b == 0; })) continue;
    std::copy(beta, beta + settings_.classes, step_.begin());
    add_step(rows, i, w_.data(), stride_, settings_.constant, step_.data());
  }
}

// The losses of a piece of the rows; and which of them are not at their best: beta is where
// g_k = f_k - [k = z] is equal for all k with beta_k < U_k and no larger for the others.
template <class Rows>
double CrammerSinger::look(const Rows& rows, std::int64_t piece) {
  std::vector<double> decision(stride_);
  double losses = 0;
  for (std::int64_t i = piece * kRowsOfALook; i < std::min(n_, (piece + 1) * kRowsOfALook); ++i) {
    if (cost_[i] == 0) continue;
    decide(rows, i, w_.data(), stride_, settings_.constant, decision.data());
    const std::int64_t own = codes_[i];
    const double* beta = beta_.data() + i * settings_.classes;
    const double reached = decision[own] - 1;
    double most = -std::numeric_limits<double>::infinity(), least = std::numeric_limits<double>::infinity();
    for (std::int64_t k = 0; k < settings_.classes; ++k) {
      if (k == own) continue;
      most = std::max(most, decision[k]);
      if (beta[k] < 0) least = std::min(least, decision[k]);
    }
    losses += cost_[i] * std::max(0.0, most - reached);
    if (beta[own] < cost_[i]) least = std::min(least, reached);
    is_awake_[i] = std::max(most, reached) - least > kAtItsBest;
  }
  return losses;
}

void CrammerSinger::settle_gap(const std::vector<double>& losses) {
  double square = 0, gain = 0;
  for (const double weight : w_) square += weight * weight;
  for (std::int64_t i = 0; i < n_; ++i) gain += beta_[i * settings_.classes + codes_[i]];
  primal_ = square / 2 + std::accumulate(losses.begin(), losses.end(), 0.0);
  dual_ = gain - square / 2;
}

void CrammerSinger::finish(int threads) {
  std::visit(
      [&](const auto& rows) {
        compute_weights(rows);
        std::vector<double> losses((n_ + kRowsOfALook - 1) / kRowsOfALook);
        parallel_for(length(losses), threads, [&](std::int64_t piece) { losses[piece] = look(rows, piece); });
        settle_gap(losses);
      },
      rows_);
}

// Sets the row's K variables to their best, the others being what they are; whether that moved them.
//
//   min 1/2 A ||beta||^2 + sum_k p_k beta_k,   p_k = f_k - [k = z] - A beta_k(now),   A = ||x||^2,
//
// within the bounds C at z, else 0. beta_k = -max(0, p_k - t)/A for the others, and they sum to -beta_z, where
// beta_z = (t - p_z)/A; or to -C if that is less. (C alone in the formula would drown beta where it is huge.)
template <class Rows>
bool CrammerSinger::visit(const Rows& rows, std::int64_t i) {
  const std::int64_t classes = settings_.classes, own = codes_[i];
  const double cost = cost_[i], size = size_[i];
  double* beta = beta_.data() + i * classes;
  if (!(size > 0)) {  // a row of zeros: no w lowers its loss, so beta is at its bounds
    const bool is_new = beta[own] != cost;
    std::fill(beta, beta + classes, 0.0);
    beta[own] = cost;
    beta[own == 0 ? 1 : 0] = -cost;
    return is_new;
  }
  decide(rows, i, w_.data(), stride_, settings_.constant, decision_.data());
  decision_[own] -= 1;
  std::int64_t others_in = 0;
  for (std::int64_t k = 0; k < classes; ++k)
    if (k != own) others_[others_in++] = decision_[k] - size * beta[k];
  const double own_level = decision_[own] - size * beta[own];
  double t = threshold(others_.data(), others_in, -own_level, 1);
  if (t - own_level > size * cost) t = threshold(others_.data(), others_in, size * cost, 0);
  double moved = 0, others = 0, gain = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    if (k == own) continue;
    const double to = std::min(0.0, (t - decision_[k]) / size + beta[k]);
    step_[k] = to - beta[k];
    others += to;
  }
  step_[own] = std::min(cost, -others) - beta[own];
  for (std::int64_t k = 0; k < classes; ++k) {
    const double step = step_[k];
    moved = std::max(moved, std::abs(step));
    gain -= step * (decision_[k] + size * step / 2);
  }
  if (!(moved > kNoStep * std::max(std::abs(others), std::abs(beta[own])))) return false;
  pass_gain_ += gain;
  for (std::int64_t k = 0; k < classes; ++k) beta[k] += step_[k];
  beta[own] = std::min(beta[own], cost);
  add_step(rows, i, w_.data(), stride_, settings_.constant, step_.data());
  return true;
}

template <class Rows>
Resumable CrammerSinger::solve(const Rows& rows) {
  for (std::int64_t i = 0; i < n_; ++i) {
    double size = settings_.constant * settings_.constant;
    each_entry(rows, i, [&](std::int64_t, double x) { size += x * x; });
    size_[i] = size;
    if (!std::isfinite(size)) ending_ = PassesEnding::nonfinite;
  }
  compute_weights(rows);
  co_await clock_.pause();
  std::int64_t visits = 0, looked_at = 0;
  for (std::int64_t i = 0; i < n_; ++i)
    if (cost_[i] > 0) active_.push_back(i);
  const std::int64_t rows_in = std::max<std::int64_t>(1, length(active_));
  while (ending_ == PassesEnding::none) {
    pass_gain_ = 0;
    for (std::uint32_t left = active_.size(); left > 1; --left)
      std::swap(active_[left - 1], active_[random_.below(left)]);
    std::size_t kept = 0;
    std::int64_t work = 0;
    for (std::size_t at = 0; at < active_.size(); ++at) {
      const std::int64_t i = active_[at];
      std::uint8_t& idle = idle_[i];
      idle = visit(rows, i) ? std::uint8_t{0} : static_cast<std::uint8_t>(std::min<int>(kIdle, idle + 1));
      if (idle < kIdle) active_[kept++] = i;
      if ((work += (work_of(rows, i) + 16) * stride_) < kWorkBetweenLooks) continue;
      work = 0;
      co_await clock_.pause();
    }
    visits += length(active_);
    active_.resize(kept);
    passes_ = (visits + rows_in - 1) / rows_in;
    const bool is_over = passes_ >= settings_.max_passes || active_.empty();
    const double since = visits - looked_at;
    if (!is_over && since < std::max(kLeastPasses * rows_in, kWorkShare * visits)) continue;
    looked_at = visits;
    std::vector<double> losses((n_ + kRowsOfALook - 1) / kRowsOfALook);
    std::atomic<std::int64_t> next{0};
    while (!go_on(next, length(losses), threads_, clock_.until(),
                  [&](std::int64_t piece) { losses[piece] = look(rows, piece); }))
      co_await std::suspend_always{};
    settle_gap(losses);
    active_.clear();
    for (std::int64_t i = 0; i < n_; ++i)
      if (is_awake_[i]) active_.push_back(i);
    // Near the end D is flat to within rounding, and P, which is not, still falls.
    const bool has_gained =
        dual_ > last_dual_ + kNoGain * std::abs(last_dual_) || primal_ - dual_ < kBarren * least_gap_;
    looks_without_gain_ = has_gained ? 0 : looks_without_gain_ + 1;
    last_dual_ = dual_;
    least_gap_ = std::min(least_gap_, primal_ - dual_);
    if (!std::isfinite(primal_)) {
      ending_ = PassesEnding::nonfinite;
    } else if (primal_ - dual_ <= settings_.tol * primal_) {
      ending_ = PassesEnding::converged;
    } else if (passes_ >= settings_.max_passes) {
      ending_ = PassesEnding::max_passes;
    } else if (looks_without_gain_ >= kPatience) {
      ending_ = PassesEnding::stalled;
    }
  }
}

}  // namespace margrove
