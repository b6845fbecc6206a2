#include "linear/kernel_perceptron.hpp"

#include <algorithm>
#include <chrono>

namespace margrove {
namespace {

// f <- f + step (K(x_i, ·) + one)
template <class T>
MARGROVE_INLINE void move_decisions_body(const T* row, std::int64_t n, double step, double one, double* decision) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) decision[j] += step * (static_cast<double>(row[j]) + one);
}
MARGROVE_CLONES void move_decisions(const float* row, std::int64_t n, double step, double one, double* decision) {
  move_decisions_body(row, n, step, one, decision);
}
MARGROVE_CLONES void move_decisions(const double* row, std::int64_t n, double step, double one, double* decision) {
  move_decisions_body(row, n, step, one, decision);
}

}  // namespace

template <class T>
KernelPerceptron<T>::KernelPerceptron(RowSource<T>& source, std::span<const std::int8_t> sign,
                                      std::span<const double> weight, std::vector<std::uint64_t> seeds,
                                      KernelPerceptronSettings settings)
    : source_(source), sign_(sign), weight_(weight), settings_(settings) {
  for (const std::uint64_t seed : seeds) machines_.emplace_back(source.size(), seed);
}

// One pass of a machine, or what is left of it. False when the clock or an absent row (in `wanted`) breaks it off.
template <class T>
bool KernelPerceptron<T>::walk_pass(KernelPerceptronMachine& m, const std::int8_t* sign,
                                    std::chrono::steady_clock::time_point until, std::int64_t& wanted) {
  const std::int64_t n = source_.size();
  const double one = settings_.fit_intercept ? 1.0 : 0.0;
  if (!m.is_in_pass) {
    m.is_in_pass = true;
    m.pass_mistakes = 0;
    if (settings_.shuffle) m.order.shuffle();
  }
  for (; m.position < n; ++m.position) {
    const std::size_t i = m.order.data()[m.position];
    const double y = sign[i], weight = weight_.empty() ? 1.0 : weight_[i];
    if (y == 0 || y * m.decision[i] > 0) continue;
    // A mistake costs a kernel row: look at the clock before each.
    if (std::chrono::steady_clock::now() >= until) return false;
    const T* row = source_.row(i);
    if (row == nullptr) {
      wanted = i;
      return false;
    }
    move_decisions(row, n, settings_.eta * weight * y, one, m.decision.data());
    m.alpha[i] += 1;
    ++m.mistakes;
    ++m.pass_mistakes;
  }
  m.is_in_pass = false;
  m.position = 0;
  ++m.passes;
  m.separated = m.pass_mistakes == 0;
  return true;
}

template <class T>
std::int64_t KernelPerceptron<T>::run(std::int64_t max_passes, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const auto is_done = [&](const KernelPerceptronMachine& m) { return m.separated || m.passes >= max_passes; };
  std::int64_t wanted = -1;
  while (!std::all_of(machines_.begin(), machines_.end(), is_done)) {
    KernelPerceptronMachine& m = machines_[turn_];
    if (!is_done(m) && !walk_pass(m, sign_.data() + turn_ * source_.size(), until, wanted)) return wanted;
    turn_ = (turn_ + 1) % machines_.size();
  }
  return wanted;
}

template class KernelPerceptron<float>;
template class KernelPerceptron<double>;

}  // namespace margrove
