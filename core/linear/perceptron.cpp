#include "linear/perceptron.hpp"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

namespace margrove {
namespace {

// Rows to a mistake: with no more than this the next pass avoids the branch, as a wrong guess costs 35 ns (below). Five
// itself is chosen, not measured.
constexpr std::int64_t kManyMistakes = 5;

// Beyond so many columns a row takes longer (some 80 ns at the pace above) than a wrong guess, and guessing is better
// again. No measurement recorded.
constexpr std::int64_t kBlindColumns = 512;

// Rows of the ring start on cache lines of their own.
constexpr std::int64_t ring_stride(std::int64_t d) { return (d + 7) / 8 * 8; }

// Visits ahead for which a row is fetched: about the time it takes to come from memory. Chosen, not measured.
constexpr std::int64_t kAhead = 12;

// What a machine needs to judge a row and to learn from it. `sign`, `weight` and `alpha` are indexed by row;
// `weight` may be null. Invariant: w = eta sum alpha_i s_i y_i x_i, and b likewise with the coordinate 1.
struct Visit {
  const std::uint32_t* order;
  const std::int8_t* sign;
  const double* weight;
  double* w;
  double* alpha;
  double* ring;          // room for three rows
  std::uint32_t* noted;  // room for the rows of a stretch
  double b, eta;
  bool fit_intercept;
  bool stops_at_mistake;  // the caller has more to do at each
  std::int64_t mistakes;
};

// Visits the positions from `from` on and learns from each mistake; returns where to go on: behind the first
// mistake if the visit stops there, else `to`. A NaN decision is a mistake. One function does all, so that
// the step after a mistake starts with w still in the caches' first level and no call in between.
template <class Rows>
MARGROVE_INLINE std::int64_t visit_rows_body(const Rows& rows, Visit& visit, std::int64_t from, std::int64_t to) {
  double b = visit.b;
  std::int64_t mistakes = 0, position = from;
  while (position < to) {
    if (position + kAhead < to) fetch(rows, visit.order[position + kAhead]);
    const std::int64_t i = visit.order[position++];
    const double y = visit.sign[i], weight = visit.weight ? visit.weight[i] : 1.0;
    if (y == 0 || y * (dot_row(rows, i, visit.w) + b) > 0) continue;
    const double step = visit.eta * weight * y;
    add_row(rows, i, step, visit.w);
    if (visit.fit_intercept) b += step;
    visit.alpha[i] += 1;
    ++mistakes;
    if (visit.stops_at_mistake) break;
  }
  visit.b = b;
  visit.mistakes += mistakes;
  return position;
}

// w <- w + step * before; then w·next and now·next, all in one go through w. `next` is widened to double on the way and
// left in `widened`, so that no row is converted twice (conversions, not products, are what float rows wait for).
template <class T>
MARGROVE_INLINE void look_ahead(double* w, double step, const double* before, const double* now, const T* next,
                                double* widened, std::int64_t d, double& decision, double& product) {
  Wide w0 = {}, w1 = {}, p0 = {}, p1 = {};
  const auto add = [&](Wide& in_w, Wide& in_p, std::int64_t k) MARGROVE_INLINE_LAMBDA {
    const Wide wide_next = load_wide(next + k);
    if constexpr (!std::is_same_v<T, double>) store(widened + k, wide_next);
    const Wide moved = load_wide(w + k) + step * load_wide(before + k);
    store(w + k, moved);
    in_w += moved * wide_next;
    in_p += load_wide(now + k) * wide_next;
  };
  std::int64_t k = 0;
  for (; k + 2 * kLanes <= d; k += 2 * kLanes) {
    add(w0, p0, k);
    add(w1, p1, k + kLanes);
  }
  if (k + kLanes <= d) {
    add(w0, p0, k);
    k += kLanes;
  }
  double tail_w = 0, tail_p = 0;
  for (; k < d; ++k) {
    const double wide_next = next[k];
    if constexpr (!std::is_same_v<T, double>) widened[k] = wide_next;
    w[k] += step * before[k];
    tail_w += w[k] * wide_next;
    tail_p += now[k] * wide_next;
  }
  decision = sum_lanes(w0 + w1) + tail_w;
  product = sum_lanes(p0 + p1) + tail_p;
}

// `value` where not test > 0, else 0. Written in vectors because compilers turn the plain words into a
// branch.
MARGROVE_INLINE double unless_positive(double test, double value) {
  using Pair = Simd<double, 2>;
  using PairMask = Simd<std::int64_t, 2>;
  const Pair tests = {test, 0}, values = {value, 0};
  return reinterpret_cast<Pair>(~(tests > Pair{0, 0}) & reinterpret_cast<PairMask>(values))[0];
}

// As visit_rows, without a branch on mistakes: where they are many no branch predictor can know them, and a wrong guess
// costs more than the update it guards (measured: 35 ns each). So every row makes its update, by 0 where there is no
// mistake, and makes it one row late, so that a row need not wait for the row before it:
//
//   f(x_t) = [w·x_t + b]  +  step (x_{t-1}·x_t + 1),     step being row t-1's, not yet in w and b.
//
// The bracket and the product are computed while step is still being decided.
template <class T>
MARGROVE_INLINE std::int64_t visit_blindly_body(const DenseRows<T>& rows, Visit& visit, std::int64_t from,
                                                std::int64_t to) {
  const double one = visit.fit_intercept ? 1.0 : 0.0;
  double b = visit.b, step = 0, decision, product;
  std::int64_t mistakes = 0;
  double *slot = visit.ring, *slot1 = slot + ring_stride(rows.d), *slot2 = slot1 + ring_stride(rows.d);
  // The row at a position as doubles: itself, or the copy that look_ahead has left in `widened`.
  const auto as_double = [](const T* row, const double* widened) MARGROVE_INLINE_LAMBDA {
    if constexpr (std::is_same_v<T, double>)
      return (void)widened, row;
    else
      return (void)row, widened;
  };
  const T* first = rows.row(visit.order[from]);
  std::copy(first, first + rows.d, slot);
  const double *now = as_double(first, slot), *before = now;
  decision = dot(now, visit.w, rows.d), product = 0;
  for (std::int64_t position = from; position < to; ++position) {
    if (position + kAhead < to) fetch(rows, visit.order[position + kAhead]);
    const std::int64_t i = visit.order[position];
    const double y = visit.sign[i], full = visit.eta * (visit.weight ? visit.weight[i] : 1.0) * y;
    // b and the step cancel where the first rows are of both classes: added to b first, small products would be lost.
    const double margin = y * ((decision + step * product) + (b + step * one));
    const T* next = rows.row(visit.order[position + 1 < to ? position + 1 : position]);
    look_ahead(visit.w, step, before, now, next, slot1, rows.d, decision, product);
    b += step * one;
    step = unless_positive(margin, full);  // y, and so the step, is 0 for a row that is left out
    // Noted whether it is one or not, and kept if it is: again no branch.
    visit.noted[mistakes] = i;
    mistakes += step != 0;
    before = now;
    now = as_double(next, slot1);
    std::swap(slot, slot1);  // slot: the newest copy; slot1: free to be written, once slot2 is no longer `before`
    std::swap(slot1, slot2);
  }
  add_scaled(visit.w, step, before, rows.d);
  visit.b = b + step * one;
  visit.mistakes += mistakes;
  for (std::int64_t k = 0; k < mistakes; ++k) visit.alpha[visit.noted[k]] += 1;
  return to;
}

// A sparse row's update is too scattered to be made when it need not be.
template <class T>
MARGROVE_INLINE std::int64_t visit_blindly_body(const CsrRows<T>& rows, Visit& visit, std::int64_t from,
                                                std::int64_t to) {
  return visit_rows_body(rows, visit, from, to);
}

#define MARGROVE_PERCEPTRON_STEPS(ROWS)                                                                            \
  MARGROVE_CLONES std::int64_t visit_rows(const ROWS& rows, Visit& visit, std::int64_t from, std::int64_t to) {    \
    return visit_rows_body(rows, visit, from, to);                                                                 \
  }                                                                                                                \
  MARGROVE_CLONES std::int64_t visit_blindly(const ROWS& rows, Visit& visit, std::int64_t from, std::int64_t to) { \
    return visit_blindly_body(rows, visit, from, to);                                                              \
  }                                                                                                                \
  MARGROVE_CLONES void add_lag(const ROWS& rows, std::int64_t i, double step, double* lag) {                       \
    add_row(rows, i, step, lag);                                                                                   \
  }
MARGROVE_PERCEPTRON_STEPS(DenseRows<float>)
MARGROVE_PERCEPTRON_STEPS(DenseRows<double>)
MARGROVE_PERCEPTRON_STEPS(CsrRows<float>)
MARGROVE_PERCEPTRON_STEPS(CsrRows<double>)
#undef MARGROVE_PERCEPTRON_STEPS

// What the averaged and the voted perceptron note at a mistake on row i, which has been learnt already. `m.steps`
// counts the steps up to and with this one. False when there is no room for it.
template <class Rows>
bool note_mistake(const Rows& rows, PerceptronMachine& m, std::int64_t i, double step,
                  const PerceptronSettings& settings) {
  const bool is_voted = settings.variant == Variant::voted;
  const std::size_t numbers = 2 * (m.makers.size() + 1) + (is_voted ? m.prototypes.size() + m.w.size() + 1 : 0);
  if (static_cast<std::int64_t>(numbers * sizeof(double)) > settings.kept_bytes) return false;
  m.makers.push_back(i);
  m.times.push_back(m.steps);
  if (is_voted) {
    m.prototypes.insert(m.prototypes.end(), m.w.begin(), m.w.end());
    m.prototypes.push_back(m.b);
    return true;
  }
  const double before = m.steps - 1;
  add_lag(rows, i, step * before, m.lag_w.data());
  if (settings.fit_intercept) m.lag_b += step * before;
  return true;
}

// Visits the positions up to `border` of the pass under way.
template <class Rows>
void run_stretch(const Rows& rows, PerceptronMachine& m, const std::int8_t* sign, const double* weight,
                 const PerceptronSettings& settings, std::int64_t border) {
  Visit visit{m.order.data(),
              sign,
              weight,
              m.w.data(),
              m.alpha.data(),
              m.ring.data(),
              m.noted.data(),
              m.b,
              settings.eta,
              settings.fit_intercept,
              settings.variant != Variant::last,
              0};
  while (m.position < border && !m.out_of_room) {
    const std::int64_t before = m.mistakes, start = m.position;
    visit.mistakes = 0;
    const bool is_blind = m.expects_mistakes && !visit.stops_at_mistake && !m.ring.empty();
    m.position = is_blind ? visit_blindly(rows, visit, start, border) : visit_rows(rows, visit, start, border);
    m.b = visit.b;
    m.mistakes += visit.mistakes;
    m.pass_mistakes += visit.mistakes;
    m.steps += m.position - start;
    if (m.mistakes > before && visit.stops_at_mistake) {
      const std::int64_t i = m.order.data()[m.position - 1];
      const double step = settings.eta * (weight ? weight[i] : 1.0) * sign[i];
      m.out_of_room = !note_mistake(rows, m, i, step, settings);
    }
  }
}

template <class Rows>
void run_machine(const Rows& rows, PerceptronMachine& m, const std::int8_t* sign, const double* weight,
                 const PerceptronSettings& settings, std::int64_t max_passes,
                 std::chrono::steady_clock::time_point until) {
  const std::int64_t stretch = stretch_rows(rows.d);
  while (!m.separated && !m.stalled && !m.out_of_room && m.passes < max_passes) {
    if (m.position == 0) m.begin_pass(settings.shuffle);
    run_stretch(rows, m, sign, weight, settings, std::min(rows.n, m.position + stretch));
    if (m.position == rows.n) {
      m.expects_mistakes = m.pass_mistakes * kManyMistakes > rows.n;
      m.end_pass(m.pass_mistakes == 0, settings.tolerance * rows.n, settings.patience);
    }
    if (std::chrono::steady_clock::now() >= until) return;
  }
}

}  // namespace

PerceptronMachine::PerceptronMachine(std::int64_t n, std::int64_t d, std::uint64_t seed)
    : PassRecord(n, seed), w(d), alpha(n) {}

Perceptron::Perceptron(AnyRows rows, std::span<const std::int8_t> sign, std::span<const double> weight,
                       std::vector<std::uint64_t> seeds, PerceptronSettings settings)
    : rows_(rows), sign_(sign), weight_(weight), settings_(settings) {
  std::visit([&](const auto& r) { n_ = r.n, d_ = r.d; }, rows_);
  for (const std::uint64_t seed : seeds) {
    PerceptronMachine& m = machines_.emplace_back(n_, d_, seed);
    const bool is_dense =
        std::holds_alternative<DenseRows<float>>(rows_) || std::holds_alternative<DenseRows<double>>(rows_);
    if (is_dense && d_ <= kBlindColumns) {
      m.ring.resize(3 * ring_stride(d_));
      m.noted.resize(stretch_rows(d_));
    }
    if (settings_.variant == Variant::averaged) {
      m.lag_w.resize(m.w.size());
    }
  }
}

void Perceptron::start_from(std::size_t machine, std::span<const double> w, double b) {
  machines_[machine].w.assign(w.begin(), w.end());
  machines_[machine].b = b;
}

void Perceptron::run(std::int64_t max_passes, double seconds, int threads) {
  const double* weight = weight_.empty() ? nullptr : weight_.data();
  std::visit(
      [&](const auto& rows) {
        run_in_turns(
            machines_, n_, d_, max_passes, seconds, threads,
            [&](std::int64_t k, std::int64_t most, std::chrono::steady_clock::time_point until) {
              run_machine(rows, machines_[k], sign_.data() + k * n_, weight, settings_, most, until);
            },
            [&](const PerceptronMachine& m) {
              return m.separated || m.stalled || m.out_of_room || m.passes >= max_passes;
            });
      },
      rows_);
}

}  // namespace margrove
