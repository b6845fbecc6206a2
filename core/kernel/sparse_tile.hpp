// Some sparse rows side by side, column by column, so that one pass over the non-zeros of another row gives its inner
// products with all of them. Memory is columns × width; nothing else is ever made dense.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dispatch.hpp"
#include "rows.hpp"

namespace margrove {

// out_w = sum over the non-zeros k of the row: x_k tile[column_k][w]. `width` is a multiple of 8.
template <class T, class U>
MARGROVE_INLINE void sparse_products_body(const U* data, const std::int32_t* column, std::int64_t count, const T* tile,
                                          std::int64_t width, T* out) {
  for (std::int64_t w = 0; w < width; w += 8) {
    T sums[8] = {};
    for (std::int64_t k = 0; k < count; ++k) {
      const T x = static_cast<T>(data[k]);
      const T* cells = tile + static_cast<std::int64_t>(column[k]) * width + w;
#pragma omp simd
      for (int l = 0; l < 8; ++l) sums[l] += x * cells[l];
    }
    for (int l = 0; l < 8; ++l) out[w + l] = sums[l];
  }
}

void sparse_products(const float*, const std::int32_t*, std::int64_t, const float*, std::int64_t, float*);
void sparse_products(const double*, const std::int32_t*, std::int64_t, const float*, std::int64_t, float*);
void sparse_products(const float*, const std::int32_t*, std::int64_t, const double*, std::int64_t, double*);
void sparse_products(const double*, const std::int32_t*, std::int64_t, const double*, std::int64_t, double*);

template <class T>
class SparseTile {
 public:
  // As wide as fits into a few megabytes.
  static std::int64_t width_for(std::int64_t d) {
    constexpr std::int64_t kBytes = 4 << 20;
    const std::int64_t fits = kBytes / (static_cast<std::int64_t>(sizeof(T)) * std::max<std::int64_t>(1, d));
    return std::clamp<std::int64_t>(fits / 8 * 8, 8, 64);
  }
  explicit SparseTile(std::int64_t d) : width_(width_for(d)), cells_(static_cast<std::size_t>(d * width_)) {}
  std::int64_t width() const { return width_; }

  template <class U>
  void load(const CsrRows<U>& rows, std::span<const std::int64_t> chosen) {
    write(rows, chosen, [](U x) { return static_cast<T>(x); });
  }
  template <class U>
  void clear(const CsrRows<U>& rows, std::span<const std::int64_t> chosen) {
    write(rows, chosen, [](U) { return T(0); });
  }
  // out (width): products of row i with every row that was loaded.
  template <class U>
  void products(const CsrRows<U>& rows, std::int64_t i, T* out) const {
    const std::int64_t from = rows.start[i];
    sparse_products(rows.data + from, rows.column + from, rows.start[i + 1] - from, cells_.data(), width_, out);
  }

 private:
  template <class U, class Value>
  void write(const CsrRows<U>& rows, std::span<const std::int64_t> chosen, Value value) {
    for (std::size_t r = 0; r < chosen.size(); ++r)
      for (std::int64_t k = rows.start[chosen[r]]; k < rows.start[chosen[r] + 1]; ++k)
        cells_[static_cast<std::size_t>(rows.column[k] * width_) + r] = value(rows.data[k]);
  }

  std::int64_t width_;
  std::vector<T> cells_;  // (d, width)
};

}  // namespace margrove
