#include "linear/quadratic_l1.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rows.hpp"

namespace margrove {
namespace {

// A pivot this small beside its diagonal is rounding: the column says what those before it have said.
constexpr double kNoPivot = 1e-13;

MARGROVE_CLONES void add_line(double* to, double step, const double* line, std::int64_t size) {
  add_scaled(to, step, line, size);
}

// The lower factor of `a` (k, k) in place; a column without a pivot of its own is left out: `kept` is false there.
MARGROVE_CLONES void factorize(double* a, std::int64_t k, std::vector<char>& kept) {
  for (std::int64_t i = 0; i < k; ++i) {
    double* row = a + i * k;
    const double diagonal = row[i];
    for (std::int64_t j = 0; j < i; ++j) {
      const double* other = a + j * k;
      row[j] = kept[static_cast<std::size_t>(j)] ? (row[j] - dot(row, other, j)) / other[j] : 0.0;
    }
    const double pivot = diagonal - dot(row, row, i);
    kept[static_cast<std::size_t>(i)] = pivot > kNoPivot * diagonal;
    row[i] = kept[static_cast<std::size_t>(i)] ? std::sqrt(pivot) : 1.0;
    if (!kept[static_cast<std::size_t>(i)]) std::fill(row, row + i, 0.0);
  }
}

// right <- (L L')^-1 right, 0 where there is no pivot.
void solve_factorized(const double* a, std::int64_t k, const std::vector<char>& kept, double* right) {
  for (std::int64_t i = 0; i < k; ++i)
    right[i] = kept[static_cast<std::size_t>(i)] ? (right[i] - dot(a + i * k, right, i)) / a[i * k + i] : 0.0;
  for (std::int64_t i = k - 1; i >= 0; --i) {
    if (!kept[static_cast<std::size_t>(i)]) continue;
    right[i] /= a[i * k + i];
    for (std::int64_t j = 0; j < i; ++j) right[j] -= a[i * k + j] * right[i];
  }
}

double sign_of(double x) { return static_cast<double>((x > 0) - (x < 0)); }

}  // namespace

QuadraticL1::QuadraticL1(const Terms& terms, std::vector<double> x0, std::vector<double> gradient)
    : gram_(terms.gram),
      ridge_(terms.ridge),
      penalty_(terms.penalty),
      x_(std::move(x0)),
      gradient_(std::move(gradient)),
      width_(x_.size()) {}

void QuadraticL1::move(std::size_t j, double step) {
  add_line(gradient_.data(), step, gram_.data() + j * width_, static_cast<std::int64_t>(width_));
  gradient_[j] += step * ridge_[j];
}

double QuadraticL1::descend() {
  double fall = 0;
  for (std::size_t j = 0; j < width_; ++j) {
    const double curvature = gram_[j * width_ + j] + ridge_[j], penalty = penalty_[j], before = x_[j];
    double after = 0;  // a column without curvature has no gradient either, and its weight only costs
    if (curvature > 0) {
      const double wanted = before - gradient_[j] / curvature, reach = penalty / curvature;
      after = wanted > reach ? wanted - reach : wanted < -reach ? wanted + reach : 0.0;
    } else if (penalty == 0) {
      after = before;
    }
    const double step = after - before;
    if (step == 0) continue;
    fall -= step * (gradient_[j] + curvature * step / 2) + penalty * (std::abs(after) - std::abs(before));
    x_[j] = after;
    move(j, step);
  }
  return fall;
}

std::int64_t QuadraticL1::face_size() const {
  std::int64_t size = 0;
  for (std::size_t j = 0; j < width_; ++j) size += x_[j] != 0 || penalty_[j] == 0;
  return size;
}

double QuadraticL1::step_in_face() {
  std::vector<std::size_t> face;
  for (std::size_t j = 0; j < width_; ++j)
    if (x_[j] != 0 || penalty_[j] == 0) face.push_back(j);
  const std::size_t k = face.size();
  std::vector<double> a(k * k), step(k);
  for (std::size_t r = 0; r < k; ++r) {
    for (std::size_t c = 0; c <= r; ++c) a[r * k + c] = gram_[face[r] * width_ + face[c]];
    a[r * k + r] += ridge_[face[r]];
    step[r] = -(gradient_[face[r]] + penalty_[face[r]] * sign_of(x_[face[r]]));
  }
  const std::vector<double> downhill = step;
  std::vector<char> kept(k);
  factorize(a.data(), static_cast<std::int64_t>(k), kept);
  solve_factorized(a.data(), static_cast<std::int64_t>(k), kept, step.data());
  double length = 1, slope = 0;
  std::size_t first = k;  // the coordinate that comes to 0 first, if one does
  for (std::size_t r = 0; r < k; ++r) {
    slope += downhill[r] * step[r];
    if (penalty_[face[r]] == 0 || x_[face[r]] * step[r] >= 0) continue;
    const double crossing = -x_[face[r]] / step[r];
    if (crossing < length) length = crossing, first = r;
  }
  if (!(slope > 0) || !std::isfinite(slope)) return 0;
  for (std::size_t r = 0; r < k; ++r) {
    const double to = r == first ? 0.0 : x_[face[r]] + length * step[r];
    const double moved = to - x_[face[r]];
    if (moved == 0) continue;
    x_[face[r]] = to;
    move(face[r], moved);
  }
  return slope * length * (1 - length / 2);
}

}  // namespace margrove
