#include "svm/tile_smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "svm/pair_steps.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastCurvature = 1e-12;  // of the largest K(x, x)
constexpr double kInnerShare = 0.9;        // of tol: what is asked of SMO in T at first,
constexpr double kLeastShare = 1.0 / 16;   // and in the end
constexpr std::int64_t kShortestRun = 8;   // columns: pieces shorter than this on average are gathered one by one

}  // namespace

template <class T>
void Tile<T>::open(const Gram<T>& gram, const Dual& dual) {
  size_ = static_cast<std::int64_t>(dual.y.size());
  width_ = (size_ + kPadding - 1) / kPadding * kPadding;
  stride_ = width_ + 16;  // not a power of two: rows would fight for the same cache lines
  values_.resize(static_cast<std::size_t>(width_ * stride_));
  const auto point = [&](std::int64_t t) { return dual.point[static_cast<std::size_t>(t)]; };
  runs_.clear();  // points that follow one another are copied in one piece
  for (std::int64_t from = 0, to = 0; from < size_; from = to) {
    for (to = from + 1; to < size_ && point(to) == point(to - 1) + 1;) ++to;
    runs_.push_back({from, to});
  }
  const bool is_scattered = static_cast<std::int64_t>(runs_.size()) * kShortestRun > size_;
  index_.assign(dual.point.begin(), dual.point.end());
  own_.assign(static_cast<std::size_t>(width_), 0.0);
  largest_ = 0;
  for (std::int64_t r = 0; r < size_; ++r) {
    const T* given = gram.ready(point(r));
    T* out = values_.data() + r * stride_;
    if (is_scattered)
      gather_row(given, index_.data(), size_, out);
    else
      for (const auto& [from, to] : runs_) std::copy_n(given + point(from), to - from, out + from);
    std::fill(out + size_, out + width_, T{0});
    const double mine = static_cast<double>(out[r]);
    own_[static_cast<std::size_t>(r)] = mine;
    largest_ = std::max(largest_, std::fabs(mine));
  }
  const double measure = largest_ > 0 ? 1 / largest_ : 1.0;
  diagonal_.assign(static_cast<std::size_t>(width_), 1.0f);
  for (std::size_t k = 0; k < dual.y.size(); ++k) diagonal_[k] = static_cast<float>(measure * own_[k]);
}

template <class T>
void TileSmo<T>::open(const Tile<T>& tile) {
  tile_ = &tile;
  up_.assign(static_cast<std::size_t>(tile.width()), static_cast<T>(-kInfinity));
  low_.assign(static_cast<std::size_t>(tile.width()), static_cast<T>(kInfinity));
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
      rows_.push_back(tile_->row(static_cast<std::int64_t>(t)));
      changes_.push_back(change[t]);
    }
  add_rows(rows_.data(), changes_.data(), static_cast<std::int64_t>(rows_.size()), 0, tile_->size(), sums.data());
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
BlockEnding TileSmo<T>::advance(DualState& state, std::int64_t most_steps) {
  Dual& dual = state.dual;
  const double measure = tile_->largest() > 0 ? 1 / tile_->largest() : 1.0;
  PairProblem<T, T> pairs{1,
                          {{tile_->width(), tile_->stride(), tile_->row(0), measure, tile_->diagonal().data(), 1.0,
                            up_.data(), low_.data()},
                           {}},
                          dual.y.data(),
                          dual.upper.data(),
                          tile_->own().data(),
                          kLeastCurvature / measure,
                          dual.alpha.data()};
  const Extremes extremes = state.extremes();
  const double between = (extremes.up[0] + extremes.low[0]) / 2, middle = std::isfinite(between) ? between : 0.0;
  for (std::int64_t k = 0; k < tile_->size(); ++k) pairs.set(k, state.v[static_cast<std::size_t>(k)] - middle);
  before_ = dual.alpha;
  const std::int64_t made = solve_pairs(pairs, inner_tol_, most_steps);
  steps_ += made;
  follow(state);
  violation_ = state.extremes().gap();
  if (violation_ <= tol_) return BlockEnding::converged;
  inner_tol_ = std::max(inner_tol_ / 2, kLeastShare * tol_);
  const double now = objective_of(dual, dual.alpha, state.v);
  const bool goes_nowhere = made == 0 || watched_ - now <= 1e-14 * std::fabs(now);  // steps only follow rounding
  watched_ = now;
  return goes_nowhere ? BlockEnding::cornered : BlockEnding::running;
}

// y_t α_t falls (or grows) by a step, and y_i α_i the other way: along it the objective changes by
// −s d + ½ s² (K_ii + K_tt − 2 K_it), d the fall of v from i to t (or from t to i). The cheapest i by the unit of s is
// taken, as far as it goes, and the next.
template <class T>
void TileSmo<T>::push_out(DualState& state, std::int64_t out) {
  Dual& dual = state.dual;
  const auto t = static_cast<std::size_t>(out);
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
    const T* other = tile_->row(static_cast<std::int64_t>(taker));
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
