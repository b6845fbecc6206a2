#include "tree/network.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

namespace margrove::tree {
namespace {

std::vector<Exchange> network_for(std::uint32_t size) {
  std::vector<Exchange> found;
  for (std::uint32_t p = 1; p < size; p *= 2)
    for (std::uint32_t k = p; k >= 1; k /= 2)
      for (std::uint32_t j = k % p; j + k < size; j += 2 * k)
        for (std::uint32_t i = j; i < std::min(j + k, size - k); ++i)
          if (i / (2 * p) == (i + k) / (2 * p))
            found.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i + k)});
  return found;
}

}  // namespace

std::span<const Exchange> sorting_network(std::uint32_t size) {
  static std::array<std::once_flag, kMostExchanged + 1> is_made;
  static std::array<std::vector<Exchange>, kMostExchanged + 1> networks;
  std::call_once(is_made[size], [&] { networks[size] = network_for(size); });
  return networks[size];
}

}  // namespace margrove::tree
