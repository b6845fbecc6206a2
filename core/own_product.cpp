#include <cstdint>
#include <vector>

#include "blas.hpp"
#include "simd.hpp"

namespace margrove {
namespace {

constexpr int kRows = 4;   // of a, multiplied at a time
constexpr int kLanes = 8;  // rows of b at a time: the lanes of a vector, so that sums go over the columns in order

template <class T>
MARGROVE_INLINE void products_body(const T* a, const T* b, int m, int n, int d, T* out, int stride) {
  using Lanes = Simd<T, kLanes>;
  std::vector<T> panel(static_cast<std::size_t>(d) * kLanes);
  for (int j = 0; j < n; j += kLanes) {
    const int width = n - j < kLanes ? n - j : kLanes;
    for (int w = 0; w < width; ++w)
      for (std::int64_t k = 0; k < d; ++k) panel[k * kLanes + w] = b[static_cast<std::int64_t>(j + w) * d + k];
    for (int i = 0; i < m; i += kRows) {
      const T* row[kRows];
      for (int r = 0; r < kRows; ++r) row[r] = a + static_cast<std::int64_t>(i + r < m ? i + r : m - 1) * d;
      Lanes sum[kRows] = {};
      for (std::int64_t k = 0; k < d; ++k) {
        const Lanes others = load<Lanes>(&panel[k * kLanes]);
        for (int r = 0; r < kRows; ++r) sum[r] += row[r][k] * others;
      }
      for (int r = 0; r < kRows && i + r < m; ++r)
        for (int w = 0; w < width; ++w) out[static_cast<std::int64_t>(i + r) * stride + j + w] = sum[r][w];
    }
  }
}

}  // namespace

MARGROVE_CLONES void own_products(const float* a, const float* b, int m, int n, int d, float* out, int stride) {
  products_body(a, b, m, n, d, out, stride);
}
MARGROVE_CLONES void own_products(const double* a, const double* b, int m, int n, int d, double* out, int stride) {
  products_body(a, b, m, n, d, out, stride);
}

}  // namespace margrove
