#include "svm/tile_smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "index.hpp"
#include "svm/pair_steps.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of tol: what SMO in T has to reach at first; below 1, as v in double may violate more. Chosen, not measured.
constexpr double kInnerShare = 0.9;
constexpr double kLeastShare = 1.0 / 16;  // of tol: the same in the end, after four halvings. Chosen, not measured
// Variables: below, all are looked at in every step. Their tile is 2.25 MiB in float. Chosen, not measured.
constexpr std::int64_t kLarge = 768;
// Variables to each step over all of them, before it goes on over a part. No measurement recorded.
constexpr std::int64_t kWholeSteps = 8;
// Of all variables: no more are worth a tile of their own. Chosen, not measured: copying it must pay.
constexpr double kFew = 0.6;
constexpr double kPartShare = 0.1;  // of the violation: how far a part is solved, as kInnerShare of block_smo.cpp
// Columns: runs shorter than this on average are gathered one by one. Chosen, not measured.
constexpr std::int64_t kShortestRun = 8;

}  // namespace

// For the places `index_` of where the values come from; `own_` is set.
template <class T>
void Tile<T>::resize() {
  size_ = length(index_);
  width_ = (size_ + kPadding - 1) / kPadding * kPadding;
  stride_ = width_ + 16;  // not a power of two: rows would fight for the same cache lines
  const std::size_t cells = width_ * stride_;
  if (room_ < cells) values_ = large_memory<T>(room_ = cells);
  n_made_ = 0;
  rows_.assign(width_, nullptr);
  find_runs(index_, runs_);
  is_scattered_ = length(runs_) * kShortestRun > size_;
  own_.resize(width_, 0.0);
  largest_ = largest_absolute(own_);
  const double measure = largest_ > 0 ? 1 / largest_ : 1.0;
  diagonal_.assign(width_, 1.0f);
  for (std::size_t r = 0; r < index_.size(); ++r) diagonal_[r] = static_cast<float>(measure * own_[r]);
}

template <class T>
void Tile<T>::open(std::shared_ptr<const Gram<T>> gram, const std::vector<std::int64_t>& points) {
  gram_ = std::move(gram);
  whole_ = nullptr;
  index_.assign(points.begin(), points.end());
  own_.clear();
  for (const std::int64_t point : points) own_.push_back(gram_->diagonal()[point]);
  resize();
}

template <class T>
void Tile<T>::open(Tile& whole, const std::vector<std::int32_t>& chosen) {
  gram_.reset();
  whole_ = &whole;
  index_ = chosen;
  own_.clear();
  for (const std::int32_t t : chosen) own_.push_back(whole.own()[t]);
  resize();
}

template <class T>
const T* Tile<T>::made(std::int64_t i) {
  const std::int64_t there = index_[i];
  const T* given = whole_ ? whole_->row(there) : gram_->ready(there);
  T* out = values_.get() + n_made_++ * stride_;
  if (is_scattered_)
    gather_row(given, index_.data(), size_, out);
  else
    for (const auto& [from, to] : runs_) std::copy_n(given + index_[from], to - from, out + from);
  std::fill(out + size_, out + width_, T{0});
  return rows_[i] = out;
}

template <class T>
void Tile<T>::make_all_rows() {
  for (std::int64_t i = 0; i < size_; ++i) row(i);
}

template <class T>
void TileSmo<T>::open(Tile<T>& tile) {
  tile_ = &tile;
  up_.assign(tile.width(), static_cast<T>(-kInfinity));
  low_.assign(tile.width(), static_cast<T>(kInfinity));
}

template <class T>
void TileSmo<T>::begin(double tol) {
  tol_ = tol;
  inner_tol_ = kInnerShare * tol;
  watched_ = kInfinity;
  steps_ = 0;
}

template <class T>
void TileSmo<T>::add_products(const std::vector<double>& change, std::vector<double>& sums) {
  rows_.clear();
  changes_.clear();
  for (std::size_t t = 0; t < change.size(); ++t)
    if (change[t] != 0) {
      rows_.push_back(tile_->row(t));
      changes_.push_back(change[t]);
    }
  add_rows(rows_.data(), changes_.data(), length(rows_), 0, tile_->size(), sums.data());
}

template <class T>
void TileSmo<T>::follow(DualState& state) {
  const Dual& dual = state.dual;
  change_.resize(before_.size());
  for (std::size_t t = 0; t < before_.size(); ++t) change_[t] = dual.y[t] * (dual.alpha[t] - before_[t]);
  sums_.assign(before_.size(), 0.0);
  add_products(change_, sums_);
  for (std::size_t t = 0; t < before_.size(); ++t) state.v[t] -= sums_[t];
}

template <class T>
std::int64_t TileSmo<T>::make_steps(Tile<T>& tile, DualState& state, double tolerance, std::int64_t most_steps) {
  const double measure = tile.largest() > 0 ? 1 / tile.largest() : 1.0;
  Dual& dual = state.dual;
  PairProblem<T> pairs{
      1,
      {{tile.width(), tile.rows(), &tile, measure, tile.diagonal().data(), 1.0, up_.data(), low_.data()}, {}},
      dual.y.data(),
      dual.upper.data(),
      tile.own().data(),
      dual.alpha.data()};
  const Extremes extremes = state.extremes();
  const double between = (extremes.up[0] + extremes.low[0]) / 2, middle = std::isfinite(between) ? between : 0.0;
  for (std::int64_t k = 0; k < tile.size(); ++k) pairs.set(k, state.v[k] - middle);
  for (std::int64_t k = tile.size(); k < tile.width(); ++k) {
    up_[k] = static_cast<T>(-kInfinity);
    low_[k] = static_cast<T>(kInfinity);
  }
  return solve_pairs(pairs, tolerance, most_steps);
}

// Those that can be part of a violating pair, or would be if v moved by as much as the violation; whether they are few.
template <class T>
bool TileSmo<T>::choose_active(const DualState& state, const Extremes& extremes) {
  const double gap = extremes.gap();
  active_.clear();
  for (std::size_t t = 0; t < state.v.size(); ++t)
    if ((state.dual.is_up(t) && state.v[t] > extremes.low[0] - gap) ||
        (state.dual.is_low(t) && state.v[t] < extremes.up[0] + gap))
      active_.push_back(t);
  return static_cast<double>(active_.size()) <= kFew * state.v.size();
}

template <class T>
BlockEnding TileSmo<T>::advance(DualState& state, std::int64_t most_steps) {
  Dual& dual = state.dual;
  const Extremes extremes = state.extremes();
  before_ = dual.alpha;
  std::int64_t made = 0;
  if (tile_->size() < kLarge) {
    made = make_steps(*tile_, state, inner_tol_, most_steps);
  } else if (steps_ >= tile_->size() / kWholeSteps && choose_active(state, extremes)) {
    part_.open(*tile_, active_);
    Dual& part = part_state_.dual;
    for (auto* values : {&part.p, &part.upper, &part.alpha, &part_state_.v}) values->clear();
    part.y.clear();
    for (const std::int32_t k : active_) {
      const std::size_t t = k;
      part.y.push_back(dual.y[t]);
      part.p.push_back(dual.p[t]);
      part.upper.push_back(dual.upper[t]);
      part.alpha.push_back(dual.alpha[t]);
      part_state_.v.push_back(state.v[t]);
    }
    made = make_steps(part_, part_state_, std::max(inner_tol_, kPartShare * extremes.gap()), most_steps);
    for (std::size_t k = 0; k < active_.size(); ++k) dual.alpha[active_[k]] = part.alpha[k];
  } else {
    made = make_steps(*tile_, state, inner_tol_, std::min(most_steps, tile_->size() / kWholeSteps));
  }
  steps_ += made;
  follow(state);
  violation_ = state.extremes().gap();
  if (violation_ <= tol_) return BlockEnding::converged;
  if (violation_ <= 2 * tol_) inner_tol_ = std::max(inner_tol_ / 2, kLeastShare * tol_);
  const double now = objective_of(dual, dual.alpha, state.v);
  const bool goes_nowhere = made == 0 || !(watched_ - now > 1e-14 * std::fabs(now));  // steps only follow rounding
  watched_ = now;
  return goes_nowhere ? BlockEnding::cornered : BlockEnding::running;
}

// y_t α_t falls (or grows) by a step, and y_i α_i the other way: along it the objective changes by
// −s d + ½ s² (K_ii + K_tt − 2 K_it), d the fall of v from i to t (or from t to i). The cheapest i by the unit of s is
// taken, as far as it goes, and the next.
template <class T>
void TileSmo<T>::push_out(DualState& state, std::int64_t out) {
  Dual& dual = state.dual;
  const std::size_t t = out;
  const bool falls = dual.y[t] > 0;  // y_t α_t
  before_ = dual.alpha;
  std::vector<double> left = state.v;  // v as it goes
  while (dual.alpha[t] > 0) {
    std::size_t taker = t;
    double cheapest = kInfinity, size = 0;
    const T* row = tile_->row(out);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (i == t || !(falls ? dual.is_up(i) : dual.is_low(i))) continue;
      const bool grows = (dual.y[i] > 0) == falls;
      const double s = std::min(dual.alpha[t], grows ? dual.upper[i] - dual.alpha[i] : dual.alpha[i]);
      const double fall = falls ? left[i] - left[t] : left[t] - left[i];
      const double curve = tile_->own()[i] + tile_->own()[t] - 2 * static_cast<double>(row[i]);
      const double cost = s * curve / 2 - fall;
      if (cost < cheapest) cheapest = cost, taker = i, size = s;
    }
    if (taker == t) break;  // nobody can take it: the other side carries nothing
    const bool grows = (dual.y[taker] > 0) == falls;
    const double room = grows ? dual.upper[taker] - dual.alpha[taker] : dual.alpha[taker];
    dual.alpha[taker] = size == room ? (grows ? dual.upper[taker] : 0.0) : dual.alpha[taker] + (grows ? size : -size);
    dual.alpha[t] = size == dual.alpha[t] ? 0.0 : dual.alpha[t] - size;
    const T* other = tile_->row(taker);
    const double moved = falls ? size : -size;
    for (std::size_t i = 0; i < left.size(); ++i)
      left[i] -= moved * (static_cast<double>(other[i]) - static_cast<double>(row[i]));
  }
  follow(state);
}

template class Tile<float>;
template class Tile<double>;
template class TileSmo<float>;
template class TileSmo<double>;

}  // namespace margrove
