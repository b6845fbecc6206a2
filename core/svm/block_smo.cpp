#include "svm/block_smo.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "parallel.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastCurvature = 1e-12;  // duplicate points have none: floored, the step is then cut by the box
constexpr double kInnerShare = 0.1;        // the block is solved to this share of the present violation
constexpr std::int64_t kMostInnerSteps = 100000;

// What the inner SMO works on, in the order of the set. v as in the header, `up` 0 or -inf, `low` 0 or +inf.
template <class T>
struct Block {
  std::int64_t q;
  const T* kernel;         // (q, q)
  const double* diagonal;  // (q)
  double *v, *up, *low;
};

// The largest v over I_up, and where.
template <class T>
MARGROVE_INLINE std::int64_t worst_up_body(const Block<T>& block, double& largest) {
  largest = -kInfinity;
#pragma omp simd reduction(max : largest)
  for (std::int64_t t = 0; t < block.q; ++t) {
    const double value = block.v[t] + block.up[t];
    largest = value > largest ? value : largest;
  }
  for (std::int64_t t = 0; t < block.q; ++t)
    if (block.v[t] + block.up[t] == largest) return t;
  return -1;
}

// The partner of i in I_low by whose pair the objective falls most: (v_i - v_t)^2 / curvature is largest. Scores are
// float: they choose, they do not decide. Also the smallest v over I_low.
template <class T>
MARGROVE_INLINE std::int64_t best_partner_body(const Block<T>& block, std::int64_t i, double v_i, double& smallest,
                                               float* score) {
  const T* row = block.kernel + i * block.q;
  const double own = block.diagonal[i];
  double least = kInfinity;
  float best = 0;
#pragma omp simd reduction(min : least) reduction(max : best)
  for (std::int64_t t = 0; t < block.q; ++t) {
    const double value = block.v[t] + block.low[t];
    least = value < least ? value : least;
    const auto fall = static_cast<float>(v_i - value);  // -inf outside I_low
    const auto curve = static_cast<float>(own + block.diagonal[t] - 2 * static_cast<double>(row[t]));
    const float s = fall > 0 ? fall * fall / (curve > 1e-12f ? curve : 1e-12f) : 0.0f;
    score[t] = s;
    best = s > best ? s : best;
  }
  smallest = least;
  if (!(best > 0)) return -1;
  for (std::int64_t t = 0; t < block.q; ++t)
    if (score[t] == best) return t;
  return -1;
}

// v_t <- v_t - step (K_ti - K_tj)
template <class T>
MARGROVE_INLINE void move_pair_body(const Block<T>& block, std::int64_t i, std::int64_t j, double step) {
  const T *row_i = block.kernel + i * block.q, *row_j = block.kernel + j * block.q;
#pragma omp simd
  for (std::int64_t t = 0; t < block.q; ++t)
    block.v[t] -= step * (static_cast<double>(row_i[t]) - static_cast<double>(row_j[t]));
}

// v_j <- v_j - sum_r change_r K(x_r, x_j) over a stretch of points.
template <class T>
MARGROVE_INLINE void move_stretch_body(const T* const* rows, const double* change, std::int64_t count,
                                       std::int64_t from, std::int64_t to, double* sums) {
  for (std::int64_t r = 0; r < count; ++r) {
    const T* row = rows[r];
    const double c = change[r];
#pragma omp simd
    for (std::int64_t j = from; j < to; ++j) sums[j] -= c * static_cast<double>(row[j]);
  }
}

#define MARGROVE_SMO_LOOPS(T)                                                                                          \
  MARGROVE_CLONES std::int64_t worst_up(const Block<T>& block, double& largest) {                                      \
    return worst_up_body(block, largest);                                                                              \
  }                                                                                                                    \
  MARGROVE_CLONES std::int64_t best_partner(const Block<T>& block, std::int64_t i, double v_i, double& smallest,       \
                                            float* score) {                                                            \
    return best_partner_body(block, i, v_i, smallest, score);                                                          \
  }                                                                                                                    \
  MARGROVE_CLONES void move_pair(const Block<T>& block, std::int64_t i, std::int64_t j, double step) {                 \
    move_pair_body(block, i, j, step);                                                                                 \
  }                                                                                                                    \
  MARGROVE_CLONES void move_stretch(const T* const* rows, const double* change, std::int64_t count, std::int64_t from, \
                                    std::int64_t to, double* sums) {                                                   \
    move_stretch_body(rows, change, count, from, to, sums);                                                            \
  }
MARGROVE_SMO_LOOPS(float)
MARGROVE_SMO_LOOPS(double)
#undef MARGROVE_SMO_LOOPS

}  // namespace

// ---- kept rows

template <class T>
KeptRows<T>::KeptRows(std::int64_t n, std::int64_t bytes, std::int64_t least)
    : n_(n),
      capacity_(
          std::min(n, std::max(least, bytes / std::max<std::int64_t>(1, n * static_cast<std::int64_t>(sizeof(T)))))),
      values_(new T[static_cast<std::size_t>(capacity_ * n)]),
      slot_of_(static_cast<std::size_t>(n), -1),
      row_in_(static_cast<std::size_t>(capacity_), -1),
      used_(static_cast<std::size_t>(capacity_), 0) {}

template <class T>
const T* KeptRows<T>::find(std::int64_t i) {
  const std::int64_t slot = slot_of_[static_cast<std::size_t>(i)];
  if (slot < 0) return nullptr;
  used_[static_cast<std::size_t>(slot)] = ++clock_;
  return values_.get() + slot * n_;
}

template <class T>
void KeptRows<T>::touch_all(std::span<const std::int64_t> rows) {
  for (const std::int64_t i : rows) find(i);
}

template <class T>
T* KeptRows<T>::make(std::int64_t i) {
  std::int64_t slot = filled_;
  if (filled_ < capacity_) {
    ++filled_;
  } else {
    slot = std::min_element(used_.begin(), used_.end()) - used_.begin();
    slot_of_[static_cast<std::size_t>(row_in_[static_cast<std::size_t>(slot)])] = -1;
  }
  row_in_[static_cast<std::size_t>(slot)] = i;
  slot_of_[static_cast<std::size_t>(i)] = slot;
  used_[static_cast<std::size_t>(slot)] = ++clock_;
  return values_.get() + slot * n_;
}

// ---- the solve

template <class T>
BlockSmo<T>::BlockSmo(std::shared_ptr<const Gram<T>> gram, DualProblem problem, DualSettings settings)
    : gram_(std::move(gram)),
      problem_(std::move(problem)),
      settings_(settings),
      n_(gram_->size()),
      m_(static_cast<std::int64_t>(problem_.y.size())),
      kept_(n_, settings.cache_bytes, std::min(n_, 2 * settings.working_set)),
      v_(static_cast<std::size_t>(m_)) {}

template <class T>
bool BlockSmo<T>::in_up(std::size_t t) const {
  return problem_.y[t] > 0 ? problem_.alpha[t] < problem_.upper[t] : problem_.alpha[t] > 0;
}

template <class T>
bool BlockSmo<T>::in_low(std::size_t t) const {
  return problem_.y[t] > 0 ? problem_.alpha[t] > 0 : problem_.alpha[t] < problem_.upper[t];
}

// v at the given start: -y p, moved by every alpha that is not zero.
template <class T>
void BlockSmo<T>::start() {
  started_ = true;
  set_.clear();
  for (std::size_t t = 0; t < v_.size(); ++t) v_[t] = -problem_.y[t] * problem_.p[t];
  const std::vector<double> nothing(v_.size(), 0.0);
  std::vector<std::int64_t> nonzero;
  for (std::int64_t t = 0; t < m_; ++t)
    if (problem_.alpha[static_cast<std::size_t>(t)] != 0) nonzero.push_back(t);
  for (std::size_t from = 0; from < nonzero.size(); from += static_cast<std::size_t>(settings_.working_set)) {
    const std::size_t to = std::min(nonzero.size(), from + static_cast<std::size_t>(settings_.working_set));
    set_.assign(nonzero.begin() + static_cast<std::ptrdiff_t>(from), nonzero.begin() + static_cast<std::ptrdiff_t>(to));
    move_v(nothing);
  }
  set_.clear();
}

template <class T>
double BlockSmo<T>::measure_violation() const {
  double up = -kInfinity, low = kInfinity;
  for (std::size_t t = 0; t < v_.size(); ++t) {
    if (in_up(t)) up = std::max(up, v_[t]);
    if (in_low(t)) low = std::min(low, v_[t]);
  }
  return up - low;  // -inf where a side is empty: nothing can move
}

// Half of the last set is kept, free variables first; the worst violators of each side fill the rest, by turns.
template <class T>
void BlockSmo<T>::choose_working_set() {
  const std::int64_t q = std::min(settings_.working_set, m_);
  std::vector<std::int64_t> chosen;
  std::vector<char> is_chosen(static_cast<std::size_t>(m_), 0);
  const auto take = [&](std::int64_t t) {
    if (is_chosen[static_cast<std::size_t>(t)]) return;
    is_chosen[static_cast<std::size_t>(t)] = 1;
    chosen.push_back(t);
  };
  const auto worst = [&](bool from_up, std::int64_t count) {
    std::vector<std::int64_t> side;
    for (std::int64_t t = 0; t < m_; ++t) {
      const auto at = static_cast<std::size_t>(t);
      if (!is_chosen[at] && (from_up ? in_up(at) : in_low(at))) side.push_back(t);
    }
    const auto before = [&](std::int64_t a, std::int64_t b) {
      const double va = v_[static_cast<std::size_t>(a)], vb = v_[static_cast<std::size_t>(b)];
      if (va != vb) return from_up ? va > vb : va < vb;
      return a < b;
    };
    const auto end = side.begin() + std::min<std::int64_t>(count, static_cast<std::int64_t>(side.size()));
    std::nth_element(side.begin(), end, side.end(), before);
    side.erase(end, side.end());
    std::sort(side.begin(), side.end(), before);
    return side;
  };
  const std::vector<std::int64_t> last = set_;
  std::int64_t keep = last.empty() || m_ <= q ? 0 : q / 2;
  for (const bool want_free : {true, false})
    for (const std::int64_t t : last) {
      const auto at = static_cast<std::size_t>(t);
      const bool is_free = problem_.alpha[at] > 0 && problem_.alpha[at] < problem_.upper[at];
      if (keep > 0 && is_free == want_free && !is_chosen[at]) take(t), --keep;
    }
  const std::int64_t room = q - static_cast<std::int64_t>(chosen.size());
  const auto up = worst(true, room), low = worst(false, room);
  for (std::size_t k = 0; k < std::max(up.size(), low.size()) && static_cast<std::int64_t>(chosen.size()) < q; ++k) {
    if (k < up.size()) take(up[k]);
    if (k < low.size() && static_cast<std::int64_t>(chosen.size()) < q) take(low[k]);
  }
  for (const std::int64_t t : last)
    if (static_cast<std::int64_t>(chosen.size()) < q) take(t);
  set_ = std::move(chosen);
}

template <class T>
void BlockSmo<T>::read_block() {
  const std::size_t q = set_.size();
  std::vector<std::int64_t> points(q);
  for (std::size_t k = 0; k < q; ++k) points[k] = problem_.point[static_cast<std::size_t>(set_[k])];
  block_.resize(q * q);
  std::vector<std::int64_t> absent, place;
  for (std::size_t k = 0; k < q; ++k) {
    if (const T* kept = kept_.find(points[k])) {
      for (std::size_t l = 0; l < q; ++l) block_[k * q + l] = kept[points[l]];
    } else {
      absent.push_back(points[k]);
      place.push_back(static_cast<std::int64_t>(k));
    }
  }
  if (absent.empty()) return;
  std::vector<T> fresh(absent.size() * q);
  gram_->block(absent, points, fresh.data(), settings_.threads);
  for (std::size_t r = 0; r < absent.size(); ++r)
    std::copy_n(fresh.data() + r * q, q, block_.data() + static_cast<std::size_t>(place[r]) * q);
}

// SMO over the set. Invariant: y'alpha and the bounds hold after each step; the objective never rises. Returns the
// steps made.
template <class T>
std::int64_t BlockSmo<T>::solve_block(std::int64_t most_steps, double tolerance) {
  const std::size_t q = set_.size();
  std::vector<double> v(q), up(q), low(q), diagonal(q);
  std::vector<float> score(q);
  const auto mark = [&](std::size_t k) {
    const auto t = static_cast<std::size_t>(set_[k]);
    up[k] = in_up(t) ? 0.0 : -kInfinity;
    low[k] = in_low(t) ? 0.0 : kInfinity;
  };
  for (std::size_t k = 0; k < q; ++k) {
    const auto t = static_cast<std::size_t>(set_[k]);
    v[k] = v_[t];
    diagonal[k] = gram_->diagonal()[static_cast<std::size_t>(problem_.point[t])];
    mark(k);
  }
  const Block<T> block{static_cast<std::int64_t>(q), block_.data(), diagonal.data(), v.data(), up.data(), low.data()};
  std::int64_t made = 0;
  while (made < most_steps) {
    double largest, smallest;
    const std::int64_t i = worst_up(block, largest);
    if (i < 0 || largest == -kInfinity) break;
    const std::int64_t j = best_partner(block, i, largest, smallest, score.data());
    if (j < 0 || largest - smallest <= tolerance) break;
    const auto s = static_cast<std::size_t>(set_[static_cast<std::size_t>(i)]);
    const auto t = static_cast<std::size_t>(set_[static_cast<std::size_t>(j)]);
    // y_s alpha_s grows and y_t alpha_t falls by the same step, at most by the room that each has left.
    double &alpha_s = problem_.alpha[s], &alpha_t = problem_.alpha[t];
    const double room_s = problem_.y[s] > 0 ? problem_.upper[s] - alpha_s : alpha_s;
    const double room_t = problem_.y[t] > 0 ? alpha_t : problem_.upper[t] - alpha_t;
    const double curve = diagonal[static_cast<std::size_t>(i)] + diagonal[static_cast<std::size_t>(j)] -
                         2 * static_cast<double>(block_[static_cast<std::size_t>(i) * q + static_cast<std::size_t>(j)]);
    const double wanted =
        (v[static_cast<std::size_t>(i)] - v[static_cast<std::size_t>(j)]) / std::max(curve, kLeastCurvature);
    const double step = std::min({wanted, room_s, room_t});
    // a + (C - a) is not always C: who takes all its room is put on its bound.
    if (step == room_s)
      alpha_s = problem_.y[s] > 0 ? problem_.upper[s] : 0.0;
    else
      alpha_s += problem_.y[s] * step;
    if (step == room_t)
      alpha_t = problem_.y[t] > 0 ? 0.0 : problem_.upper[t];
    else
      alpha_t -= problem_.y[t] * step;
    mark(static_cast<std::size_t>(i));
    mark(static_cast<std::size_t>(j));
    move_pair(block, i, j, step);
    ++made;
  }
  return made;
}

template <class T>
void BlockSmo<T>::ensure_rows(const std::vector<std::int64_t>& points) {
  kept_.touch_all(points);
  std::vector<std::int64_t> absent;
  for (const std::int64_t i : points)
    if (!kept_.find(i)) absent.push_back(i);
  if (absent.empty()) return;
  std::vector<T*> rooms;
  for (const std::int64_t i : absent) rooms.push_back(kept_.make(i));
  gram_->rows(absent, rooms.data(), settings_.threads);
  rows_computed_ += static_cast<std::int64_t>(absent.size());
}

// v for all variables after the members of the set have moved from `before`.
template <class T>
void BlockSmo<T>::move_v(const std::vector<double>& before) {
  // Two variables of one point (regression) move the same kernel row: their changes add up.
  std::vector<std::int64_t> points;
  std::vector<double> change;
  std::vector<std::int64_t> place(static_cast<std::size_t>(n_), -1);
  for (const std::int64_t t : set_) {
    const auto at = static_cast<std::size_t>(t);
    const double moved = problem_.y[at] * (problem_.alpha[at] - before[at]);
    if (moved == 0) continue;
    std::int64_t& mine = place[static_cast<std::size_t>(problem_.point[at])];
    if (mine < 0) {
      mine = static_cast<std::int64_t>(points.size());
      points.push_back(problem_.point[at]);
      change.push_back(0);
    }
    change[static_cast<std::size_t>(mine)] += moved;
  }
  if (points.empty()) return;
  ensure_rows(points);
  std::vector<const T*> rows;
  for (const std::int64_t i : points) rows.push_back(kept_.find(i));
  std::vector<double> sums(static_cast<std::size_t>(n_), 0.0);
  constexpr std::int64_t kStretch = 2048;
  parallel_for((n_ + kStretch - 1) / kStretch, settings_.threads, [&](std::int64_t s) {
    move_stretch(rows.data(), change.data(), static_cast<std::int64_t>(rows.size()), s * kStretch,
                 std::min(n_, (s + 1) * kStretch), sums.data());
  });
  for (std::size_t t = 0; t < v_.size(); ++t) v_[t] += sums[static_cast<std::size_t>(problem_.point[t])];
}

template <class T>
bool BlockSmo<T>::run(std::int64_t max_steps, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  if (!started_) start();
  while (!converged_ && !stalled_ && steps_ < max_steps) {
    violation_ = measure_violation();
    if (violation_ <= settings_.tol) {
      converged_ = true;
      break;
    }
    choose_working_set();
    read_block();
    const std::vector<double> before = problem_.alpha;
    const double tolerance = std::max(settings_.tol / 2, kInnerShare * violation_);
    const std::int64_t made = solve_block(std::min(kMostInnerSteps, max_steps - steps_), tolerance);
    steps_ += made;
    ++rounds_;
    if (made == 0) stalled_ = true;  // the worst pair of all is in the set, and even it cannot move
    move_v(before);
    if (Clock::now() >= until) break;
  }
  violation_ = measure_violation();
  converged_ = violation_ <= settings_.tol;
  return converged_ || stalled_;
}

// ½ αᵀQα + pᵀα = ½ Σ α_t (p_t - y_t v_t)
template <class T>
double BlockSmo<T>::objective() const {
  double sum = 0;
  for (std::size_t t = 0; t < v_.size(); ++t) sum += problem_.alpha[t] * (problem_.p[t] - problem_.y[t] * v_[t]);
  return sum / 2;
}

template class KeptRows<float>;
template class KeptRows<double>;
template class BlockSmo<float>;
template class BlockSmo<double>;

}  // namespace margrove
