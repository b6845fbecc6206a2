// Columns that lie side by side sorted in the lanes of vectors, by exchanges that do not depend on the numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "simd.hpp"

namespace margrove::tree {

struct Exchange {
  std::uint8_t low, high;
};

constexpr std::uint32_t kMostExchanged = 256;

// Batcher's odd-even merge sort: exchanges that sort so many numbers, kMostExchanged at most. Made when first asked
// for.
std::span<const Exchange> sorting_network(std::uint32_t size);

template <class Lanes, class Cell>
MARGROVE_INLINE void exchange(Cell* low, Cell* high) {
  const auto a = load<Lanes>(low), b = load<Lanes>(high);
  store(low, smaller(a, b));
  store(high, larger(a, b));
}

// One number of each column in a vector; the next numbers follow. Runs of kMostExchanged are sorted, and merged by the
// same method.
template <class Lanes, class Cell>
MARGROVE_INLINE void sort_side_by_side(Cell* cell, std::uint32_t size) {
  constexpr std::size_t kLanes = kLanesOf<Lanes>;
  for (std::uint32_t begin = 0; begin < size; begin += kMostExchanged) {
    Cell* run = cell + begin * kLanes;
    for (const auto& [low, high] : sorting_network(std::min(kMostExchanged, size - begin)))
      exchange<Lanes>(run + low * kLanes, run + high * kLanes);
  }
  for (std::uint32_t p = kMostExchanged; p < size; p *= 2)
    for (std::uint32_t k = p; k >= 1; k /= 2)
      for (std::uint32_t j = k % p; j + k < size; j += 2 * k) {
        if (j / (2 * p) != (j + k) / (2 * p)) continue;
        for (std::uint32_t i = j; i < std::min(j + k, size - k); ++i)
          exchange<Lanes>(cell + i * kLanes, cell + (i + k) * kLanes);
      }
}

}  // namespace margrove::tree
