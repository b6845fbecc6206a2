// Where a learner on kernel values gets them: one row K(x_i, ·) of the training points at a time. Rows that
// were computed are kept, the least recently used given up first, so while all of them fit the Gram matrix is
// computed once.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "index.hpp"
#include "kernel/block.hpp"
#include "parallel.hpp"

namespace margrove {

template <class T>
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::int64_t size() const = 0;
  // K(x_i, x_j) for j = 0 .. n-1, valid until the next call; null when the row must be supplied from outside
  // first.
  virtual const T* row(std::int64_t i) = 0;
};

// At most `capacity` rows of n values; memory is taken as rows come.
template <class T>
class RowCache {
 public:
  RowCache(std::int64_t n, std::int64_t bytes)
      : n_(n),
        capacity_(std::clamp<std::int64_t>(bytes / std::max<std::int64_t>(1, n * sizeof(T)), 1, n)),
        place_(n),
        is_kept_(n, 0) {}

  const T* find(std::int64_t i) {
    if (!is_kept_[i]) return nullptr;
    const auto at = place_[i];
    recent_.splice(recent_.begin(), recent_, at);
    return at->values.get();
  }

  // Room for row i, which is not kept yet; the caller fills it.
  T* make(std::int64_t i) {
    if (length(recent_) < capacity_) {
      recent_.push_front({i, std::unique_ptr<T[]>(new T[n_])});
    } else {
      recent_.splice(recent_.begin(), recent_, std::prev(recent_.end()));
      is_kept_[recent_.front().row] = 0;
      recent_.front().row = i;
    }
    place_[i] = recent_.begin();
    is_kept_[i] = 1;
    return recent_.front().values.get();
  }

 private:
  struct Kept {
    std::int64_t row;
    std::unique_ptr<T[]> values;
  };
  std::int64_t n_, capacity_;
  std::list<Kept> recent_;
  std::vector<typename std::list<Kept>::iterator> place_;
  std::vector<char> is_kept_;
};

// Rows computed from the points.
template <class Rows>
class ComputedRows final : public RowSource<typename Rows::value_type> {
  using T = typename Rows::value_type;

 public:
  ComputedRows(const Rows& rows, const KernelSpec& spec, std::int64_t bytes, int threads)
      : rows_(rows), spec_(spec), threads_(threads), cache_(rows.n, bytes) {
    if constexpr (requires { rows.start; }) {
      alone_ = alone_sums(rows_, spec_.kind);
      buffer_.resize(rows_.d);
    }
  }

  std::int64_t size() const override { return rows_.n; }

  const T* row(std::int64_t i) override {
    if (const T* kept = cache_.find(i)) return kept;
    T* out = cache_.make(i);
    if constexpr (requires { rows_.start; }) {
      kernel_row(rows_, i, alone_[i], rows_, alone_, spec_, buffer_, out);
    } else {
      // Pieces of some 100 microseconds: below that a thread costs more than it brings.
      const std::int64_t piece = std::max<std::int64_t>(512, (1 << 20) / std::max<std::int64_t>(1, rows_.d));
      parallel_for((rows_.n + piece - 1) / piece, threads_, [&](std::int64_t p) {
        const std::int64_t from = p * piece, count = std::min(piece, rows_.n - from);
        kernel_row(rows_, i, Rows{rows_.row(from), count, rows_.d}, spec_, out + from);
      });
    }
    return out;
  }

 private:
  Rows rows_;
  KernelSpec spec_;
  int threads_;
  RowCache<T> cache_;
  std::vector<double> alone_, buffer_;
};

// Rows of a Gram matrix that is there already.
template <class T>
class GivenRows final : public RowSource<T> {
 public:
  explicit GivenRows(const DenseRows<T>& gram) : gram_(gram) {}
  std::int64_t size() const override { return gram_.n; }
  const T* row(std::int64_t i) override { return gram_.row(i); }

 private:
  DenseRows<T> gram_;
};

// Rows that somebody else computes (a Python callable): `row` is null until `supply` has brought it.
template <class T>
class SuppliedRows final : public RowSource<T> {
 public:
  SuppliedRows(std::int64_t n, std::int64_t bytes) : n_(n), cache_(n, bytes) {}
  std::int64_t size() const override { return n_; }
  const T* row(std::int64_t i) override { return cache_.find(i); }
  void supply(std::int64_t i, const T* values) {
    if (!cache_.find(i)) std::copy(values, values + n_, cache_.make(i));
  }

 private:
  std::int64_t n_;
  RowCache<T> cache_;
};

}  // namespace margrove
