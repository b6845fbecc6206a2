// The two loops in which SMO over a working set spends its time: find the partner of i, and make the step and find the
// next i. Both go once over the set, in vectors.
//
// A variable outside I_up has up = -inf, one outside I_low has low = +inf; otherwise both are v. Arrays are padded to
// pairs of vectors with variables that are in neither.
#pragma once

#include <cstdint>

#include "dispatch.hpp"

namespace margrove {

constexpr std::int64_t kPadding = 32;  // variables: two vectors of 16 floats, four of 8 doubles

// Where a row that is not there yet comes from.
template <class T>
class RowMaker {
 public:
  virtual const T* row(std::int64_t i) = 0;

 protected:
  ~RowMaker() = default;
};

// T is the type of kernel values and of v.
template <class T>
struct WorkingBlock {
  std::int64_t size;      // padded
  const T* const* rows;   // (size) of the kernel, each (size); null: `maker` has it
  RowMaker<T>* maker;     // may be null where all rows are there
  double unit;            // what kernel values are measured in where pairs are scored: 1 / the largest K(x, x)
  const float* diagonal;  // (size), in that unit
  double fall_unit;       // and differences of v: 1 / the largest there is
  T *up, *low;            // (size)
};

// A working set and what its members are, place by place. A place without a member has upper = 0.
template <class T>
struct PairProblem {
  std::int64_t groups;  // 1, or 2: the signs of y, and pairs are of one sign
  WorkingBlock<T> blocks[2];
  const std::int8_t* y;
  const double *upper, *own;  // own: K(x, x)
  double* alpha;

  // Place k enters the block of its group with its v.
  void set(std::int64_t k, double v) const;
};

// SMO: steps of the pair by which the objective falls most, until no pair violates by more than `tolerance`. Invariant:
// y'α and the bounds hold after each step; the objective never rises. Returns the steps made.
template <class T>
std::int64_t solve_pairs(PairProblem<T>& problem, double tolerance, std::int64_t most_steps);

// out_k = row[index_k]
template <class T>
void gather_row(const T* row, const std::int32_t* index, std::int64_t count, T* out);

// sums_t += sum over r of change_r row_r[t] for from <= t < to: what moves v by rows that are kept.
template <class T>
void add_rows(const T* const* rows, const double* change, std::int64_t count, std::int64_t from, std::int64_t to,
              double* sums);

}  // namespace margrove
