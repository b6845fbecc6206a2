// Kernels, a row or a block of rows at a time.
//
// Every kernel here is  K(x, z) = finish(sum over columns of pair(x_k, z_k)):
//
//   linear        x·z                                pair = x z
//   rbf           exp(-gamma |x-z|^2)                pair = (x - z)^2
//   poly          (gamma x·z + coef0)^degree         pair = x z
//   sigmoid       tanh(gamma x·z + coef0)            pair = x z
//   laplacian     exp(-gamma |x-z|_1)                pair = |x - z|
//   chi2          exp(-gamma sum (x-z)^2 / (x+z))    pair = (x - z)^2 / (x + z), 0 where both are 0
//   intersection  sum min(x, z)                      pair = min(x, z), for x, z >= 0
//
// For sparse rows pair is split as  pair(x, z) = alone(x) + alone(z) + together(x, z)  where together is 0
// unless both are non-zero, so that only common non-zeros are visited.
#pragma once

#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace margrove {

enum class KernelKind : int { linear, rbf, poly, sigmoid, laplacian, chi2, intersection };

struct KernelSpec {
  KernelKind kind = KernelKind::linear;
  double gamma = 1, coef0 = 0, degree = 3;
};

// What `alone` adds up to over each row, for sparse rows.
template <class T>
std::vector<double> alone_sums(const CsrRows<T>& rows, KernelKind kind);

// Sum of pair(x_k, z_k) over the columns of two sparse rows, from the pairs themselves: for distances that the split
// loses. Columns are in ascending order.
template <class T>
double pair_sum(const CsrRows<T>& points, std::int64_t i, const CsrRows<T>& others, std::int64_t j, KernelKind kind);

// K(x_i, z_j) for one row i of `points` and every row j of `others`, in double sums, stored as V.
// Sparse rows need `buffer` (d zeros, given back as zeros) and the alone_sums of both sides.
template <class T, class V>
void kernel_row(const DenseRows<T>& points, std::int64_t i, const DenseRows<T>& others, const KernelSpec& spec, V* out);
template <class T, class V>
void kernel_row(const CsrRows<T>& points, std::int64_t i, double alone_i, const CsrRows<T>& others,
                const std::vector<double>& alone, const KernelSpec& spec, std::vector<double>& buffer, V* out);

}  // namespace margrove
