// The rows of a node parted by their ranks of a column.
#pragma once

#include <cstdint>
#include <utility>

namespace margrove::forest {

// The largest of these ranks up to a cut, and the least above it.
std::pair<std::uint32_t, std::uint32_t> ranks_around(const std::uint32_t* rank, std::uint32_t size, std::uint32_t cut);

// Values whose ranks are at most `cut` to the front, the others behind them, each in their order. `spare` has room for
// `size` + 16 of them. Returns how many are in front.
std::uint32_t partition_values(std::uint32_t* values, std::uint32_t* spare, const std::uint32_t* rank,
                               std::uint32_t size, std::uint32_t cut);
std::uint32_t partition_values(double* values, double* spare, const std::uint32_t* rank, std::uint32_t size,
                               std::uint32_t cut);

}  // namespace margrove::forest
