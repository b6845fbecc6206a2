// Sums over kernel values in double, from the points as they are given: what models predict by, and what a solver that
// works in float is checked by.
#pragma once

#include <cstdint>
#include <span>

#include "blas.hpp"
#include "kernel/block.hpp"
#include "rows.hpp"

namespace margrove {

// Some rows of a set of points; all of them, in order, if `chosen` is empty and `is_all`.
struct Selection {
  const AnyRows& points;
  std::span<const std::int64_t> chosen = {};
  bool is_all = true;
};

// out (points, machines) += K(points, support) dual^T, dual being (machines, support). Both selections are of one type
// and have d columns. Streams over blocks of both; kernels of inner products by GEMM. A distance so small beside the
// norms that the products lose it is taken again, from the differences.
void add_kernel_sums(const Selection& points, const Selection& support, std::span<const double> dual,
                     std::int64_t machines, const KernelSpec& spec, const Blas<double>& blas, int threads, double* out);

}  // namespace margrove
