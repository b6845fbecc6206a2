#include "kernel/gaussian_tile.hpp"

#include <algorithm>

#include "kernel/fast_exp.hpp"
#include "simd.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kLanesOfFloat = 16;  // a vector of AVX-512
using Floats = Simd<float, kLanesOfFloat>;
using Ints = Simd<std::int32_t, kLanesOfFloat>;
using HalfFloats = Simd<float, kLanesOfFloat / 2>;
using HalfDoubles = Simd<double, kLanesOfFloat / 2>;

MARGROVE_INLINE void add_scaled(const Floats& values, double change, double* sums) {
  for (int part = 0; part < 2; ++part) {
    const auto some = load<HalfFloats>(reinterpret_cast<const float*>(&values) + part * kLanesOfFloat / 2);
    double* out = sums + part * kLanesOfFloat / 2;
    store(out, load<HalfDoubles>(out) + change * converted<HalfDoubles>(some));
  }
}

// Rows by kRows and columns by two vectors: the sums stay in registers.
template <int kRows>
MARGROVE_INLINE void rows_of_tile(const float* a, const float* a_half, std::int64_t d, const TransposedTile& b,
                                  float* const* out, std::int64_t offset, const double* change, double* sums) {
  for (std::int64_t c = 0; c < b.count; c += 2 * kLanesOfFloat) {
    Floats products[kRows][2] = {};
    for (std::int64_t k = 0; k < d; ++k) {
      const float* column = b.points + k * kGaussianColumns + c;
      const Floats left = load<Floats>(column), right = load<Floats>(column + kLanesOfFloat);
      for (int r = 0; r < kRows; ++r) {
        products[r][0] += a[r * d + k] * left;
        products[r][1] += a[r * d + k] * right;
      }
    }
    for (int side = 0; side < 2; ++side) {
      const std::int64_t from = c + side * kLanesOfFloat, count = std::min(kLanesOfFloat, b.count - from);
      if (count <= 0) break;
      const Floats half = load<Floats>(b.half + from);
      for (int r = 0; r < kRows; ++r) {
        const Floats exponent = products[r][side] - (a_half[r] + half);
        const Floats values = exp_of_negative_floats<Floats, Ints>(exponent < 0 ? exponent : Floats{});
        if (count == kLanesOfFloat) {
          store(out[r] + offset + from, values);
          if (change) add_scaled(values, change[r], sums + from);
        } else {
          for (std::int64_t l = 0; l < count; ++l) {
            out[r][offset + from + l] = values[l];
            if (change) sums[from + l] += change[r] * values[l];
          }
        }
      }
    }
  }
}

MARGROVE_CLONES void all_rows_of_tile(const float* a, const float* a_half, std::int64_t rows, std::int64_t d,
                                      const TransposedTile& b, float* const* out, std::int64_t offset,
                                      const double* change, double* sums) {
  constexpr std::int64_t kRows = 6;  // 12 vectors of sums, within the 32 registers of AVX-512
  std::int64_t r = 0;
  for (; r + kRows <= rows; r += kRows)
    rows_of_tile<kRows>(a + r * d, a_half + r, d, b, out + r, offset, change ? change + r : nullptr, sums);
  for (; r < rows; ++r)
    rows_of_tile<1>(a + r * d, a_half + r, d, b, out + r, offset, change ? change + r : nullptr, sums);
}

}  // namespace

void TransposedTile::load(const float* rows, const float* halves, std::int64_t rows_count, std::int64_t d) {
  count = rows_count;
  std::fill(half, half + kGaussianColumns, 0.0f);
  std::copy_n(halves, count, half);
  for (std::int64_t k = 0; k < d; ++k) {
    float* column = points + k * kGaussianColumns;
    for (std::int64_t c = 0; c < count; ++c) column[c] = rows[c * d + k];
    std::fill(column + count, column + kGaussianColumns, 0.0f);
  }
}

void gaussian_tile(const float* a, const float* a_half, std::int64_t rows, std::int64_t d, const TransposedTile& b,
                   float* const* out, std::int64_t offset, const double* change, double* sums) {
  all_rows_of_tile(a, a_half, rows, d, b, out, offset, change, sums);
}

}  // namespace margrove
