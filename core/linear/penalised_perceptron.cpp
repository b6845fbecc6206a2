#include "linear/penalised_perceptron.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace margrove {
namespace {

// The least power[m]. Below it w in units of power[m] could overflow though w does not.
constexpr double kLeastPower = 0x1p-30;

// A w that shrinks faster than this would be brought up to date every few visits: each visit does it at once.
constexpr double kLeastKept = 0.5;

// A toll beyond it could make the sums of Shrinkage::debt overflow.
constexpr double kMostToll = 1e200;

// Visits ahead for which a row is fetched, as in linear/perceptron.cpp.
constexpr std::int64_t kAhead = 12;

// w_j after it has paid up to `owed`. NaN stays NaN.
MARGROVE_INLINE double pay(double before, double owed, double& paid) {
  const double size = std::fabs(before), due = owed + (before < 0 ? -paid : paid);
  double left = size - due;
  left = left < 0 ? 0 : left;
  left = left > size ? size : left;  // rounding may have made it pay a little too much before
  const double after = before < 0 ? -left : left;
  paid += after - before;
  return after;
}

MARGROVE_INLINE void scale(double* w, double factor, std::int64_t d) {
#pragma omp simd
  for (std::int64_t j = 0; j < d; ++j) w[j] *= factor;
}

// A visit that goes over all columns. Returns whether there was a mistake, as does visit_own_columns.
template <class Rows>
MARGROVE_INLINE bool visit_all_columns(const Rows& rows, std::int64_t i, double y, double step,
                                       const Shrinkage& shrinkage, PenalisedMachine& m) {
  double *w = m.w.data(), *paid = m.paid.data();
  const bool is_mistake = !(y * (dot_row(rows, i, w) + m.b) > 0);
  double kept = shrinkage.kept;
  if (is_mistake || shrinkage.toll == 0) {
    scale(w, kept, rows.d);
    kept = 1;
  }
  if (is_mistake) add_row(rows, i, step, w);
  if (shrinkage.toll == 0) return is_mistake;
  m.owed += shrinkage.toll;
  const double owed = m.owed;
#pragma omp simd
  for (std::int64_t j = 0; j < rows.d; ++j) w[j] = pay(kept * w[j], owed, paid[j]);
  return is_mistake;
}

// Brings column j up to date. Before: |paid| = owed at visit `since` if w_j is not 0, as the last payment was in full.
MARGROVE_INLINE void settle_column(const Shrinkage& shrinkage, PenalisedMachine& m, std::int64_t j) {
  const std::uint32_t from = m.since[j], to = m.visit;
  m.since[j] = to;
  const double v = m.w[j];
  if (from == to || v == 0) return;
  const double *debt = shrinkage.debt.data(), size = std::fabs(v), left = size - (debt[to] - debt[from]);
  if (!(left <= 0)) {  // NaN stays NaN
    m.w[j] = std::copysign(left, v);
    m.paid[j] = -std::copysign(m.owed + shrinkage.toll * to, v);
    return;
  }
  // It became 0 at the first visit whose debt it could not pay in full.
  const double* last = std::lower_bound(debt + from + 1, debt + to, size + debt[from]);
  const auto full = static_cast<double>(last - debt - 1);
  const double rest = shrinkage.power[last - debt] * std::max(0.0, size - (last[-1] - debt[from]));
  m.w[j] = 0;
  m.paid[j] = -std::copysign(m.owed + shrinkage.toll * full + rest, v);
}

// A visit that goes over the columns of the row, and over all only when the tables end.
template <class Rows>
MARGROVE_INLINE bool visit_own_columns(const Rows& rows, std::int64_t i, double y, double step,
                                       const Shrinkage& shrinkage, PenalisedMachine& m) {
  double* w = m.w.data();
  const bool has_toll = shrinkage.toll != 0;
  if constexpr (requires { rows.column; })
    if (has_toll)
      for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) settle_column(shrinkage, m, rows.column[k]);
  const bool is_mistake = !(y * (shrinkage.power[m.visit] * dot_row(rows, i, w) + m.b) > 0);
  ++m.visit;
  const double power = shrinkage.power[m.visit];
  if (is_mistake) add_row(rows, i, step / power, w);
  if constexpr (requires { rows.column; })
    if (is_mistake && has_toll) {
      const double owed = m.owed + shrinkage.toll * m.visit;
      for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) {
        const std::int32_t j = rows.column[k];
        w[j] = pay(power * w[j], owed, m.paid[j]) / power;
        m.since[j] = m.visit;
      }
    }
  if (m.visit + 1 == shrinkage.power.size()) m.settle(shrinkage);
  return is_mistake;
}

// Visits the positions up to `border` of the pass under way.
template <class Rows>
MARGROVE_INLINE void visit_rows_body(const Rows& rows, PenalisedMachine& m, const std::int8_t* sign,
                                     const double* weight, const PenalisedSettings& settings,
                                     const Shrinkage& shrinkage, std::int64_t border) {
  const std::uint32_t* order = m.order.data();
  for (; m.position < border; ++m.position) {
    if (m.position + kAhead < border) fetch(rows, order[m.position + kAhead]);
    const std::int64_t i = order[m.position];
    const double y = sign[i];
    if (y == 0) continue;
    const double step = settings.eta * (weight ? weight[i] : 1.0) * y;
    const bool is_mistake = shrinkage.is_lazy ? visit_own_columns(rows, i, y, step, shrinkage, m)
                                              : visit_all_columns(rows, i, y, step, shrinkage, m);
    if (!is_mistake) continue;
    if (settings.fit_intercept) m.b += step;
    ++m.mistakes;
    ++m.pass_mistakes;
  }
}

// Returns whether (w, b) separates the rows from `position` to `border`.
template <class Rows>
MARGROVE_INLINE bool separates_body(const Rows& rows, const PenalisedMachine& m, const std::int8_t* sign,
                                    std::int64_t border) {
  for (std::int64_t i = m.position; i < border; ++i)
    if (sign[i] != 0 && !(sign[i] * (dot_row(rows, i, m.w.data()) + m.b) > 0)) return false;
  return true;
}

#define MARGROVE_PENALISED_STEPS(ROWS)                                                                                 \
  MARGROVE_CLONES void visit_rows(const ROWS& rows, PenalisedMachine& m, const std::int8_t* sign,                      \
                                  const double* weight, const PenalisedSettings& settings, const Shrinkage& shrinkage, \
                                  std::int64_t border) {                                                               \
    visit_rows_body(rows, m, sign, weight, settings, shrinkage, border);                                               \
  }                                                                                                                    \
  MARGROVE_CLONES bool separates(const ROWS& rows, const PenalisedMachine& m, const std::int8_t* sign,                 \
                                 std::int64_t border) {                                                                \
    return separates_body(rows, m, sign, border);                                                                      \
  }
MARGROVE_PENALISED_STEPS(DenseRows<float>)
MARGROVE_PENALISED_STEPS(DenseRows<double>)
MARGROVE_PENALISED_STEPS(CsrRows<float>)
MARGROVE_PENALISED_STEPS(CsrRows<double>)
#undef MARGROVE_PENALISED_STEPS

template <class Rows>
void run_machine(const Rows& rows, PenalisedMachine& m, const std::int8_t* sign, const double* weight,
                 const PenalisedSettings& settings, const Shrinkage& shrinkage, std::int64_t max_passes,
                 std::chrono::steady_clock::time_point until) {
  const std::int64_t stretch = stretch_rows(rows.d);
  const auto end_pass = [&](bool has_separated) {
    m.is_checking = false;
    m.end_pass(has_separated, settings.tolerance * rows.n, settings.patience);
  };
  while (!m.separated && !m.stalled && m.passes < max_passes) {
    const std::int64_t border = std::min(rows.n, m.position + stretch);
    if (m.is_checking) {
      if (!separates(rows, m, sign, border))
        end_pass(false);
      else if ((m.position = border) == rows.n)
        end_pass(true);
    } else {
      if (m.position == 0) m.begin_pass(settings.shuffle);
      visit_rows(rows, m, sign, weight, settings, shrinkage, border);
      if (m.position == rows.n) {
        m.settle(shrinkage);
        m.is_checking = m.pass_mistakes == 0;
        if (m.is_checking)
          m.position = 0;
        else
          end_pass(false);
      }
    }
    if (std::chrono::steady_clock::now() >= until) return;
  }
}

}  // namespace

Shrinkage::Shrinkage(const PenalisedSettings& settings, std::int64_t n, bool is_sparse)
    : kept(std::max(0.0, 1 - (1 - settings.l1_ratio) * settings.eta * settings.alpha)),
      toll(settings.l1_ratio * settings.eta * settings.alpha),
      is_lazy(kept >= kLeastKept && toll <= kMostToll && (is_sparse || toll == 0)) {
  if (!is_lazy) return;
  power = {1, kept};
  debt = {0, toll / kept};
  // A pass of n visits ends with all columns up to date.
  while (static_cast<std::int64_t>(power.size()) <= n && power.back() * kept >= kLeastPower) {
    power.push_back(power.back() * kept);
    debt.push_back(debt.back() + toll / power.back());
  }
}

PenalisedMachine::PenalisedMachine(std::int64_t n, std::int64_t d, std::uint64_t seed, const Shrinkage& shrinkage)
    : PassRecord(n, seed),
      w(d),
      paid(shrinkage.toll == 0 ? 0 : d),
      since(shrinkage.is_lazy && shrinkage.toll != 0 ? d : 0) {}

void PenalisedMachine::settle(const Shrinkage& shrinkage) {
  if (!shrinkage.is_lazy || visit == 0) return;
  for (std::int64_t j = 0; j < length(since); ++j) settle_column(shrinkage, *this, j);
  scale(w.data(), shrinkage.power[visit], length(w));
  std::fill(since.begin(), since.end(), 0);
  owed += shrinkage.toll * visit;
  visit = 0;
}

PenalisedPerceptron::PenalisedPerceptron(AnyRows rows, std::span<const std::int8_t> sign,
                                         std::span<const double> weight, const std::vector<std::uint64_t>& seeds,
                                         PenalisedSettings settings)
    : rows_(rows),
      n_(std::visit([](const auto& r) { return r.n; }, rows)),
      d_(std::visit([](const auto& r) { return r.d; }, rows)),
      sign_(sign),
      weight_(weight),
      settings_(settings),
      shrinkage_(settings, n_,
                 std::holds_alternative<CsrRows<float>>(rows) || std::holds_alternative<CsrRows<double>>(rows)) {
  for (const std::uint64_t seed : seeds) machines_.emplace_back(n_, d_, seed, shrinkage_);
}

void PenalisedPerceptron::start_from(std::size_t machine, std::span<const double> w, double b) {
  machines_[machine].w.assign(w.begin(), w.end());
  machines_[machine].b = b;
}

AlignedVector PenalisedPerceptron::weights(std::size_t machine) const {
  PenalisedMachine copy = machines_.at(machine);
  copy.settle(shrinkage_);
  return copy.w;
}

void PenalisedPerceptron::run(std::int64_t max_passes, double seconds, int threads) {
  const double* weight = weight_.empty() ? nullptr : weight_.data();
  std::visit(
      [&](const auto& rows) {
        run_in_turns(
            machines_, n_, d_, max_passes, seconds, threads,
            [&](std::int64_t k, std::int64_t most, std::chrono::steady_clock::time_point until) {
              run_machine(rows, machines_[k], sign_.data() + k * n_, weight, settings_, shrinkage_, most, until);
            },
            [&](const PenalisedMachine& m) { return m.separated || m.stalled || m.passes >= max_passes; });
      },
      rows_);
}

}  // namespace margrove
