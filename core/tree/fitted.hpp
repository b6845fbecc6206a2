// Thresholds from a model of the classes, fitted at the node (src/margrove/tree/thresholds.py says which).
#pragma once

#include <cstdint>
#include <vector>

namespace margrove::tree {

// Of a standardised column: the least variance of a class, which keeps its density finite. Chosen, not measured.
constexpr double kVarianceFloor = 1e-9;
// On the slope of a standardised column: its regression stays finite where classes are separable. Chosen, not measured.
constexpr double kRidge = 1e-3;
// Of the column's deviation: a cut that falls on a value lies above it, far beyond rounding. Chosen, not measured.
constexpr double kNudge = 1e-9;

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
