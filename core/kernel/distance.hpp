// Distances that inner products lose: |x|^2 + |z|^2 - 2 x·z has no digits left for points that lie close together and
// far from the rest. In double such pairs are found and taken again, from the differences.
#pragma once

#include <cstdint>
#include <vector>

namespace margrove {

// Of the sizes that are subtracted: below, six of the sixteen digits of a distance are gone.
constexpr double kClose = 1e-6;

// Where the distance a + b_j - p_j, of halved squared norms a, b_j and products p_j, has lost ten digits or more.
std::vector<std::int64_t> lost_digits(const double* products, const double* b_half, double a_half, std::int64_t width);

// |x - z|^2, in double.
double squared_distance(const float* x, const float* z, std::int64_t d);
double squared_distance(const double* x, const double* z, std::int64_t d);

}  // namespace margrove
