// The random numbers of a tree come from a counter-based generator keyed by (seed, node, column), so that certificates
// and other machines can repeat them to the last bit (src/margrove/tree/draws.py); an ensemble gives each tree a seed
// of its own. A node's key is its `path`.
#pragma once

#include <cstdint>

namespace margrove::tree {

// A number that looks random: SplitMix64 (Steele, Lea, Flood 2014).
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The place of a column in the order in which a node looks at the columns, and what its random threshold is made of.
inline std::uint64_t place_of(std::uint64_t path, std::uint32_t column) { return mixed(path ^ mixed(column)); }

// A threshold drawn uniformly from [low, high).
double random_cut(std::uint64_t draw, double low, double high);

}  // namespace margrove::tree
