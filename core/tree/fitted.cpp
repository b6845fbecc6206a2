#include "tree/fitted.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace margrove::tree {
namespace {

// The numbers are standardised, so these are of 1: a gradient, or a step, from which nothing is to be gained any more
// (some 5,000 eps); the rounding of a loss (some 50 eps).
constexpr double kFlat = 1e-12, kRounding = 1e-14;
constexpr int kNewtonSteps = 100;  // at most (chosen, not measured)

// The numbers standardised in place. `spread` is 0 where all are the same. All is in units of 2^power, so that no
// difference of huge numbers overflows and no part of a tiny one vanishes.
struct Scale {
  double centre = 0, spread = 0;
  int power = 0;

  explicit Scale(std::vector<Dot>& dots) {
    double largest = 0, size = 0, total = 0, mean = 0, square = 0;
    for (const Dot& dot : dots) largest = std::max(largest, std::abs(dot.x));
    if (largest == 0) return;
    std::frexp(largest, &power);
    for (Dot& dot : dots) dot.x = std::ldexp(dot.x, -power);
    const double first = dots[0].x;
    for (const Dot& dot : dots) size = std::max(size, std::abs(dot.x - first)), total += dot.weight;
    if (size == 0) return;
    for (Dot& dot : dots) dot.x = (dot.x - first) / size, mean += dot.weight / total * dot.x;
    for (Dot& dot : dots) dot.x -= mean, square += dot.weight / total * dot.x * dot.x;
    if (square == 0) return;  // all the weight is on one value, up to rounding
    const double deviation = std::sqrt(square);
    for (Dot& dot : dots) dot.x /= deviation;
    centre = first + size * mean;
    spread = size * deviation;
  }

  std::vector<double> back(std::vector<double> cuts) const {
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (double& cut : cuts) cut = std::ldexp(centre + spread * (cut + kNudge), power);
    return cuts;
  }
};

struct Normal {
  double weight = 0, mean = 0, variance = 0;
};

// log w − ½ log v − (x − m)²/2v is equal for both: a x² + b x + c = 0, between the means.
void add_crossings(const Normal& one, const Normal& other, std::vector<double>& cuts) {
  const auto [w1, m1, v1] = one;
  const auto [w2, m2, v2] = other;
  const double a = 0.5 / v2 - 0.5 / v1, b = m1 / v1 - m2 / v2;
  const double c = 0.5 * m2 * m2 / v2 - 0.5 * m1 * m1 / v1 + std::log(w1 / w2) - 0.5 * std::log(v1 / v2);
  const double discriminant = b * b - 4 * a * c;
  if (m1 == m2 || discriminant < 0) return;
  const double q = -0.5 * (b + std::copysign(std::sqrt(discriminant), b));  // of b's sign turned: nothing cancels
  for (const auto& [part, whole] : {std::array{q, a}, std::array{c, q}})
    if (whole != 0 && part / whole >= std::min(m1, m2) && part / whole <= std::max(m1, m2))
      cuts.push_back(part / whole);
}

struct Line {
  double intercept, slope;
};

// −intercept/slope of the logistic regression of a class on x, by Newton's method with halved steps; NaN if flat.
double one_half(const std::vector<Dot>& dots, std::uint32_t label) {
  double ones = 0, others = 0;
  for (const Dot& dot : dots) (dot.label == label ? ones : others) += dot.weight;
  const double total = ones + others;
  const auto loss = [&](const Line& line) {
    double sum = 0.5 * kRidge * line.slope * line.slope;
    for (const Dot& dot : dots) {
      const double at = line.intercept + line.slope * dot.x;
      const double log_sum = std::max(at, 0.0) + std::log1p(std::exp(-std::abs(at)));
      sum += dot.weight / total * (log_sum - (dot.label == label ? at : 0.0));
    }
    return sum;
  };
  Line line{std::log(ones / others), 0.0};
  if (!std::isfinite(line.intercept)) return std::nan("");
  for (int step = 0; step < kNewtonSteps; ++step) {
    double g0 = 0, g1 = kRidge * line.slope, h00 = 0, h01 = 0, h11 = kRidge;
    for (const Dot& dot : dots) {
      const double p = 0.5 * (1 + std::tanh(0.5 * (line.intercept + line.slope * dot.x))), w = dot.weight / total;
      const double off = w * (p - (dot.label == label ? 1.0 : 0.0)), curve = w * p * (1 - p);
      g0 += off;
      g1 += off * dot.x;
      h00 += curve;
      h01 += curve * dot.x;
      h11 += curve * dot.x * dot.x;
    }
    if (std::max(std::abs(g0), std::abs(g1)) <= kFlat) break;
    if (h00 == 0) return std::nan("");  // the class has next to none of the weight, or all
    const double determinant = h00 * h11 - h01 * h01;
    const double d0 = (h11 * g0 - h01 * g1) / determinant, d1 = (h00 * g1 - h01 * g0) / determinant;
    const double here = loss(line);
    double length = 1;
    while (length > kFlat && loss({line.intercept - length * d0, line.slope - length * d1}) >
                                 here + kRounding - 1e-4 * length * (g0 * d0 + g1 * d1))
      length /= 2;
    line = {line.intercept - length * d0, line.slope - length * d1};
  }
  return line.slope != 0 ? -line.intercept / line.slope : std::nan("");
}

}  // namespace

std::vector<double> gaussian_cuts(std::vector<Dot> dots, std::size_t n_classes) {
  const Scale scale(dots);
  std::vector<double> cuts;
  if (scale.spread == 0) return cuts;
  std::vector<Normal> fits(n_classes);
  for (const Dot& dot : dots) fits[dot.label].weight += dot.weight, fits[dot.label].mean += dot.weight * dot.x;
  for (Normal& fit : fits) fit.mean /= fit.weight > 0 ? fit.weight : 1;
  for (const Dot& dot : dots) {
    Normal& fit = fits[dot.label];
    fit.variance += dot.weight / fit.weight * (dot.x - fit.mean) * (dot.x - fit.mean);
  }
  std::erase_if(fits, [](const Normal& fit) { return fit.weight <= 0; });
  for (Normal& fit : fits) fit.variance = std::max(fit.variance, kVarianceFloor);
  for (std::size_t i = 0; i < fits.size(); ++i)
    for (std::size_t j = i + 1; j < fits.size(); ++j) add_crossings(fits[i], fits[j], cuts);
  return scale.back(std::move(cuts));
}

std::vector<double> logistic_cuts(std::vector<Dot> dots, std::size_t n_classes) {
  const Scale scale(dots);
  std::vector<double> cuts;
  std::vector<bool> is_present(n_classes);
  for (const Dot& dot : dots) is_present[dot.label] = true;
  const auto present = std::count(is_present.begin(), is_present.end(), true);
  if (scale.spread == 0 || present < 2) return cuts;
  bool is_first = present == 2;  // of two classes, one fit says it all: that of the second
  for (std::uint32_t k = 0; k < n_classes; ++k) {
    if (!is_present[k]) continue;
    if (!is_first) {
      const double half = one_half(dots, k);
      if (std::isfinite(half)) cuts.push_back(half);
    }
    is_first = false;
  }
  return scale.back(std::move(cuts));
}

}  // namespace margrove::tree
