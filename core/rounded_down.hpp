// Numbers as floats that keep their order: x ≤ θ, for an x of a type, is x ≤ the largest number of the type that is not
// above θ.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dispatch.hpp"

namespace margrove {

// The largest number of the type that is not above x; NaN stays. (std::nextafter is a call, not taken in lanes.)
template <class T>
MARGROVE_INLINE T rounded_down(double x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    const auto near = static_cast<T>(x);
    const auto bits = std::bit_cast<std::int32_t>(near);
    constexpr std::int32_t kLeastNegative = std::numeric_limits<std::int32_t>::min() + 1;
    const std::int32_t below = near > 0 ? bits - 1 : near < 0 ? bits + 1 : kLeastNegative;
    return std::bit_cast<T>(static_cast<double>(near) > x ? below : bits);
  }
}

}  // namespace margrove
