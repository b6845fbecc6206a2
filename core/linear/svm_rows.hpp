// The work of Newton's method on every row: values, dual variables, slopes. Each function is compiled for several
// instruction sets.
#pragma once

#include <cstdint>

#include "linear/svm_task.hpp"
#include "rows.hpp"

namespace margrove {

struct RangeSums {
  double loss = 0, brought = 0, total = 0;  // of C loss; of what beta brings; of beta
  std::int64_t n_free = 0;
};

// The dual variables of a block of rows at f, and the sums over them.
struct BlockView {
  const double *target, *cost, *f, *lambda;  // lambda is null for a squared loss
  double* beta;
  std::uint8_t* is_free;
  std::int64_t count;
  double factor, kappa;
};

#define MARGROVE_DECLARE(Rows)                                                                                        \
  /* q = X p + p_b */                                                                                                 \
  void values_of(const Rows& rows, std::int64_t from, std::int64_t to, const double* p, double p_b, double* q);       \
  /* v += sum of step_k x_{from + k} */                                                                               \
  void add_rows(const Rows& rows, std::int64_t from, const double* step, std::int64_t count, double* v);              \
  /* q_k = x_list[k]·p */                                                                                             \
  void values_of_listed(const Rows& rows, const std::uint32_t* list, std::int64_t count, const double* p, double* q); \
  /* v += sum of step_k x_list[k] */                                                                                  \
  void add_listed(const Rows& rows, const std::uint32_t* list, std::int64_t count, const double* step, double* v);    \
  /* out += sum of C_i x_i (x_i·p + p_b) over listed rows; the sum without x_i is returned */                         \
  double add_curvature(const Rows& rows, const std::uint32_t* list, std::int64_t count, const double* cost,           \
                       const double* p, double p_b, double* out);
MARGROVE_DECLARE(DenseRows<float>)
MARGROVE_DECLARE(DenseRows<double>)
MARGROVE_DECLARE(CsrRows<float>)
MARGROVE_DECLARE(CsrRows<double>)
#undef MARGROVE_DECLARE

#define MARGROVE_DECLARE(Signs, Squared)                                                                    \
  void judge_block(const LinearLoss<Signs, Squared>& loss, const BlockView& block, RangeSums& sums);        \
  /* Of the slope along a direction: sum of beta(f + t q) q, and how fast it falls with t. */               \
  void add_slope(const LinearLoss<Signs, Squared>& loss, const BlockView& block, const double* q, double t, \
                 double& sum, double& curvature);
MARGROVE_DECLARE(true, true)
MARGROVE_DECLARE(true, false)
MARGROVE_DECLARE(false, true)
MARGROVE_DECLARE(false, false)
#undef MARGROVE_DECLARE

// f += t q
void move_along(double* f, const double* q, double t, std::int64_t count);

// out_j += sum of C_i x_ij^2 over listed rows
template <class T>
void add_squares(const DenseRows<T>& rows, const std::uint32_t* list, std::int64_t count, const double* cost,
                 double* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const T* x = rows.row(list[k]);
    const double c = cost[list[k]];
    for (std::int64_t j = 0; j < rows.d; ++j) out[j] += c * x[j] * static_cast<double>(x[j]);
  }
}
template <class T>
void add_squares(const CsrRows<T>& rows, const std::uint32_t* list, std::int64_t count, const double* cost,
                 double* out) {
  for (std::int64_t k = 0; k < count; ++k) {
    const double c = cost[list[k]];
    for (std::int64_t at = rows.start[list[k]]; at < rows.start[list[k] + 1]; ++at)
      out[rows.column[at]] += c * rows.data[at] * static_cast<double>(rows.data[at]);
  }
}

}  // namespace margrove
