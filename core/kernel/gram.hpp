// The kernel matrix of a set of points, some rows at a time.
//
// Values are T (float or double). Dense points are kept as a copy in T: the data are read once, wherever they lie, and
// rows are made by one GEMM and one vectorised finish per tile of columns. Sparse rows stay sparse.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "blas.hpp"
#include "kernel/block.hpp"
#include "rows.hpp"

namespace margrove {

// Any kernel matrix a solver may ask for rows of.
template <class T>
class Gram {
 public:
  virtual ~Gram() = default;
  virtual std::int64_t size() const = 0;
  // K(x_i, x_i), n of them.
  virtual const std::vector<double>& diagonal() const = 0;
  // How large the numbers are of which the values of row i are made: their rounding grows with it.
  virtual double magnitude(std::int64_t i) const { return std::fabs(diagonal()[i]); }
  // Whether no value is below zero.
  virtual bool is_nonnegative() const { return false; }
  // What one value costs, in multiplications, roughly.
  virtual double cost() const = 0;
  // out[r][j] = K(x_i, x_j) for i = wanted[r] and every j, and at once, while the values are near,
  // sums[j] += sum over r of change[r] out[r][j], unless change is null. The rows of out may lie anywhere.
  virtual void rows(std::span<const std::int64_t> wanted, const double* change, T* const* out, double* sums,
                    int threads) const = 0;
  // Row i where it lies ready in memory; null where it must be made.
  virtual const T* ready(std::int64_t) const { return nullptr; }
  // out[r * stride + c] = K(x_i, x_j) for i = a[r] and j = b[c].
  virtual void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, std::int64_t stride,
                     int threads) const = 0;
  // sums[c] += sum over r of change[r] K(x_i, x_j), i = a[r] and j = b[c]; no value is kept.
  virtual void add_sums(std::span<const std::int64_t> a, std::span<const double> change,
                        std::span<const std::int64_t> b, double* sums, int threads) const = 0;
  // The same in double, from the points as given.
  virtual void exact(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
                     double* sums, int threads) const = 0;
  // The kernel matrix of some of the points.
  virtual std::shared_ptr<const Gram<T>> part(std::span<const std::int64_t> chosen) const = 0;
};

// 0 … n - 1
inline std::vector<std::int64_t> all_rows(std::int64_t n) {
  std::vector<std::int64_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Rows `from` … `to` - 1 of the whole matrix, into their places in `values` (n, n).
template <class T>
void fill_rows(const Gram<T>& gram, std::int64_t from, std::int64_t to, T* values, int threads) {
  std::vector<std::int64_t> wanted;
  std::vector<T*> rooms;
  for (std::int64_t i = from; i < to; ++i) {
    wanted.push_back(i);
    rooms.push_back(values + i * gram.size());
  }
  gram.rows(wanted, nullptr, rooms.data(), nullptr, threads);
}

// The points `chosen` of `points`, dense or sparse. The points are looked at for as long as the result lives.
template <class T>
std::shared_ptr<const Gram<T>> gram_of_points(const AnyRows& points, std::vector<std::int64_t> chosen,
                                              const KernelSpec& spec, const Blas<T>& blas, const Blas<double>& exact,
                                              int threads);

// A kernel matrix that is given, and the rows and columns `chosen` of it.
template <class T>
std::shared_ptr<const Gram<T>> gram_given(const DenseRows<T>& gram, std::vector<std::int64_t> chosen);

// n rows of n values, each made when it is first asked for, by whichever thread asks. They lie in `room`, for n²
// values, in the order in which they were made: memory that none needs is not touched.
template <class T>
class RowsOnDemand {
 public:
  using Make = std::function<void(std::int64_t i, T* out)>;
  RowsOnDemand(std::int64_t n, T* room, Make make);
  std::int64_t size() const { return n_; }
  const T* row(std::int64_t i) {
    const T* known = row_[i].load(std::memory_order_acquire);
    return known ? known : made(i);
  }

 private:
  const T* made(std::int64_t i);

  std::int64_t n_;
  T* room_;
  Make make_;
  std::atomic<std::int64_t> next_{0};
  std::unique_ptr<std::atomic<const T*>[]> row_;
  std::unique_ptr<std::atomic<bool>[]> is_taken_;  // somebody makes it, or has made it
};

// A kernel matrix whose rows are made on demand.
template <class T>
std::shared_ptr<const Gram<T>> gram_on_demand(std::shared_ptr<RowsOnDemand<T>> rows, std::vector<double> diagonal);

}  // namespace margrove
