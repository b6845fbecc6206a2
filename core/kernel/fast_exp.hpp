// exp for arguments <= 0, in vectors. Cody and Waite's reduction x = k ln 2 + r, |r| <= ln(2)/2, a polynomial for
// exp(r), and k put into the exponent. Relative error below 2e-7 for float and 1e-15 for double (tests/core). Below the
// range of normal numbers the answer is 0.
#pragma once

#include <bit>
#include <cstdint>

#include "simd.hpp"

namespace margrove {

// V is float and I int32_t, or both are vectors of them.
template <class V, class I>
MARGROVE_INLINE V exp_of_negative_floats(const V& x) {
  // ln 2 in two parts, the first with so few digits that k times it is exact; exp(kLowest) is nearly the least normal
  // float.
  constexpr float kLog2e = 1.44269504f, kLn2High = 0.693145752f, kLn2Low = 1.42860677e-6f, kLowest = -87.0f;
  const V clipped = x < kLowest ? V{} + kLowest : x;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  constexpr float kRound = 12582912.0f;
  const V shifted = clipped * kLog2e + kRound, k = shifted - kRound;
  const V r = (clipped - k * kLn2High) - k * kLn2Low;
  V p = V{} + 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const I scale = (std::bit_cast<I>(shifted) + 127) << 23;
  return x < kLowest ? V{} : p * std::bit_cast<V>(scale);
}

MARGROVE_INLINE float exp_of_negative(float x) { return exp_of_negative_floats<float, std::int32_t>(x); }

MARGROVE_INLINE double exp_of_negative(double x) {
  // As above; kRound is 1.5 * 2^52.
  constexpr double kLog2e = 1.4426950408889634, kLn2High = 0.693147180369123816490,
                   kLn2Low = 1.90821492927058770002e-10, kLowest = -708.0, kRound = 6755399441055744.0;
  const double clipped = x < kLowest ? kLowest : x;
  const double shifted = clipped * kLog2e + kRound, k = shifted - kRound;
  const double r = (clipped - k * kLn2High) - k * kLn2Low;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const auto scale = std::bit_cast<double>((std::bit_cast<std::int64_t>(shifted) + 1023) << 52);
  return x < kLowest ? 0.0 : p * scale;
}

}  // namespace margrove
