// What the bindings share: NumPy arrays in and out, the points, the borrowed BLAS.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "blas.hpp"
#include "kernel/block.hpp"
#include "rows.hpp"

namespace margrove {

namespace nb = nanobind;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// What Python is given: it owns the values.
template <class T>
using Array = nb::ndarray<nb::numpy, T>;

// Of a member that is an `Array`: Python sees the array itself, not a copy.
constexpr auto kShared = nb::rv_policy::reference;

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// Comparisons with NaN are false, so a solver might not end: NaN is refused here.
inline void require_finite(const Vector<double>& values, const char* message) {
  require(std::all_of(values.data(), values.data() + values.size(), [](double v) { return std::isfinite(v); }),
          message);
}

template <class T>
std::span<const T> span_of(const Vector<T>& v) {
  return {v.data(), v.size()};
}

// A NumPy array that owns a copy of `values`.
template <class T>
Array<T> to_numpy(const T* values, std::vector<std::size_t> shape) {
  std::size_t size = 1;
  for (const std::size_t extent : shape) size *= extent;
  auto copy = std::make_unique<T[]>(size);
  std::copy(values, values + size, copy.get());
  nb::capsule owner(copy.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Array<T>(copy.release(), shape.size(), shape.data(), owner);
}
template <class T>
Array<T> to_numpy(const std::vector<T>& values) {
  return to_numpy(values.data(), {values.size()});
}

// A NumPy array that takes `values` over.
template <class T>
Array<T> to_numpy(std::vector<T>&& values, std::vector<std::size_t> shape) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* data = kept->data();
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  kept.release();
  return Array<T>(data, shape.size(), shape.data(), owner);
}

// The BLAS that `set_blas` has taken from SciPy's capsules; before, products are our own.
struct BorrowedBlas {
  Blas<float> single;
  Blas<double> twice;
};
inline BorrowedBlas g_blas;

template <class T>
const Blas<T>& borrowed_blas() {
  if constexpr (std::is_same_v<T, float>) {
    return g_blas.single;
  } else {
    return g_blas.twice;
  }
}

// The points as Python hands them over, kept alive for as long as a solver looks at them.
struct Points {
  AnyRows rows;
  nb::object owner;
  std::int64_t n, d;
};

void bind_svm(nb::module_& m);
void bind_boost(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_linear_svm(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_linear_l1(nb::module_& m);

}  // namespace margrove
