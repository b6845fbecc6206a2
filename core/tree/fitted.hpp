// Thresholds from a model of the classes, fitted at the node (src/margrove/tree/thresholds.py says which).
#pragma once

#include <cstdint>
#include <vector>

namespace margrove::tree {

// Present cells of a node: a number, its class, its weight.
struct Dot {
  double x;
  std::uint32_t label;
  double weight;
};

// Where the normal densities of two classes cross, between their means. Ascending.
std::vector<double> gaussian_cuts(std::vector<Dot> dots, std::size_t n_classes);
// Where a class's logistic regression against the others gives one half. Ascending.
std::vector<double> logistic_cuts(std::vector<Dot> dots, std::size_t n_classes);

}  // namespace margrove::tree
