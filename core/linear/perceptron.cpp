#include "linear/perceptron.hpp"

#include <algorithm>
#include <chrono>

#include "parallel.hpp"

namespace margrove {
namespace {

// Between two looks at the clock a machine does about this many multiplications: some 20 microseconds.
constexpr std::int64_t kWorkBetweenLooks = 1 << 17;

// What a machine needs to judge a row. `sign` and `weight` are indexed by row; `weight` may be null.
struct Judge {
  const std::uint32_t* order;
  const std::int8_t* sign;
  const double* weight;
  const double* w;
  double b;
};

template <class T>
MARGROVE_INLINE void prefetch_row(const DenseRows<T>& rows, std::int64_t i) {
  // The order is random, so the hardware sees no stream: ask for the row's head, the rest then is one.
  const char* row = reinterpret_cast<const char*>(rows.row(i));
  const std::int64_t bytes = std::min<std::int64_t>(rows.d * static_cast<std::int64_t>(sizeof(T)), 512);
  for (std::int64_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(row + offset);
}

template <class T>
MARGROVE_INLINE void prefetch_row(const CsrRows<T>& rows, std::int64_t i) {
  __builtin_prefetch(rows.data + rows.start[i]);
  __builtin_prefetch(rows.column + rows.start[i]);
}

// The first position in [from, to) whose row is misjudged, or `to`. A NaN decision is a mistake.
template <class Rows>
MARGROVE_INLINE std::int64_t find_mistake_body(const Rows& rows, const Judge& judge, std::int64_t from,
                                               std::int64_t to) {
  constexpr std::int64_t kAhead = 3;
  for (std::int64_t position = from; position < to; ++position) {
    if (position + kAhead < to) prefetch_row(rows, judge.order[position + kAhead]);
    const std::int64_t i = judge.order[position];
    const double y = judge.sign[i];
    if (y == 0 || (judge.weight && judge.weight[i] == 0)) continue;
    if (!(y * (dot_row(rows, i, judge.w) + judge.b) > 0)) return position;
  }
  return to;
}

#define MARGROVE_PERCEPTRON_STEPS(ROWS)                                                              \
  MARGROVE_CLONES std::int64_t find_mistake(const ROWS& rows, const Judge& judge, std::int64_t from, \
                                            std::int64_t to) {                                       \
    return find_mistake_body(rows, judge, from, to);                                                 \
  }                                                                                                  \
  MARGROVE_CLONES void learn_row(const ROWS& rows, std::int64_t i, double step, double* w) {         \
    add_row(rows, i, step, w);                                                                       \
  }
MARGROVE_PERCEPTRON_STEPS(DenseRows<float>)
MARGROVE_PERCEPTRON_STEPS(DenseRows<double>)
MARGROVE_PERCEPTRON_STEPS(CsrRows<float>)
MARGROVE_PERCEPTRON_STEPS(CsrRows<double>)
#undef MARGROVE_PERCEPTRON_STEPS

// Keeps (w, b) as it stands after a mistake on row i. False when there is no room for it.
bool keep_prototype(PerceptronMachine& m, std::int64_t i, std::int64_t room) {
  const auto wanted = static_cast<std::int64_t>((m.prototypes.size() + m.w.size() + 1) * sizeof(double));
  if (wanted > room) return false;
  m.prototypes.insert(m.prototypes.end(), m.w.begin(), m.w.end());
  m.prototypes.push_back(m.b);
  m.votes.push_back(0);
  m.makers.push_back(i);
  return true;
}

// Corrects the mistake on row i. Invariant: w = eta sum alpha_i s_i y_i x_i.
template <class Rows>
void learn(const Rows& rows, PerceptronMachine& m, std::int64_t i, double y, double weight,
           const PerceptronSettings& settings) {
  const double step = settings.eta * weight * y;
  learn_row(rows, i, step, m.w.data());
  if (settings.fit_intercept) m.b += step;
  m.alpha[static_cast<std::size_t>(i)] += 1;
  ++m.mistakes;
  ++m.pass_mistakes;
  if (settings.variant == Variant::averaged) {
    const auto before = static_cast<double>(m.steps);  // steps finished before this one, t - 1
    learn_row(rows, i, step * before, m.lag_w.data());
    if (settings.fit_intercept) m.lag_b += step * before;
    m.lag_alpha[static_cast<std::size_t>(i)] += before;
  } else if (settings.variant == Variant::voted) {
    m.out_of_room = !keep_prototype(m, i, settings.voted_bytes);
  }
}

template <class Rows>
void run_machine(const Rows& rows, PerceptronMachine& m, const std::int8_t* sign, const double* weight,
                 const PerceptronSettings& settings, std::int64_t max_passes,
                 std::chrono::steady_clock::time_point until) {
  const std::int64_t stride = std::max<std::int64_t>(1, kWorkBetweenLooks / (rows.d + 16));
  while (!m.separated && !m.out_of_room && m.passes < max_passes) {
    if (m.position == 0) {
      m.pass_mistakes = 0;
      if (settings.shuffle) m.order.shuffle();
    }
    const std::int64_t border = std::min(rows.n, m.position + stride);
    while (m.position < border && !m.out_of_room) {
      const Judge judge{m.order.data(), sign, weight, m.w.data(), m.b};
      const std::int64_t found = find_mistake(rows, judge, m.position, border);
      if (!m.votes.empty()) m.votes.back() += found - m.position;
      m.steps += found - m.position;
      m.position = found;
      if (found == border) break;
      const std::int64_t i = m.order.data()[found];
      learn(rows, m, i, sign[i], weight ? weight[i] : 1.0, settings);
      if (!m.votes.empty()) ++m.votes.back();  // the new vector survives the step that made it
      ++m.steps;
      ++m.position;
    }
    if (m.position == rows.n) {
      m.position = 0;
      ++m.passes;
      m.separated = m.pass_mistakes == 0;
    }
    if (std::chrono::steady_clock::now() >= until) return;
  }
}

}  // namespace

PerceptronMachine::PerceptronMachine(std::int64_t n, std::int64_t d, std::uint64_t seed)
    : w(static_cast<std::size_t>(d)), alpha(static_cast<std::size_t>(n)), order(n, seed) {}

Perceptron::Perceptron(AnyRows rows, std::span<const std::int8_t> sign, std::span<const double> weight,
                       std::vector<std::uint64_t> seeds, PerceptronSettings settings)
    : rows_(rows), sign_(sign), weight_(weight), settings_(settings) {
  std::visit([&](const auto& r) { n_ = r.n, d_ = r.d; }, rows_);
  for (const std::uint64_t seed : seeds) {
    PerceptronMachine& m = machines_.emplace_back(n_, d_, seed);
    if (settings_.variant == Variant::averaged) {
      m.lag_w.resize(m.w.size());
      m.lag_alpha.resize(m.alpha.size());
    }
  }
}

void Perceptron::start_from(std::size_t machine, std::span<const double> w, double b) {
  machines_[machine].w.assign(w.begin(), w.end());
  machines_[machine].b = b;
}

void Perceptron::run(std::int64_t max_passes, double seconds, int threads) {
  const auto until =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  std::visit(
      [&](const auto& rows) {
        parallel_for(static_cast<std::int64_t>(machines_.size()), threads, [&](std::int64_t k) {
          run_machine(rows, machines_[static_cast<std::size_t>(k)], sign_.data() + k * n_,
                      weight_.empty() ? nullptr : weight_.data(), settings_, max_passes, until);
        });
      },
      rows_);
}

}  // namespace margrove
