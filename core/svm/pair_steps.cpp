#include "svm/pair_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simd.hpp"

namespace margrove {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of the largest K(x, x), as TAU of LIBSVM: duplicates have no curvature, and the box cuts the step.
constexpr double kLeastCurvature = 1e-12;
// Differences of v whose squares, times a curvature and its least, a float holds.
constexpr double kSmallFall = 1e-12, kLargeFall = 1e15;

// 64 bytes of v, as many scores, and places as wide as each: comparisons and choices are between vectors of one width.
template <class T>
struct Vectors;
template <>
struct Vectors<double> {
  static constexpr int kLanes = 8;
  using Values = Simd<double, kLanes>;
  using Places = Simd<std::int64_t, kLanes>;
  using Scores = Simd<float, kLanes>;
  using ScorePlaces = Simd<std::int32_t, kLanes>;
};
template <>
struct Vectors<float> {
  static constexpr int kLanes = 16;
  using Values = Simd<float, kLanes>;
  using Places = Simd<std::int32_t, kLanes>;
  using Scores = Values;
  using ScorePlaces = Places;
};

// 0, 1, 2, …
template <class P>
MARGROVE_INLINE P first_places() {
  if constexpr (kLanesOf<P> == 8)
    return P{0, 1, 2, 3, 4, 5, 6, 7};
  else
    return P{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}

// Each lane against the one `apart` from it; of equals the first member wins, so that the answer does not depend on the
// width of vectors. In the end every lane holds the best. Without a branch: none of these could be foreseen.
template <class W, class P>
MARGROVE_INLINE void keep_better(W& best, P& where, const W& other, const P& there) {
  // One comparison to a choice: several in one expression are taken apart lane by lane (GCC 12).
  const P first = there < where ? there : where;
  const P among_equals = other == best ? first : where;
  where = other > best ? there : among_equals;
  best = other > best ? other : best;
}
template <class W, class P>
MARGROVE_INLINE void keep_best(W& best, P& where) {
  if constexpr (kLanesOf<W> == 16) keep_better(best, where, turned<8>(best), turned<8>(where));
  keep_better(best, where, turned<4>(best), turned<4>(where));
  keep_better(best, where, turned<2>(best), turned<2>(where));
  keep_better(best, where, turned<1>(best), turned<1>(where));
}
template <class W>
MARGROVE_INLINE W least_of_all(W least) {
  if constexpr (kLanesOf<W> == 16) least = smaller(turned<8>(least), least);
  least = smaller(turned<4>(least), least);
  least = smaller(turned<2>(least), least);
  return smaller(turned<1>(least), least);
}

template <class T>
struct Found {
  std::int64_t at;
  T value;
};

// The member of the largest `up`.
template <class T>
MARGROVE_INLINE Found<T> worst_up(const WorkingBlock<T>& block) {
  using Set = Vectors<T>;
  typename Set::Values best = typename Set::Values{} - static_cast<T>(kInfinity);
  typename Set::Places where = {}, place = first_places<typename Set::Places>();
  for (std::int64_t t = 0; t < block.size; t += Set::kLanes, place += Set::kLanes) {
    const auto up = load<typename Set::Values>(block.up + t);
    const typename Set::Places is_more = up > best;
    best = is_more ? up : best;
    where = is_more ? place : where;
  }
  keep_best(best, where);
  return {where[0], best[0]};
}

// The smallest `low`.
template <class T>
MARGROVE_INLINE T least_low(const WorkingBlock<T>& block) {
  using Set = Vectors<T>;
  typename Set::Values least = typename Set::Values{} + static_cast<T>(kInfinity);
  for (std::int64_t t = 0; t < block.size; t += Set::kLanes)
    least = smaller(load<typename Set::Values>(block.low + t), least);
  return least_of_all(least)[0];
}

// The partner of i by whose pair the objective falls most: (v_i - v_t)^2 / curvature is largest; -1 if there is none.
// Scores are float: they choose, they do not decide. Fractions are compared, a/b > c/d as a d > c b: a division would
// take half of the time. `is_plain`: all K(x, x) are one number, as most kernels have it, and falls are of a size whose
// squares float holds; then neither is looked at.
template <bool is_plain, class T>
MARGROVE_INLINE std::int64_t best_partner(const WorkingBlock<T>& block, const T* row, std::int64_t i, T v_i) {
  using Set = Vectors<T>;
  using Values = typename Set::Values;
  using Scores = typename Set::Scores;
  const float own = block.diagonal[i];
  const T fall_unit = is_plain ? 1.0 : block.fall_unit, twice = static_cast<T>(2 * block.unit);
  // Two chains: one would wait for its own comparisons.
  Scores best[2] = {}, under[2] = {Scores{} + 1, Scores{} + 1};
  typename Set::ScorePlaces where[2] = {typename Set::ScorePlaces{} - 1, typename Set::ScorePlaces{} - 1},
                            place = first_places<typename Set::ScorePlaces>();
  for (std::int64_t t = 0; t < block.size; t += 2 * Set::kLanes)
    for (int chain = 0; chain < 2; ++chain, place += Set::kLanes) {
      const std::int64_t at = t + chain * Set::kLanes;
      const Values low = load<Values>(block.low + at);
      const Scores fall = converted<Scores>((v_i - low) * fall_unit);  // -inf outside I_low
      const Scores positive = fall > 0 ? fall : Scores{};
      const Scores square = positive * positive;
      const Scores both = converted<Scores>(load<Values>(row + at) * twice);
      Scores curve = is_plain ? 2 * own - both : own + load<Scores>(block.diagonal + at) - both;
      curve = curve > 1e-12f ? curve : Scores{} + 1e-12f;
      const Scores ours = square * under[chain], theirs = best[chain] * curve;
      best[chain] = ours > theirs ? square : best[chain];
      under[chain] = ours > theirs ? curve : under[chain];
      where[chain] = ours > theirs ? place : where[chain];
    }
  best[0] /= under[0];
  best[1] /= under[1];
  keep_better(best[0], where[0], best[1], where[1]);
  keep_best(best[0], where[0]);
  return where[0][0];
}

// v_t <- v_t - step (K_ti - K_tj), and the member of the largest `up` after it.
template <class T>
MARGROVE_INLINE Found<T> move_pair(const WorkingBlock<T>& block, const T* row_i, const T* row_j, T by) {
  using Set = Vectors<T>;
  using Values = typename Set::Values;
  T *const ups = block.up, *const lows = block.low;  // not read again after each store
  Values best[2] = {Values{} - static_cast<T>(kInfinity), Values{} - static_cast<T>(kInfinity)};
  typename Set::Places where[2] = {}, place = first_places<typename Set::Places>();
  for (std::int64_t t = 0; t < block.size; t += 2 * Set::kLanes)
    for (int chain = 0; chain < 2; ++chain, place += Set::kLanes) {
      const std::int64_t at = t + chain * Set::kLanes;
      const Values fall = by * (load<Values>(row_i + at) - load<Values>(row_j + at));
      const Values up = load<Values>(ups + at) - fall;
      store(ups + at, up);
      store(lows + at, load<Values>(lows + at) - fall);
      const typename Set::Places is_more = up > best[chain];
      best[chain] = is_more ? up : best[chain];
      where[chain] = is_more ? place : where[chain];
    }
  keep_better(best[0], where[0], best[1], where[1]);
  keep_best(best[0], where[0]);
  return {where[0][0], best[0][0]};
}

template <class T>
MARGROVE_INLINE void set_place(const PairProblem<T>& problem, std::int64_t k, T v) {
  const WorkingBlock<T>& block = problem.blocks[problem.groups == 2 && problem.y[k] < 0 ? 1 : 0];
  const bool can_grow = problem.alpha[k] < problem.upper[k], can_fall = problem.alpha[k] > 0;
  block.up[k] = (problem.y[k] > 0 ? can_grow : can_fall) ? v : static_cast<T>(-kInfinity);
  block.low[k] = (problem.y[k] > 0 ? can_fall : can_grow) ? v : static_cast<T>(kInfinity);
}

template <class T>
MARGROVE_INLINE std::int64_t solve_pairs_body(PairProblem<T>& problem, double tolerance, std::int64_t most_steps) {
  Found<T> top[2];
  bool is_plain = tolerance > kSmallFall;
  for (std::int64_t g = 0; g < problem.groups; ++g) {
    WorkingBlock<T>& block = problem.blocks[g];
    top[g] = worst_up(block);
    const double gap = top[g].value - least_low(block);
    block.fall_unit = gap > 0 && gap < kInfinity ? 1 / gap : 1.0;
    is_plain = is_plain && gap < kLargeFall;
    for (std::int64_t k = 0; k < block.size; ++k) is_plain &= block.diagonal[k] == block.diagonal[0];
  }
  std::int64_t made = 0;
  while (made < most_steps) {
    std::int64_t g = 0;
    if (problem.groups == 2) {
      const T gap0 = top[0].value - least_low(problem.blocks[0]), gap1 = top[1].value - least_low(problem.blocks[1]);
      g = gap1 > gap0 ? 1 : 0;
    }
    if (top[g].value == static_cast<T>(-kInfinity)) break;
    const WorkingBlock<T>& block = problem.blocks[g];
    const auto row_of = [&block](std::int64_t k) { return block.rows[k] ? block.rows[k] : block.maker->row(k); };
    const std::int64_t i = top[g].at;
    const T* row_i = row_of(i);
    const T v_i = top[g].value;
    const std::int64_t j =
        is_plain ? best_partner<true>(block, row_i, i, v_i) : best_partner<false>(block, row_i, i, v_i);
    if (j < 0) break;
    const T v_j = block.low[j];
    const double fall = static_cast<double>(v_i) - static_cast<double>(v_j);
    // The best pair is not always the one that violates most.
    if (!(fall > tolerance) && !(static_cast<double>(v_i) - static_cast<double>(least_low(block)) > tolerance)) break;
    const T* row_j = row_of(j);
    // y_i alpha_i grows and y_j alpha_j falls by the same step, at most by the room that each has left.
    double &alpha_i = problem.alpha[i], &alpha_j = problem.alpha[j];
    const bool grows_i = problem.y[i] > 0, grows_j = problem.y[j] < 0;
    const double room_i = grows_i ? problem.upper[i] - alpha_i : alpha_i;
    const double room_j = grows_j ? problem.upper[j] - alpha_j : alpha_j;
    const double curve = problem.own[i] + problem.own[j] - 2 * static_cast<double>(row_i[j]);
    const double step = std::min({fall / std::max(curve, kLeastCurvature / block.unit), room_i, room_j});
    // a + (C - a) is not always C: who takes all its room is put on its bound.
    if (step == room_i)
      alpha_i = grows_i ? problem.upper[i] : 0.0;
    else
      alpha_i += grows_i ? step : -step;
    if (step == room_j)
      alpha_j = grows_j ? problem.upper[j] : 0.0;
    else
      alpha_j += grows_j ? step : -step;
    set_place(problem, i, v_i);
    set_place(problem, j, v_j);
    for (std::int64_t h = 0; h < problem.groups; ++h)
      top[h] = move_pair(problem.blocks[h], row_i, row_j, static_cast<T>(step));
    ++made;
  }
  return made;
}

template <class T>
MARGROVE_INLINE void add_rows_body(const T* const* rows, const double* change, std::int64_t count, std::int64_t from,
                                   std::int64_t to, double* sums) {
  std::int64_t r = 0;
  for (; r + 4 <= count; r += 4) {
    const T *a = rows[r], *b = rows[r + 1], *c = rows[r + 2], *d = rows[r + 3];
    const double ca = change[r], cb = change[r + 1], cc = change[r + 2], cd = change[r + 3];
#pragma omp simd
    for (std::int64_t t = from; t < to; ++t) sums[t] += (ca * a[t] + cb * b[t]) + (cc * c[t] + cd * d[t]);
  }
  for (; r < count; ++r) {
    const T* a = rows[r];
    const double ca = change[r];
#pragma omp simd
    for (std::int64_t t = from; t < to; ++t) sums[t] += ca * a[t];
  }
}

template <class T>
MARGROVE_INLINE void gather_row_body(const T* row, const std::int32_t* index, std::int64_t count, T* out) {
#pragma omp simd
  for (std::int64_t k = 0; k < count; ++k) out[k] = row[index[k]];
}

#define MARGROVE_PAIR_STEPS(T)                                                                                        \
  MARGROVE_CLONES std::int64_t solve_pairs_of(PairProblem<T>& problem, double tolerance, std::int64_t most_steps) {   \
    return solve_pairs_body(problem, tolerance, most_steps);                                                          \
  }                                                                                                                   \
  MARGROVE_CLONES void add_rows_of(const T* const* rows, const double* change, std::int64_t count, std::int64_t from, \
                                   std::int64_t to, double* sums) {                                                   \
    add_rows_body(rows, change, count, from, to, sums);                                                               \
  }                                                                                                                   \
  MARGROVE_CLONES void gather_row_of(const T* row, const std::int32_t* index, std::int64_t count, T* out) {           \
    gather_row_body(row, index, count, out);                                                                          \
  }
MARGROVE_PAIR_STEPS(float)
MARGROVE_PAIR_STEPS(double)
#undef MARGROVE_PAIR_STEPS

}  // namespace

template <class T>
void PairProblem<T>::set(std::int64_t k, double v) const {
  set_place(*this, k, static_cast<T>(v));
}

template <class T>
std::int64_t solve_pairs(PairProblem<T>& problem, double tolerance, std::int64_t most_steps) {
  return solve_pairs_of(problem, tolerance, most_steps);
}

template <class T>
void add_rows(const T* const* rows, const double* change, std::int64_t count, std::int64_t from, std::int64_t to,
              double* sums) {
  add_rows_of(rows, change, count, from, to, sums);
}

template <class T>
void gather_row(const T* row, const std::int32_t* index, std::int64_t count, T* out) {
  gather_row_of(row, index, count, out);
}

#define MARGROVE_INSTANCES(T)                                                \
  template struct PairProblem<T>;                                            \
  template std::int64_t solve_pairs(PairProblem<T>&, double, std::int64_t);  \
  template void gather_row(const T*, const std::int32_t*, std::int64_t, T*); \
  template void add_rows(const T* const*, const double*, std::int64_t, std::int64_t, std::int64_t, double*);
MARGROVE_INSTANCES(float)
MARGROVE_INSTANCES(double)
#undef MARGROVE_INSTANCES

}  // namespace margrove
