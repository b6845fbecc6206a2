// Some sparse rows side by side, column by column, so that one pass over the non-zeros of another row gives its inner
// products with all of them. Only columns that occur in these rows are laid out; nothing else is ever made dense.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dispatch.hpp"
#include "rows.hpp"

namespace margrove {

// Rows side by side: their sums are 4 (float) or 8 (double) of the 32 registers of AVX-512.
constexpr std::int64_t kSparseWidth = 64;

// out_w = sum over the non-zeros k of the row whose column has a place: x_k cells[place][w].
void sparse_products(const float*, const std::int32_t*, std::int64_t, const std::int32_t*, const float*, float*);
void sparse_products(const double*, const std::int32_t*, std::int64_t, const std::int32_t*, const float*, float*);
void sparse_products(const float*, const std::int32_t*, std::int64_t, const std::int32_t*, const double*, double*);
void sparse_products(const double*, const std::int32_t*, std::int64_t, const std::int32_t*, const double*, double*);

template <class T>
class SparseTile {
 public:
  explicit SparseTile(std::int64_t d) : place_(d, -1) {}

  // At most kSparseWidth rows; `clear` with the same rows before the next.
  template <class U>
  void load(const CsrRows<U>& rows, std::span<const std::int64_t> chosen) {
    cells_.clear();
    for (std::size_t r = 0; r < chosen.size(); ++r)
      for (std::int64_t k = rows.start[chosen[r]]; k < rows.start[chosen[r] + 1]; ++k) {
        std::int32_t& place = place_[rows.column[k]];
        if (place < 0) {
          place = cells_.size() / kSparseWidth;
          cells_.resize(cells_.size() + kSparseWidth);
        }
        cells_[place * kSparseWidth + r] = static_cast<T>(rows.data[k]);
      }
  }
  template <class U>
  void clear(const CsrRows<U>& rows, std::span<const std::int64_t> chosen) {
    for (const std::int64_t i : chosen)
      for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) place_[rows.column[k]] = -1;
  }
  // out (kSparseWidth): products of row i with every row that was loaded.
  template <class U>
  void products(const CsrRows<U>& rows, std::int64_t i, T* out) const {
    const std::int64_t from = rows.start[i];
    sparse_products(rows.data + from, rows.column + from, rows.start[i + 1] - from, place_.data(), cells_.data(), out);
  }

 private:
  std::vector<std::int32_t> place_;  // (d), -1 for a column that does not occur
  std::vector<T> cells_;             // (columns that occur, kSparseWidth)
};

}  // namespace margrove
