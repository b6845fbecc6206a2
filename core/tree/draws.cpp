#include "tree/draws.hpp"

#include <algorithm>

namespace margrove::tree {

double random_cut(std::uint64_t draw, double low, double high) {
  const double share = static_cast<double>(mixed(draw) >> 11) * 0x1p-53;  // 53 bits, in [0, 1)
  const double cut = (1 - share) * low + share * high;                    // the difference of the two may overflow
  return cut < high ? std::max(cut, low) : low;
}

}  // namespace margrove::tree
