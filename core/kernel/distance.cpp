#include "kernel/distance.hpp"

#include "dispatch.hpp"

namespace margrove {
namespace {

MARGROVE_CLONES bool has_lost_digits(const double* products, const double* b_half, double a_half, std::int64_t width) {
  int lost = 0;
#pragma omp simd reduction(| : lost)
  for (std::int64_t j = 0; j < width; ++j) {
    const double size = a_half + b_half[j];
    lost |= size - products[j] < kClose * size;
  }
  return lost != 0;
}

template <class T>
MARGROVE_INLINE double squared_distance_body(const T* x, const T* z, std::int64_t d) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t k = 0; k < d; ++k) {
    const double off = static_cast<double>(x[k]) - static_cast<double>(z[k]);
    sum += off * off;
  }
  return sum;
}
MARGROVE_CLONES double squared_distance_of(const float* x, const float* z, std::int64_t d) {
  return squared_distance_body(x, z, d);
}
MARGROVE_CLONES double squared_distance_of(const double* x, const double* z, std::int64_t d) {
  return squared_distance_body(x, z, d);
}

}  // namespace

std::vector<std::int64_t> lost_digits(const double* products, const double* b_half, double a_half, std::int64_t width) {
  std::vector<std::int64_t> lost;
  if (!has_lost_digits(products, b_half, a_half, width)) return lost;
  for (std::int64_t j = 0; j < width; ++j)
    if (a_half + b_half[j] - products[j] < kClose * (a_half + b_half[j])) lost.push_back(j);
  return lost;
}

double squared_distance(const float* x, const float* z, std::int64_t d) { return squared_distance_of(x, z, d); }
double squared_distance(const double* x, const double* z, std::int64_t d) { return squared_distance_of(x, z, d); }

}  // namespace margrove
