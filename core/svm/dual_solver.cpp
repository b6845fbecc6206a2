#include "svm/dual_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "index.hpp"
#include "svm/path_start.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Variables: below, all are active from the beginning. Chosen, not measured: 64 MiB of kernel values in float.
constexpr std::int64_t kSmall = 4096;
// The first active set is one of so many rows. Chosen, not measured: a smaller one misses more support vectors.
constexpr std::int64_t kFirstShare = 8;
// Share of the points: a larger active set saves too little. Chosen, not measured.
constexpr double kNearlyAll = 0.6;
// Of the mean |v - b|: variables so close to violating are active too. Chosen, not measured: less misses violators.
constexpr double kSlack = 0.1;
// Of the violation at the start: how far the first sample is solved. Chosen, not measured.
constexpr double kFirstAccuracy = 0.1;
// Of the accuracy of the last set: how far the next one is solved. Chosen, not measured.
constexpr double kNextAccuracy = 0.125;
// Of tol, and no further. Chosen, not measured: below 1, as v is rounded.
constexpr double kLastAccuracy = 0.9;
// Multiplications: more expensive kernel values are not computed again for a smaller set. Active sets gained with 22
// columns and lost with 784 (measured on a prototype); the limit between is chosen.
constexpr double kTooDear = 200;
// Active sets; what has not settled by then is solved over everything. Chosen, not measured.
constexpr std::int64_t kMostPhases = 8;
// Multiplications between two looks at the clock: some 50 ms of matrix products in float on one core.
constexpr double kPassWork = 2e9;
// Multiplications that may be spent without a look at the clock: some 0.5 s, likewise.
constexpr double kSuspectWork = 2e10;
// Points: below, every v is computed again. Chosen, not measured: a sample would save little.
constexpr std::int64_t kCheckAll = 512;
// Points, spread over all, of a check that is not of all. 256 at first; no measurement recorded.
constexpr std::int64_t kSample = 64;
// Worst points of each side, in such a check. 128 at first; no measurement recorded.
constexpr std::int64_t kCandidates = 64;
// Times the median magnitude: such points are always checked. Chosen, not measured.
constexpr double kFarOut = 4;
// Times the mean move: such a β is looked at by itself. Chosen, not measured.
constexpr double kFarMove = 4;
// Of tol: an error this large by one β alone makes a point suspect. Chosen, not measured: three of them may matter.
constexpr double kTellingShare = 0.3;
// Times the largest error in a sample: how far another point may be off. Chosen, not measured.
constexpr double kErrorMargin = 4;
constexpr std::int64_t kMostRefinements = 8;  // each but the last has at least halved the violation: 2^7 in all

}  // namespace

template <class T>
DualSolver<T>::DualSolver(std::shared_ptr<const Gram<T>> gram, std::shared_ptr<RowStore<T>> rows, MakeRows make_rows,
                          Dual dual, DualSettings settings)
    : gram_(std::move(gram)),
      shared_rows_(std::move(rows)),
      make_rows_(std::move(make_rows)),
      dual_(std::move(dual)),
      settings_(settings),
      n_(gram_->size()),
      m_(length(dual_.y)),
      v_(m_),
      known_beta_(n_, 0.0),
      moved_(n_, 0.0) {
  for (std::size_t t = 0; t < v_.size(); ++t) v_[t] = -dual_.y[t] * dual_.p[t];
  largest_diagonal_ = largest_absolute(gram_->diagonal());
  std::vector<double> magnitude(n_);
  for (std::int64_t i = 0; i < n_; ++i) magnitude[i] = gram_->magnitude(i);
  if (n_ > 0) {
    std::vector<double> ordered = magnitude;
    std::nth_element(ordered.begin(), ordered.begin() + n_ / 2, ordered.end());
    const double limit = kFarOut * ordered[n_ / 2];
    for (std::int64_t i = 0; i < n_; ++i)
      if (!(magnitude[i] <= limit)) far_out_.push_back(i);
  }
  is_whole_ = !can_shrink();
}

template <class T>
bool DualSolver<T>::can_shrink() const {
  return settings_.shrinking && !shared_rows_ && m_ > kSmall && gram_->cost() <= kTooDear;
}

// What is known stays known: v, the β it belongs to and how far that has moved are linear in α.
template <class T>
void DualSolver<T>::restart(const std::vector<double>& upper) {
  double growth = kInfinity;
  for (std::size_t t = 0; t < upper.size(); ++t)
    if (dual_.alpha[t] > 0) growth = std::min(growth, upper[t] / dual_.upper[t]);
  const double ray = growth < kInfinity ? ray_for(dual_, v_, growth) : 1.0;
  on_ray(dual_, v_, upper, ray);
  dual_.upper = upper;
  known_beta_ = beta();
  for (double& moved : moved_) moved *= ray;
  check_error_ *= ray;
  phases_ = 1;
  accuracy_ = violation();
  refinements_ = steps_ = rounds_ = rows_computed_ = 0;
  if (last_block_ && (!is_whole_ || !can_shrink())) {  // what moves next moved last, and its kernel rows are there
    std::vector<double> bounds, alpha, v;
    for (const std::int64_t variable : active_variables_) {
      const std::size_t t = variable;
      bounds.push_back(dual_.upper[t]);
      alpha.push_back(dual_.alpha[t]);
      v.push_back(v_[t]);
    }
    // At once as far as it goes: v of all others follows every phase, and that is dearer than steps.
    accuracy_ = kLastAccuracy * settings_.tol;
    block_ = std::move(last_block_);
    block_->resume(std::move(bounds), std::move(alpha), std::move(v), is_whole_ ? settings_.tol : accuracy_);
  } else {
    active_.clear();
    active_variables_.resize(m_);  // everything may violate, and its v is known
    std::iota(active_variables_.begin(), active_variables_.end(), 0);
    is_whole_ = !can_shrink();
  }
  is_cornered_ = false;
  ending_ = Ending::running;
}

template <class T>
double DualSolver<T>::unit() const {
  return dual_.hulls ? std::max(objective(), settings_.least_objective(largest_diagonal_)) : 1.0;
}

template <class T>
Extremes DualSolver<T>::extremes(const std::vector<std::int64_t>& variables) const {
  Extremes found;
  for (const std::int64_t variable : variables) {
    const std::size_t t = variable;
    found.include(dual_.group_of(t), dual_.is_up(t), dual_.is_low(t), v_[t]);
  }
  return found;
}

template <class T>
double DualSolver<T>::violation() const {
  return is_v_known_ ? extremes_of(dual_, v_).gap() / unit() : kInfinity;
}

template <class T>
double DualSolver<T>::objective() const {
  return objective_of(dual_, dual_.alpha, v_);
}

template <class T>
std::vector<double> DualSolver<T>::present_alpha() const {
  std::vector<double> alpha = dual_.alpha;
  if (!block_) return alpha;
  const std::vector<double> active = block_->alpha();
  for (std::size_t k = 0; k < active.size(); ++k) alpha[active_variables_[k]] = active[k];
  return alpha;
}

// y α, added up over the variables of each point.
template <class T>
std::vector<double> DualSolver<T>::beta() const {
  std::vector<double> sums(n_, 0.0);
  for (std::size_t t = 0; t < v_.size(); ++t)
    if (dual_.alpha[t] != 0) sums[dual_.point[t]] += dual_.y[t] * dual_.alpha[t];
  return sums;
}

// The points whose β has changed, and by how much.
template <class T>
void DualSolver<T>::note_changes(const std::vector<double>& before, const std::vector<double>& now, Pass& pass) {
  for (std::size_t i = 0; i < now.size(); ++i)
    if (now[i] != before[i]) {
      pass.changed.push_back(i);
      pass.change.push_back(now[i] - before[i]);
    }
}

// ---- phases

template <class T>
void DualSolver<T>::choose_active() {
  std::vector<char> is_active(n_, is_whole_ ? 1 : 0);
  const bool is_first = phases_ == 0;
  if (!is_whole_) {
    // b of the last active set, and how far v lies from it in the mean. Without a last set everything may violate.
    const Extremes found = extremes(active_variables_);
    double level[2], slack[2] = {0, 0}, count_of[2] = {0, 0};
    for (int g = 0; g < 2; ++g) level[g] = is_first ? 0 : (found.up[g] + found.low[g]) / 2;
    for (std::size_t t = 0; t < v_.size(); ++t) {
      slack[dual_.group_of(t)] += kSlack * std::fabs(v_[t] - level[dual_.group_of(t)]);
      count_of[dual_.group_of(t)] += 1;
    }
    for (int g = 0; g < 2; ++g) slack[g] = is_first ? kInfinity : slack[g] / std::max(1.0, count_of[g]);
    std::int64_t seen[2] = {0, 0};
    for (std::size_t t = 0; t < v_.size(); ++t) {
      const int g = dual_.group_of(t);
      const bool can_violate =
          (dual_.is_up(t) && v_[t] >= level[g] - slack[g]) || (dual_.is_low(t) && v_[t] <= level[g] + slack[g]);
      if (!can_violate) continue;
      // In the beginning everything violates: some of each sign are enough to begin with.
      if (is_first && !dual_.is_free(t) && scattered(seen[dual_.y[t] > 0]++) % kFirstShare != 0) continue;
      is_active[dual_.point[t]] = 1;
    }
    const auto count = std::count(is_active.begin(), is_active.end(), 1);
    if (static_cast<double>(count) > kNearlyAll * n_ || phases_ >= kMostPhases) {
      is_whole_ = true;
      std::fill(is_active.begin(), is_active.end(), 1);
    }
  }
  active_.clear();
  for (std::int64_t i = 0; i < n_; ++i)
    if (is_active[i]) active_.push_back(i);
  active_variables_.clear();
  for (std::int64_t t = 0; t < m_; ++t)
    if (is_active[dual_.point[t]]) active_variables_.push_back(t);
}

template <class T>
void DualSolver<T>::open_phase() {
  last_block_.reset();  // its rows lie where those of the new one will
  if (phases_ == 0) accuracy_ = violation();
  choose_active();
  accuracy_ *= phases_ == 0 ? kFirstAccuracy : kNextAccuracy;
  DualSettings settings = settings_;
  if (!is_whole_) settings.tol = std::max(kLastAccuracy * settings_.tol, accuracy_);
  std::vector<std::int64_t> place(n_, -1);
  for (std::size_t k = 0; k < active_.size(); ++k) place[active_[k]] = k;
  Dual part;
  part.by_sign = dual_.by_sign;
  part.hulls = dual_.hulls;
  std::vector<double> v;
  for (const std::int64_t variable : active_variables_) {
    const std::size_t t = variable;
    part.y.push_back(dual_.y[t]);
    part.p.push_back(dual_.p[t]);
    part.upper.push_back(dual_.upper[t]);
    part.alpha.push_back(dual_.alpha[t]);
    part.point.push_back(place[dual_.point[t]]);
    v.push_back(v_[t]);
  }
  std::shared_ptr<const Gram<T>> gram = gram_;
  std::shared_ptr<RowStore<T>> rows = shared_rows_;
  if (length(active_) < n_) gram = gram_->part(active_);
  if (!rows && is_whole_) {
    if (!whole_rows_) whole_rows_ = make_rows_(*gram_);
    rows = whole_rows_;
  }
  if (!rows) rows = make_rows_(*gram);
  block_ = std::make_unique<BlockSmo<T>>(std::move(gram), std::move(rows), std::move(part), std::move(v), settings);
  ++phases_;
}

// Takes α and v of the active variables in; v of all others is to follow.
template <class T>
void DualSolver<T>::close_phase() {
  dual_.alpha = present_alpha();
  for (std::size_t k = 0; k < active_variables_.size(); ++k) v_[active_variables_[k]] = block_->v()[k];
  for (std::size_t k = 0; k < active_.size(); ++k) moved_[active_[k]] += block_->moved()[k];
  steps_ += block_->steps();
  rounds_ += block_->rounds();
  rows_computed_ += block_->rows_computed();
  last_block_ = std::move(block_);
  open_pass();
}

// v of all points but the active ones is to follow what β has changed since v was last known.
template <class T>
void DualSolver<T>::open_pass() {
  std::vector<double> now = beta();
  pass_ = Pass{};
  note_changes(known_beta_, now, pass_);
  known_beta_ = std::move(now);
  std::vector<char> is_active(n_, 0);
  for (const std::int64_t i : active_) is_active[i] = 1;
  for (std::int64_t i = 0; i < n_; ++i)
    if (!is_active[i]) pass_.points.push_back(i);
  pass_.sums.assign(pass_.points.size(), 0.0);
  pass_.is_open = !pass_.points.empty() && !pass_.changed.empty();
  is_v_known_ = !pass_.is_open;
}

template <class T>
bool DualSolver<T>::advance(Pass& pass, Clock::time_point until) {
  const double each = std::max(1.0, pass.changed.size() * (gram_->cost() + 16));
  const std::size_t batch = std::clamp(kPassWork / each, 512.0, 65536.0);
  while (pass.done < pass.points.size()) {
    if (pass.done > 0 && Clock::now() >= until) return false;
    const std::size_t count = std::min(batch, pass.points.size() - pass.done);
    const std::span<const std::int64_t> points(pass.points.data() + pass.done, count);
    if (pass.is_exact)
      gram_->exact(pass.changed, pass.change, points, pass.sums.data() + pass.done, settings_.threads);
    else
      gram_->add_sums(pass.changed, pass.change, points, pass.sums.data() + pass.done, settings_.threads);
    pass.done += count;
  }
  return true;
}

template <class T>
void DualSolver<T>::take_in(Pass& pass) {
  std::vector<double> sums(n_, 0.0);
  for (std::size_t k = 0; k < pass.points.size(); ++k) sums[pass.points[k]] = pass.sums[k];
  for (std::size_t t = 0; t < v_.size(); ++t) v_[t] -= sums[dual_.point[t]];
  pass.is_open = false;
  is_v_known_ = true;
}

// ---- the check in double

// The worst of each side and group, and everything within `margin` of them; a sample spread over all points; and every
// point whose kernel values are made of far larger numbers than most: the sample does not speak for it.
template <class T>
std::vector<std::int64_t> DualSolver<T>::points_to_check(double margin) const {
  const Extremes found = extremes_of(dual_, v_);
  std::vector<char> is_wanted(n_, 0);
  for (std::int64_t k = 0; k < std::min(n_, kSample); ++k)
    is_wanted[scattered(k + 1) % static_cast<std::uint64_t>(n_)] = 1;
  for (const std::int64_t i : far_out_) is_wanted[i] = 1;
  for (const std::int64_t i : suspects_) is_wanted[i] = 1;
  for (int g = 0; g < (dual_.by_sign ? 2 : 1); ++g)
    for (const bool from_up : {true, false}) {
      std::vector<std::size_t> side;
      for (std::size_t t = 0; t < v_.size(); ++t)
        if (dual_.group_of(t) == g && (from_up ? dual_.is_up(t) : dual_.is_low(t))) side.push_back(t);
      const auto is_worse = [&](std::size_t a, std::size_t b) {
        return v_[a] != v_[b] ? (from_up ? v_[a] > v_[b] : v_[a] < v_[b]) : a < b;
      };
      const std::size_t few = std::min(side.size(), static_cast<std::size_t>(kCandidates));
      std::nth_element(side.begin(), side.begin() + static_cast<std::ptrdiff_t>(few), side.end(), is_worse);
      for (std::size_t k = 0; k < side.size(); ++k) {
        const double off = from_up ? found.up[g] - v_[side[k]] : v_[side[k]] - found.low[g];
        if (k < few || off <= margin) is_wanted[dual_.point[side[k]]] = 1;
      }
    }
  std::vector<std::int64_t> points;
  for (std::int64_t i = 0; i < n_; ++i)
    if (is_wanted[i]) points.push_back(i);
  return points;
}

// About how much a kernel value of row i may be off.
template <class T>
double DualSolver<T>::rounding_of(std::int64_t i) const {
  return std::numeric_limits<T>::epsilon() * (1 + 2 * gram_->magnitude(i));
}

// Points near a β that has moved much further than most, and near enough to violating: a sample of all points does not
// speak for them. False if they cannot be told from the others without looking at all.
template <class T>
bool DualSolver<T>::find_suspects() {
  suspects_.clear();
  const double mean = std::accumulate(moved_.begin(), moved_.end(), 0.0) / std::max<std::int64_t>(1, n_);
  const double telling = kTellingShare * settings_.tol * unit(), far = kFarMove * mean;
  std::vector<std::int64_t> movers;
  std::vector<double> moves;
  for (std::int64_t i = 0; i < n_; ++i) {
    const double moved = moved_[i];
    if (moved <= far || rounding_of(i) * moved <= telling) continue;
    movers.push_back(i);
    moves.push_back(moved);
  }
  if (movers.empty()) return true;
  const double work = static_cast<double>(movers.size()) * static_cast<double>(n_) * (gram_->cost() + 16);
  if (!gram_->is_nonnegative() || work > kSuspectWork) return false;
  std::vector<std::int64_t> all(n_);
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> near(n_, 0.0);
  gram_->add_sums(movers, moves, all, near.data(), settings_.threads);
  // Of those only the ones that so large an error could make the worst of their side.
  const Extremes found = extremes_of(dual_, v_);
  for (std::size_t t = 0; t < v_.size(); ++t) {
    const std::int64_t i = dual_.point[t];
    const double off = rounding_of(i) * near[i];
    const int g = dual_.group_of(t);
    if (off <= telling) continue;
    if ((dual_.is_up(t) && !(v_[t] + kErrorMargin * off <= found.up[g])) ||
        (dual_.is_low(t) && !(v_[t] - kErrorMargin * off >= found.low[g])))
      suspects_.push_back(i);
  }
  return true;
}

template <class T>
void DualSolver<T>::open_check(bool is_full) {
  check_ = Pass{};
  note_changes(std::vector<double>(n_, 0.0), beta(), check_);
  is_check_full_ = is_full || n_ <= kCheckAll || !find_suspects();
  if (is_check_full_) {
    check_.points.resize(n_);
    std::iota(check_.points.begin(), check_.points.end(), 0);
  } else {
    check_.points = points_to_check(kErrorMargin * check_error_);
  }
  check_.sums.assign(check_.points.size(), 0.0);
  check_.is_open = check_.is_exact = true;
}

template <class T>
void DualSolver<T>::conclude_check() {
  check_.is_open = false;
  std::vector<std::int64_t> place(n_, -1);
  for (std::size_t k = 0; k < check_.points.size(); ++k) place[check_.points[k]] = k;
  double error = 0;
  for (std::size_t t = 0; t < v_.size(); ++t) {
    const std::int64_t k = place[dual_.point[t]];
    if (k < 0) continue;
    const double exact = -dual_.y[t] * dual_.p[t] - check_.sums[k];
    error = std::max(error, std::fabs(exact - v_[t]));
    v_[t] = exact;
  }
  const double worst = violation();
  if (!is_check_full_) {
    check_error_ = std::max(check_error_, error);
    const std::vector<std::int64_t> wider = points_to_check(kErrorMargin * check_error_);
    const bool is_covered = std::all_of(wider.begin(), wider.end(), [&](std::int64_t i) { return place[i] >= 0; });
    if (worst <= settings_.tol && is_covered)
      ending_ = Ending::converged;
    else
      open_check(worst > settings_.tol || length(wider) > n_ / 4);
    return;
  }
  check_error_ = 0;  // v is exact again
  std::fill(moved_.begin(), moved_.end(), 0.0);
  if (worst <= settings_.tol) {
    ending_ = Ending::converged;
    return;
  }
  // Go on from the exact v, as long as that brings the violation down.
  ++refinements_;
  if (refinements_ > kMostRefinements || (refinements_ > 1 && worst > refined_violation_ / 2))
    ending_ = Ending::imprecise;
  refined_violation_ = worst;
}

// ---- the solve

template <class T>
Ending DualSolver<T>::run(std::int64_t max_steps, Clock::time_point until) {
  if (!started_) {
    started_ = true;
    open_pass();
    for (std::size_t k = 0; k < pass_.changed.size(); ++k) moved_[pass_.changed[k]] += std::fabs(pass_.change[k]);
  }
  // Each turn does one piece of work. A v that is not finite ends the solve: comparisons with NaN are false, and the
  // loop would never end.
  for (bool has_worked = false; ending_ == Ending::running; has_worked = true) {
    if (has_worked && Clock::now() >= until) break;
    if (is_v_known_ && !std::all_of(v_.begin(), v_.end(), [](double v) { return std::isfinite(v); })) {
      ending_ = Ending::imprecise;
      break;
    }
    if (pass_.is_open) {
      if (!advance(pass_, until)) break;
      take_in(pass_);
    }
    if (check_.is_open) {
      if (!advance(check_, until)) break;
      conclude_check();
      continue;
    }
    if (block_) {
      const BlockEnding ended = block_->run(max_steps - steps_, until);
      if (ended == BlockEnding::running && steps() < max_steps) break;        // out of time
      is_cornered_ = ended == BlockEnding::cornered || block_->steps() == 0;  // without a step it would be chosen again
      close_phase();
      continue;
    }
    const bool have_met = dual_.hulls && objective() <= settings_.least_objective(largest_diagonal_);
    if (have_met) {
      ending_ = Ending::converged;
    } else if (violation() <= settings_.tol) {
      open_check(false);
    } else if (steps_ >= max_steps) {
      break;
    } else if (is_cornered_ && is_whole_) {
      is_cornered_ = false;
      open_check(true);  // it was rounding that stood in the way, or nothing can be done
    } else {
      is_whole_ = is_whole_ || is_cornered_;
      open_phase();
    }
  }
  return ending_;
}

template <class T>
void DualSolver<T>::settle() {
  if (block_) close_phase();
  const double work =
      static_cast<double>(pass_.changed.size()) * static_cast<double>(pass_.points.size()) * (gram_->cost() + 16);
  if (!pass_.is_open || work > kSuspectWork) return;
  advance(pass_, Clock::time_point::max());
  take_in(pass_);
}

template class DualSolver<float>;
template class DualSolver<double>;

}  // namespace margrove
