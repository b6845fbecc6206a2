// Columns that lie side by side sorted in the lanes of vectors, by exchanges that do not depend on the numbers.
#pragma once

#include <cstdint>
#include <span>

#include "simd.hpp"

namespace margrove::tree {

struct Exchange {
  std::uint8_t low, high;
};

// Batcher's odd-even merge sort: exchanges that sort so many numbers, 256 at most. Made when first asked for.
std::span<const Exchange> sorting_network(std::uint32_t size);

// One number of each column in a vector; the next numbers follow.
template <class Lanes, class Cell>
MARGROVE_INLINE void sort_side_by_side(Cell* cell, std::span<const Exchange> network) {
  constexpr std::int64_t kLanes = kLanesOf<Lanes>;
  for (const auto& [low, high] : network) {
    const auto a = load<Lanes>(cell + low * kLanes), b = load<Lanes>(cell + high * kLanes);
    store(cell + low * kLanes, smaller(a, b));
    store(cell + high * kLanes, larger(a, b));
  }
}

}  // namespace margrove::tree
