#include "linear/svm_rows.hpp"

#include <cmath>

namespace margrove {

#define MARGROVE_ROWS_FUNCTION(Rows)                                                                                   \
  MARGROVE_CLONES void values_of(const Rows& rows, std::int64_t from, std::int64_t to, const double* p, double p_b,    \
                                 double* q) {                                                                          \
    for (std::int64_t i = from; i < to; ++i) q[i] = dot_row(rows, i, p) + p_b;                                         \
  }                                                                                                                    \
  MARGROVE_CLONES void add_rows(const Rows& rows, std::int64_t from, const double* step, std::int64_t count,           \
                                double* v) {                                                                           \
    for (std::int64_t k = 0; k < count; ++k)                                                                           \
      if (step[k] != 0) add_row(rows, from + k, step[k], v);                                                           \
  }                                                                                                                    \
  MARGROVE_CLONES void values_of_listed(const Rows& rows, const std::uint32_t* list, std::int64_t count,               \
                                        const double* p, double* q) {                                                  \
    for (std::int64_t k = 0; k < count; ++k) q[k] = dot_row(rows, list[k], p);                                         \
  }                                                                                                                    \
  MARGROVE_CLONES void add_listed(const Rows& rows, const std::uint32_t* list, std::int64_t count, const double* step, \
                                  double* v) {                                                                         \
    for (std::int64_t k = 0; k < count; ++k) add_row(rows, list[k], step[k], v);                                       \
  }                                                                                                                    \
  MARGROVE_CLONES double add_curvature(const Rows& rows, const std::uint32_t* list, std::int64_t count,                \
                                       const double* cost, const double* p, double p_b, double* out) {                 \
    double sum = 0;                                                                                                    \
    for (std::int64_t k = 0; k < count; ++k) {                                                                         \
      const std::int64_t i = list[k];                                                                                  \
      const double step = cost[i] * (dot_row(rows, i, p) + p_b);                                                       \
      add_row(rows, i, step, out);                                                                                     \
      sum += step;                                                                                                     \
    }                                                                                                                  \
    return sum;                                                                                                        \
  }
MARGROVE_ROWS_FUNCTION(DenseRows<float>)
MARGROVE_ROWS_FUNCTION(DenseRows<double>)
MARGROVE_ROWS_FUNCTION(CsrRows<float>)
MARGROVE_ROWS_FUNCTION(CsrRows<double>)
#undef MARGROVE_ROWS_FUNCTION

namespace {

template <class Loss>
MARGROVE_INLINE double lambda_of(const BlockView& block, std::int64_t k) {
  return Loss::kIsSquared ? 0.0 : block.lambda[k];
}

template <class Loss>
MARGROVE_INLINE void judge_block_body(const Loss& loss, const BlockView& block, RangeSums& sums) {
  double value = 0, brought = 0, total = 0;
  MARGROVE_SUMS(value, brought, total)
  for (std::int64_t k = 0; k < block.count; ++k) {
    const double z = block.target[k], f = block.f[k], C = block.factor * block.cost[k];
    const double beta = loss.dual_variable(z, f, C, lambda_of<Loss>(block, k), block.kappa * C).beta;
    const double lost = loss.value(z, f, C);
    block.beta[k] = beta;
    value += lost;
    // The dual variable that a squared loss implies adds as much to the dual as the row loses: beta^2 / (4C) = C loss.
    brought += Loss::kIsSquared ? loss.linear_part(z, beta) - lost : loss.brought(z, beta, C);
    total += beta;
  }
  // Bytes may be anything's, so the compiler must be told that they are nobody else's.
  const double *target = block.target, *cost = block.cost, *betas = block.beta, factor = block.factor;
  std::uint8_t* MARGROVE_RESTRICT is_free = block.is_free;
  const std::int64_t count = block.count;
  std::int64_t n_free = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const double z = target[k], C = factor * cost[k], beta = betas[k];
    is_free[k] = (beta > loss.low(z, C)) & (beta < loss.high(z, C)) & (Loss::kIsOfSigns | (beta != 0.0));
  }
  for (std::int64_t k = 0; k < count; ++k) n_free += is_free[k];
  sums.loss += value;
  sums.brought += brought;
  sums.total += total;
  sums.n_free += n_free;
}

template <class Loss>
MARGROVE_INLINE void slope_body(const Loss& loss, const BlockView& block, const double* q, double t, double& beta_q,
                                double& curvature) {
  double sum = 0, bend = 0;
  MARGROVE_SUMS(sum, bend)
  for (std::int64_t k = 0; k < block.count; ++k) {
    const double C = block.factor * block.cost[k], sigma = block.kappa * C;
    const auto variable =
        loss.dual_variable(block.target[k], block.f[k] + t * q[k], C, lambda_of<Loss>(block, k), sigma);
    sum += variable.beta * q[k];
    bend += variable.is_free ? sigma * q[k] * q[k] : 0.0;
  }
  beta_q += sum;
  curvature += bend;
}

}  // namespace

#define MARGROVE_LOSS_FUNCTION(Signs, Squared)                                                                     \
  MARGROVE_CLONES void judge_block(const LinearLoss<Signs, Squared>& loss, const BlockView& block, RangeSums& s) { \
    judge_block_body(loss, block, s);                                                                              \
  }                                                                                                                \
  MARGROVE_CLONES void add_slope(const LinearLoss<Signs, Squared>& loss, const BlockView& block, const double* q,  \
                                 double t, double& sum, double& curvature) {                                       \
    slope_body(loss, block, q, t, sum, curvature);                                                                 \
  }
MARGROVE_LOSS_FUNCTION(true, true)
MARGROVE_LOSS_FUNCTION(true, false)
MARGROVE_LOSS_FUNCTION(false, true)
MARGROVE_LOSS_FUNCTION(false, false)
#undef MARGROVE_LOSS_FUNCTION

MARGROVE_CLONES void move_along(double* f, const double* q, double t, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) f[k] += t * q[k];
}

}  // namespace margrove
