#include "svm/block_smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "index.hpp"
#include "parallel.hpp"
#include "svm/pair_steps.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of the present violation: how far a block is solved. Measured on a prototype: 542 rounds with 0.3, 371 with 0.1, 350
// with 0.03 and more steps in each.
constexpr double kInnerShare = 0.1;
// Steps of a round, without a look at the clock: up to 0.1 s at 0.3 to 1 µs each (measured on a prototype).
constexpr std::int64_t kMostInnerSteps = 100000;
// Variables of a working set: half of all at most, but 256 at any rate. Chosen, not measured.
constexpr std::int64_t kLeastWorkingSet = 256, kWorkingShare = 2;
constexpr std::int64_t kStretch = 2048;  // columns of kept rows added at a time: 16 KiB of sums, in L1
constexpr std::int64_t kBatch = 256;  // rows computed between two looks at the clock: a tile of them (dense_gram.cpp)
// Rounds between two looks at whether anything still moves. Chosen, not measured: each is a pass over all variables.
constexpr std::int64_t kWatchRounds = 256;
// Multiplications: a more expensive value is read from a kept row. Chosen, not measured, as kTooDear of
// dual_solver.cpp.
constexpr double kGatherCost = 200;

// Small problems have few support vectors: most of a large set would be carried along for nothing.
std::int64_t working_set_for(std::int64_t variables, std::int64_t most) {
  return std::min({variables, most, std::max(kLeastWorkingSet, variables / kWorkingShare)});
}

}  // namespace

template <class T>
BlockSmo<T>::BlockSmo(std::shared_ptr<const Gram<T>> gram, std::shared_ptr<RowStore<T>> rows, Dual dual,
                      std::vector<double> v, DualSettings settings)
    : gram_(std::move(gram)),
      rows_(std::move(rows)),
      dual_(std::move(dual)),
      settings_(settings),
      n_(gram_->size()),
      m_(length(dual_.y)),
      size_(working_set_for(m_, settings.working_set)),
      groups_(dual_.by_sign ? 2 : 1),
      v_(std::move(v)),
      moved_(n_, 0.0),
      flags_(m_),
      width_((size_ + kPadding - 1) / kPadding * kPadding),
      member_(width_, -1),
      entered_(width_, 0),
      stride_((width_ + 15) / 16 * 16 + 16),  // not a power of two: columns would fight for the same cache lines
      before_(width_) {
  block_.resize(width_ * stride_);
  for (std::size_t t = 0; t < v_.size(); ++t) mark(t);
  largest_diagonal_ = largest_absolute(gram_->diagonal());
}

template <class T>
void BlockSmo<T>::resume(std::vector<double> upper, std::vector<double> alpha, std::vector<double> v, double tol) {
  dual_.upper = std::move(upper);
  dual_.alpha = std::move(alpha);
  v_ = std::move(v);
  settings_.tol = tol;
  std::fill(moved_.begin(), moved_.end(), 0.0);
  steps_ = rounds_ = rows_computed_ = 0;
  for (std::size_t t = 0; t < v_.size(); ++t) mark(t);
  pending_.is_open = false;
  ending_ = BlockEnding::running;
  watched_round_ = 0;
}

template <class T>
void BlockSmo<T>::mark(std::size_t t) {
  flags_[t] = (dual_.is_up(t) ? 1 : 0) | (dual_.is_low(t) ? 2 : 0);
}

template <class T>
double BlockSmo<T>::unit() const {
  return dual_.hulls ? std::max(objective(), settings_.least_objective(largest_diagonal_)) : 1.0;
}

template <class T>
Extremes BlockSmo<T>::extremes() const {
  Extremes found;
  for (std::size_t t = 0; t < v_.size(); ++t) found.include(dual_.group_of(t), is_up(t), is_low(t), v_[t]);
  return found;
}

template <class T>
double BlockSmo<T>::violation() const {
  return extremes().gap() / unit();
}

template <class T>
std::vector<double> BlockSmo<T>::alpha() const {
  std::vector<double> alpha = dual_.alpha;
  if (pending_.is_open)  // a round that is not finished has not happened
    for (std::size_t k = 0; k < member_.size(); ++k)
      if (member_[k] >= 0) alpha[member_[k]] = before_[k];
  return alpha;
}

template <class T>
double BlockSmo<T>::objective() const {
  return pending_.is_open ? objective_of(dual_, alpha(), v_) : objective_of(dual_, dual_.alpha, v_);
}

// ---- v follows α

// Two variables of one point (regression) move the same kernel row: their changes add up.
template <class T>
void BlockSmo<T>::open_pending() {
  std::vector<std::int64_t> place(n_, -1);
  pending_.points.clear();
  pending_.change.clear();
  for (std::size_t k = 0; k < member_.size(); ++k) {
    if (member_[k] < 0) continue;
    const std::size_t t = member_[k];
    const double moved = dual_.y[t] * (dual_.alpha[t] - before_[k]);
    if (moved == 0) continue;
    std::int64_t& mine = place[dual_.point[t]];
    if (mine < 0) {
      mine = length(pending_.points);
      pending_.points.push_back(dual_.point[t]);
      pending_.change.push_back(0);
    }
    pending_.change[mine] += moved;
    moved_[dual_.point[t]] += std::fabs(moved);
  }
  pending_.sums.assign(n_, 0.0);
  pending_.done = 0;
  pending_.is_open = true;

  // Rows that are there already are read at once; those that must be made stay pending.
  std::vector<const T*> kept;
  std::vector<double> change;
  std::vector<std::int64_t> absent;
  std::vector<double> absent_change;
  for (std::size_t k = 0; k < pending_.points.size(); ++k) {
    const std::int64_t i = pending_.points[k];
    const T* row = gram_->ready(i);
    if (!row) row = rows_->find(i);
    if (row) {
      kept.push_back(row);
      change.push_back(pending_.change[k]);
    } else {
      absent.push_back(i);
      absent_change.push_back(pending_.change[k]);
    }
  }
  if (!kept.empty())
    parallel_for((n_ + kStretch - 1) / kStretch, settings_.threads, [&](std::int64_t s) {
      add_rows(kept.data(), change.data(), length(kept), s * kStretch, std::min(n_, (s + 1) * kStretch),
               pending_.sums.data());
    });
  pending_.points = std::move(absent);
  pending_.change = std::move(absent_change);
}

template <class T>
bool BlockSmo<T>::advance_pending(Clock::time_point until) {
  std::vector<T*> rooms;
  const std::size_t batch = std::min(kBatch, rows_->capacity());
  while (pending_.done < pending_.points.size()) {
    if (pending_.done > 0 && Clock::now() >= until) return false;
    const std::size_t count = std::min<std::size_t>(batch, pending_.points.size() - pending_.done);
    const std::span<const std::int64_t> wanted(pending_.points.data() + pending_.done, count);
    rooms.clear();
    for (const std::int64_t i : wanted) rooms.push_back(rows_->make(i));
    gram_->rows(wanted, pending_.change.data() + pending_.done, rooms.data(), pending_.sums.data(), settings_.threads);
    rows_computed_ += count;
    pending_.done += count;
  }
  for (std::size_t t = 0; t < v_.size(); ++t) v_[t] -= pending_.sums[dual_.point[t]];
  pending_.is_open = false;
  return true;
}

// ---- one round

// Half of the last set is kept, free variables and newcomers first; the worst violators of each side fill the rest, by
// turns. Members keep their places, so that their kernel values with each other stay.
template <class T>
void BlockSmo<T>::choose_working_set(const Extremes& found) {
  const std::size_t size = size_;
  std::vector<char> is_chosen(m_, 0);
  std::vector<std::size_t> last;  // places
  for (std::size_t k = 0; k < member_.size(); ++k)
    if (member_[k] >= 0) last.push_back(k);
  const auto is_free = [&](std::size_t k) { return flags_[member_[k]] == 3; };
  std::sort(last.begin(), last.end(), [&](std::size_t a, std::size_t b) {
    if (is_free(a) != is_free(b)) return is_free(a);
    return entered_[a] != entered_[b] ? entered_[a] > entered_[b] : a < b;
  });
  const std::size_t kept = std::min(last.size(), m_ <= size_ ? size : size / 2);
  for (std::size_t k = 0; k < kept; ++k) is_chosen[member_[last[k]]] = 1;

  // The violators: those that some member of the other side could be paired with. Each side has the same share of the
  // room, and what a side leaves goes to the others.
  struct Side {
    bool from_up;
    std::vector<std::int64_t> variables;
  };
  std::vector<Side> violators;
  const std::size_t room = size - kept;
  for (int g = 0; g < groups_; ++g)
    for (const bool from_up : {true, false}) {
      Side side{from_up, {}};
      for (std::int64_t t = 0; t < m_; ++t) {
        const std::size_t at = t;
        if (is_chosen[at] || dual_.group_of(at) != g) continue;
        if (from_up ? is_up(at) && v_[at] > found.low[g] : is_low(at) && v_[at] < found.up[g])
          side.variables.push_back(t);
      }
      violators.push_back(std::move(side));
    }
  std::stable_sort(violators.begin(), violators.end(),
                   [](const Side& a, const Side& b) { return a.variables.size() < b.variables.size(); });
  std::vector<std::int64_t> fresh;
  for (std::size_t k = 0; k < violators.size(); ++k) {
    auto& [from_up, variables] = violators[k];
    const std::size_t share = (room - fresh.size()) / (violators.size() - k);
    if (variables.size() > share) {
      const auto is_worse = [&](std::int64_t a, std::int64_t b) {
        const double va = v_[a], vb = v_[b];
        return va != vb ? (from_up ? va > vb : va < vb) : scattered(a) < scattered(b);
      };
      std::nth_element(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(share), variables.end(),
                       is_worse);
      variables.resize(share);
    }
    for (const std::int64_t t : variables)
      if (!is_chosen[t]) {  // a free variable is on both sides
        is_chosen[t] = 1;
        fresh.push_back(t);
      }
  }
  // Old members stay where nobody needs their place.
  constexpr char kStays = 2;  // beside 0 and 1 in `is_chosen`
  std::size_t spare = room - fresh.size();
  for (std::size_t k = kept; k < last.size(); ++k) {
    const std::int64_t t = member_[last[k]];
    if (is_chosen[t])  // it is a violator again: it keeps its place
      is_chosen[t] = kStays;
    else if (spare > 0)
      --spare;
    else
      member_[last[k]] = -1;
  }
  std::erase_if(fresh, [&](std::int64_t t) { return is_chosen[t] == kStays; });
  std::vector<std::int64_t> places;
  std::size_t place = 0;
  for (const std::int64_t t : fresh) {
    while (member_[place] >= 0) ++place;
    member_[place] = t;
    entered_[place] = rounds_;
    places.push_back(place);
  }
  read_block(places);
}

template <class T>
void BlockSmo<T>::make_rows(const std::vector<std::int64_t>& places) {
  std::vector<std::int64_t> wanted;
  std::vector<T*> rooms;
  for (const std::int64_t place : places) {
    const std::int64_t i = dual_.point[member_[place]];
    if (gram_->ready(i) || rows_->find(i)) continue;
    wanted.push_back(i);
    rooms.push_back(rows_->make(i));
  }
  if (wanted.empty()) return;
  gram_->rows(wanted, nullptr, rooms.data(), nullptr, settings_.threads);
  rows_computed_ += length(wanted);
}

// Kernel values of the newcomers with all members; by symmetry also of all members with the newcomers.
template <class T>
void BlockSmo<T>::read_block(const std::vector<std::int64_t>& fresh) {
  // In a small problem nearly every member moves and its row is hardly wider than the block: it is made at once.
  const bool is_small = n_ <= 2 * size_ && rows_->capacity() >= n_, is_kept = is_small || gram_->cost() > kGatherCost;
  if (is_small) make_rows(fresh);
  std::vector<std::int64_t> points(member_.size(), 0);  // a place without a member holds values that nobody reads
  for (std::size_t k = 0; k < member_.size(); ++k)
    if (member_[k] >= 0) points[k] = dual_.point[member_[k]];
  const std::vector<std::int32_t> index(points.begin(), points.end());
  std::vector<std::int64_t> absent, absent_place, there;
  std::vector<const T*> rows;
  for (const std::int64_t place : fresh) {
    const std::int64_t i = points[place];
    const T* row = gram_->ready(i);
    if (!row && is_kept) row = rows_->peek(i);
    if (row) {
      rows.push_back(row);
      there.push_back(place);
    } else {
      absent.push_back(i);
      absent_place.push_back(place);
    }
  }
  made_.resize(std::max(made_.size(), absent.size() * points.size()));
  if (!absent.empty()) gram_->block(absent, points, made_.data(), width_, settings_.threads);
  for (std::size_t r = 0; r < absent.size(); ++r)
    std::copy_n(made_.data() + r * width_, width_, block_.data() + absent_place[r] * stride_);
  parallel_for((length(there) + 31) / 32, settings_.threads, [&](std::int64_t piece) {
    for (std::size_t r = piece * 32; r < std::min(there.size(), static_cast<std::size_t>(piece + 1) * 32); ++r)
      gather_row(rows[r], index.data(), width_, block_.data() + there[r] * stride_);
  });
  std::vector<char> is_fresh(member_.size(), 0);
  for (const std::int64_t place : fresh) is_fresh[place] = 1;
  std::vector<std::int64_t> old;
  for (std::size_t k = 0; k < member_.size(); ++k)
    if (member_[k] >= 0 && !is_fresh[k]) old.push_back(k);
  parallel_for((length(old) + 63) / 64, settings_.threads, [&](std::int64_t piece) {
    for (std::size_t c = piece * 64; c < std::min(old.size(), static_cast<std::size_t>(piece + 1) * 64); ++c) {
      T* out = block_.data() + old[c] * stride_;
      const T* column = block_.data() + old[c];
      for (const std::int64_t place : fresh) out[place] = column[place * stride_];
    }
  });
}

// SMO over the set, with v in the kernel's own type, about the middle between the sides, where the differences are that
// matter: v itself then follows α in double. Returns the steps made.
template <class T>
std::int64_t BlockSmo<T>::solve_block(std::int64_t most_steps, double tolerance) {
  const std::size_t width = width_;
  const double measure = largest_diagonal_ > 0 ? 1 / largest_diagonal_ : 1.0;
  std::vector<float> diagonal(width, 1.0f);
  std::vector<std::int8_t> y(width, 1);
  std::vector<double> upper(width, 0.0), alpha(width, 0.0), own(width, 0.0);
  std::vector<T> up[2], low[2];
  std::vector<const T*> rows(width);
  for (std::size_t k = 0; k < width; ++k) rows[k] = block_.data() + k * stride_;
  PairProblem<T> pairs{groups_, {}, y.data(), upper.data(), own.data(), alpha.data()};
  for (std::int64_t g = 0; g < groups_; ++g) {
    up[g].assign(width, static_cast<T>(-kInfinity));
    low[g].assign(width, static_cast<T>(kInfinity));
    pairs.blocks[g] = {width_, rows.data(), nullptr, measure, diagonal.data(), 1.0, up[g].data(), low[g].data()};
  }
  const Extremes found = extremes();
  double middle[2];
  for (int g = 0; g < 2; ++g) {
    middle[g] = (found.up[g] + found.low[g]) / 2;
    if (!std::isfinite(middle[g])) middle[g] = 0;
  }
  for (std::size_t k = 0; k < width; ++k)
    if (member_[k] >= 0) {
      const std::size_t t = member_[k];
      y[k] = dual_.y[t];
      upper[k] = dual_.upper[t];
      alpha[k] = before_[k] = dual_.alpha[t];
      own[k] = gram_->diagonal()[dual_.point[t]];
      diagonal[k] = static_cast<float>(measure * own[k]);
      pairs.set(k, v_[t] - middle[dual_.group_of(t)]);
    }
  const std::int64_t made = solve_pairs(pairs, tolerance, most_steps);
  for (std::size_t k = 0; k < width; ++k)
    if (member_[k] >= 0) {
      const std::size_t t = member_[k];
      dual_.alpha[t] = alpha[k];
      mark(t);
    }
  return made;
}

// Whether the last rounds have changed nothing that can be measured: steps then only follow rounding.
template <class T>
bool BlockSmo<T>::goes_nowhere() {
  if (rounds_ < watched_round_ + kWatchRounds) return false;
  const double now = objective(), worst = violation();
  const bool is_same = watched_round_ > 0 && !(watched_objective_ - now > 1e-14 * std::fabs(now)) &&
                       !(worst <= 0.9 * watched_violation_);
  watched_objective_ = now;
  watched_violation_ = worst;
  watched_round_ = rounds_;
  return is_same;
}

template <class T>
BlockEnding BlockSmo<T>::run(std::int64_t max_steps, Clock::time_point until) {
  while (ending_ == BlockEnding::running) {
    if (pending_.is_open && !advance_pending(until)) break;
    const Extremes found = extremes();
    const double gap = found.gap();
    const double one = unit();
    const bool have_met = dual_.hulls && objective() <= settings_.least_objective(largest_diagonal_);
    if (gap <= settings_.tol * one || have_met) {
      ending_ = BlockEnding::converged;
      break;
    }
    if (goes_nowhere()) {
      ending_ = BlockEnding::cornered;
      break;
    }
    if (steps_ >= max_steps || Clock::now() >= until) break;
    choose_working_set(found);
    const double tolerance = std::max(settings_.tol * one / 2, kInnerShare * gap);
    const std::int64_t made = solve_block(std::min(kMostInnerSteps, max_steps - steps_), tolerance);
    steps_ += made;
    ++rounds_;
    if (made == 0)  // the worst pair of all is in the set, and even it cannot move
      ending_ = BlockEnding::cornered;
    else
      open_pending();
  }
  return ending_;
}

template class BlockSmo<float>;
template class BlockSmo<double>;

}  // namespace margrove
