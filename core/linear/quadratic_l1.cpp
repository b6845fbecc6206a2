#include "linear/quadratic_l1.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rows.hpp"

namespace margrove {
namespace {

// Of the diagonal. A smaller pivot is rounding (some 5,000 eps): the column depends on those before it, and exchanging
// it for them changes the penalty alone. This much curvature makes that exchange a very long step, cut where a sign
// changes.
constexpr double kLeastPivot = 1e-12;

MARGROVE_CLONES void add_line(double* to, double step, const double* line, std::int64_t size) {
  add_scaled(to, step, line, size);
}

// Columns of the factor subtracted by one matrix product: a square of 32 KiB, in L1.
constexpr std::int64_t kBlock = 64;

// Columns [from, to) of the lower factor of `a` (k, k), those before having been taken account of.
MARGROVE_CLONES void factorize_columns(double* a, std::int64_t k, std::int64_t from, std::int64_t to,
                                       const double* diagonal) {
  for (std::int64_t i = from; i < k; ++i) {
    double* row = a + i * k;
    for (std::int64_t j = from; j < std::min(i, to); ++j)
      row[j] = (row[j] - dot(row + from, a + j * k + from, j - from)) / a[j * k + j];
    if (i < to) row[i] = std::sqrt(std::max(row[i] - dot(row + from, row + from, i - from), kLeastPivot * diagonal[i]));
  }
}

// The lower factor of `a` (k, k), in place: a block of columns after the other, each taken from the rest of the matrix
// by one matrix product.
void factorize(double* a, std::int64_t k, const Blas<double>& blas) {
  std::vector<double> diagonal(k);
  for (std::int64_t i = 0; i < k; ++i) diagonal[i] = a[i * k + i];
  for (std::int64_t from = 0; from < k; from += kBlock) {
    const std::int64_t to = std::min(k, from + kBlock);
    factorize_columns(a, k, from, to, diagonal.data());
    const int left = k - to, width = static_cast<int>(to - from), stride = k;
    if (left == 0) break;
    const double minus = -1, one = 1;
    const double* block = a + to * k + from;
    blas.gemm("T", "N", &left, &left, &width, &minus, block, &stride, block, &stride, &one, a + to * k + to, &stride);
  }
}

// right <- (L L')^-1 right.
void solve_factorized(const double* a, std::int64_t k, double* right) {
  for (std::int64_t i = 0; i < k; ++i) right[i] = (right[i] - dot(a + i * k, right, i)) / a[i * k + i];
  for (std::int64_t i = k - 1; i >= 0; --i) {
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
      blas_(terms.blas),
      x_(std::move(x0)),
      gradient_(std::move(gradient)),
      width_(x_.size()) {}

void QuadraticL1::set(std::size_t j, double to) {
  const double step = to - x_[j];
  if (step == 0) return;
  x_[j] = to;
  add_line(gradient_.data(), step, gram_.data() + j * width_, width_);
  gradient_[j] += step * ridge_[j];
}

void QuadraticL1::descend() {
  for (std::size_t j = 0; j < width_; ++j) {
    const double curvature = gram_[j * width_ + j] + ridge_[j], penalty = penalty_[j], before = x_[j];
    double after =
        penalty > 0 ? 0.0 : before;  // without curvature there is no gradient either, and a weight only costs
    if (curvature > 0) {
      const double wanted = before - gradient_[j] / curvature, reach = penalty / curvature;
      after = wanted > reach ? wanted - reach : wanted < -reach ? wanted + reach : 0.0;
    }
    set(j, after);
  }
}

double QuadraticL1::violation() const {
  double largest = 0;
  for (std::size_t j = 0; j < width_; ++j)
    largest = std::max(largest, x_[j] != 0 ? std::abs(gradient_[j] + penalty_[j] * sign_of(x_[j]))
                                           : std::abs(gradient_[j]) - penalty_[j]);
  return largest;
}

std::int64_t QuadraticL1::face_size() const {
  std::int64_t size = 0;
  for (std::size_t j = 0; j < width_; ++j) size += x_[j] != 0 || penalty_[j] == 0;
  return size;
}

bool QuadraticL1::step_in_face() {
  std::vector<std::size_t> face;
  for (std::size_t j = 0; j < width_; ++j)
    if ((x_[j] != 0 || penalty_[j] == 0) && gram_[j * width_ + j] + ridge_[j] > 0) face.push_back(j);
  const std::size_t k = face.size();
  std::vector<double> a(k * k), step(k);
  for (std::size_t r = 0; r < k; ++r) {
    for (std::size_t c = 0; c <= r; ++c) a[r * k + c] = gram_[face[r] * width_ + face[c]];
    a[r * k + r] += ridge_[face[r]];
    step[r] = -(gradient_[face[r]] + penalty_[face[r]] * sign_of(x_[face[r]]));
  }
  const std::vector<double> downhill = step;
  factorize(a.data(), k, blas_);
  solve_factorized(a.data(), k, step.data());
  double length = 1, slope = 0;
  std::size_t first = k;  // the coordinate that comes to 0 first, if one does
  for (std::size_t r = 0; r < k; ++r) {
    slope += downhill[r] * step[r];
    if (penalty_[face[r]] == 0 || x_[face[r]] * step[r] >= 0) continue;
    const double crossing = -x_[face[r]] / step[r];
    if (crossing < length) length = crossing, first = r;
  }
  if (!(slope > 0) || !std::isfinite(slope)) return false;
  if (first < k && project(face, step, slope * length * (1 - length / 2))) return true;
  for (std::size_t r = 0; r < k; ++r) set(face[r], r == first ? 0.0 : x_[face[r]] + length * step[r]);
  return first < k;
}

// Takes the whole step, weights that would change their sign becoming 0, if the value falls by more than `least`.
bool QuadraticL1::project(const std::vector<std::size_t>& face, const std::vector<double>& step, double least) {
  std::vector<double> x = x_, gradient = gradient_;
  for (std::size_t r = 0; r < face.size(); ++r) {
    const std::size_t j = face[r];
    const double to = x[j] + step[r];
    set(j, penalty_[j] > 0 && x[j] * to < 0 ? 0.0 : to);
  }
  double fall = 0;
  for (const std::size_t j : face)
    fall -= (x_[j] - x[j]) * (gradient[j] + gradient_[j]) / 2 + penalty_[j] * (std::abs(x_[j]) - std::abs(x[j]));
  if (fall > least) return true;
  x_ = std::move(x);
  gradient_ = std::move(gradient);
  return false;
}

}  // namespace margrove
