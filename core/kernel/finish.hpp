// The last step of every kernel that is made from inner products: K = finish(x·z), a stretch of values at a time.
//
// The Gaussian kernel is  exp(-gamma |x-z|^2) = exp(x'·z' - |x'|^2/2 - |z'|^2/2)  with  x' = sqrt(2 gamma) (x - mean):
// points are packed scaled and centred, because far from the origin the difference loses its digits.
#pragma once

#include <cmath>
#include <cstdint>

#include "dispatch.hpp"
#include "kernel/block.hpp"
#include "kernel/fast_exp.hpp"

namespace margrove {

constexpr double kFewFactors = 16;  // of a power that is multiplied out; beyond, pow is called. Chosen, not measured

inline bool is_by_products(KernelKind kind) {
  return kind != KernelKind::laplacian && kind != KernelKind::chi2 && kind != KernelKind::intersection;
}

// out_j = exp(min(0, p_j - a - b_j)), a and b the halved squared norms.
template <class T>
MARGROVE_INLINE void finish_gaussian_body(const T* products, const T* b_half, T a_half, std::int64_t width, T* out) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    const T exponent = products[j] - (a_half + b_half[j]);
    out[j] = exp_of_negative(exponent < 0 ? exponent : T(0));
  }
}

// The other kernels of products; `products` and `out` may be the same.
template <class T>
void finish_products(const T* products, std::int64_t width, const KernelSpec& spec, T* out) {
  switch (spec.kind) {
    case KernelKind::poly:
      for (std::int64_t j = 0; j < width; ++j) {
        const double base = spec.gamma * products[j] + spec.coef0;
        double power = 1;
        if (spec.degree <= kFewFactors)
          for (int k = 0; k < static_cast<int>(spec.degree); ++k) power *= base;
        else
          power = std::pow(base, spec.degree);
        out[j] = static_cast<T>(power);
      }
      return;
    case KernelKind::sigmoid:
      for (std::int64_t j = 0; j < width; ++j)
        out[j] = static_cast<T>(std::tanh(spec.gamma * products[j] + spec.coef0));
      return;
    default:
      for (std::int64_t j = 0; j < width; ++j) out[j] = products[j];
  }
}

// K(x, x) from |x|^2.
inline double diagonal_of(const KernelSpec& spec, double squared_norm, double sum) {
  switch (spec.kind) {
    case KernelKind::linear:
      return squared_norm;
    case KernelKind::poly:
      return std::pow(spec.gamma * squared_norm + spec.coef0, spec.degree);
    case KernelKind::sigmoid:
      return std::tanh(spec.gamma * squared_norm + spec.coef0);
    case KernelKind::intersection:
      return sum;
    default:
      return 1;
  }
}

// How large the numbers are whose difference the kernel is made of, for the kernels that are no plain products: what
// rounding of the points, relative to them, does to an exponent or an argument.
inline double magnitude_of(const KernelSpec& spec, double squared_norm, double absolute_sum) {
  switch (spec.kind) {
    case KernelKind::sigmoid:
      return spec.gamma * squared_norm + std::fabs(spec.coef0);
    case KernelKind::laplacian:
    case KernelKind::chi2:
      return spec.gamma * absolute_sum;
    case KernelKind::rbf:
      return spec.gamma * squared_norm;
    default:
      return std::fabs(diagonal_of(spec, squared_norm, absolute_sum));
  }
}

}  // namespace margrove
