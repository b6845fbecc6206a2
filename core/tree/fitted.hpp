// Thresholds from a model of the classes, fitted at the node (src/margrove/tree/thresholds.py says which).
#pragma once

#include <cstdint>
#include <vector>

namespace margrove::tree {

constexpr double kVarianceFloor = 1e-9;  // of a standardised column: the least variance of a class
constexpr double kRidge = 1e-3;          // on the slope of a standardised column
constexpr double kNudge = 1e-9;          // of the column's deviation: a cut that falls on a value lies above it

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
