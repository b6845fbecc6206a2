// The kernel matrix of a set of points, some rows at a time: one GEMM and one vectorised finish per tile of columns.
//
// Values are T (float or double). Points are kept as a copy in T: the data are read once, wherever they lie, and for
// the Gaussian kernel moved by their mean, because |x|^2 + |z|^2 - 2 x·z loses its digits far from the origin.
#pragma once

#include <cstdint>
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
  // out[r][j] = K(x_i, x_j) for i = rows[r] and every j; the rows of out may lie anywhere.
  virtual void rows(std::span<const std::int64_t> rows, T* const* out, int threads) const = 0;
  // out (a.size(), b.size()): K(x_i, x_j) for i in a and j in b.
  virtual void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, int threads) const = 0;
};

template <class T>
class DenseGram final : public Gram<T> {
 public:
  // Takes the points `chosen` of `points` (all of them, in order, if empty).
  DenseGram(const AnyRows& points, std::span<const std::int64_t> chosen, const KernelSpec& spec, const Blas<T>& blas);
  std::int64_t size() const override { return n_; }
  const std::vector<double>& diagonal() const override { return diagonal_; }
  void rows(std::span<const std::int64_t> rows, T* const* out, int threads) const override;
  void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, int threads) const override;

 private:
  // `count` points side by side, and what the kernel needs to know of each.
  struct Packed {
    const T* points;  // (count, d)
    const T* norms;   // (count), null but for the Gaussian kernel
    std::int64_t count;
    Packed part(std::int64_t from, std::int64_t size, std::int64_t d) const {
      return {points + from * d, norms ? norms + from : nullptr, size};
    }
  };
  // out[r][offset + c] = K(a_r, b_c), in tiles that stay in the cache.
  void fill(const Packed& a, const Packed& b, T* const* out, int threads) const;
  void tile(const Packed& a, const Packed& b, T* scratch, T* const* out, std::int64_t offset) const;
  Packed everything() const;
  Packed gather(std::span<const std::int64_t> rows, std::vector<T>& points, std::vector<T>& norms) const;

  std::int64_t n_, d_;
  KernelSpec spec_;
  Blas<T> blas_;
  std::vector<T> data_;  // (n, d)
  std::vector<T> norm_;  // (n), |x|^2 of the moved points; Gaussian kernel only
  std::vector<double> diagonal_;
};

// A kernel matrix that is given.
template <class T>
class GivenGram final : public Gram<T> {
 public:
  explicit GivenGram(const DenseRows<T>& gram, std::span<const std::int64_t> chosen);
  std::int64_t size() const override { return static_cast<std::int64_t>(chosen_.size()); }
  const std::vector<double>& diagonal() const override { return diagonal_; }
  void rows(std::span<const std::int64_t> rows, T* const* out, int threads) const override;
  void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, int threads) const override;

 private:
  DenseRows<T> gram_;
  std::vector<std::int64_t> chosen_;
  std::vector<double> diagonal_;
};

}  // namespace margrove
