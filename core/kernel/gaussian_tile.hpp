// Gaussian kernel values of points with few columns, in float: inner products, exp and their use in one go, without a
// matrix product in between. A value does not depend on what is computed beside it, and K(x, z) = K(z, x) to the bit.
#pragma once

#include <cstdint>

namespace margrove {

constexpr std::int64_t kGaussianColumns = 256;  // points of a tile: 64 KiB at most, in L2
// Columns of the points: beyond, a matrix product is faster. No measurement recorded.
constexpr std::int64_t kGaussianWidest = 64;

// The points of a tile, transposed: (d, kGaussianColumns), and their halved squared norms, zeros behind the last.
struct TransposedTile {
  float points[kGaussianWidest * kGaussianColumns];
  float half[kGaussianColumns];
  std::int64_t count;

  void load(const float* rows, const float* halves, std::int64_t rows_count, std::int64_t d);
};

// out[r][c] = exp(min(0, a_r·b_c - a_half_r - b_half_c)), and sums[c] += change[r] out[r][c] unless change is null.
void gaussian_tile(const float* a, const float* a_half, std::int64_t rows, std::int64_t d, const TransposedTile& b,
                   float* const* out, std::int64_t offset, const double* change, double* sums);

}  // namespace margrove
