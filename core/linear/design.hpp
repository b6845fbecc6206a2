// X as a solver over columns needs it: the points, and behind them a constant column (the intercept's) if there is one.
// Dense points are read as they are; sparse ones are copied once into columns (as much memory again), for all machines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blas.hpp"
#include "rows.hpp"

namespace margrove {

// Some columns of a sparse X, row by row: what the products of these columns are made from.
struct ChosenRows {
  std::vector<std::int64_t> start;  // (n + 1)
  std::vector<std::int32_t> place;  // (nnz), in the list of columns, rising within a row
  std::vector<double> value;        // (nnz)
};

// Every method does one piece of its work, for the time between two looks at the clock.
class Design {
 public:
  Design(std::int64_t n, std::int64_t d, double constant, const Blas<double>& blas)
      : n_(n), d_(d), constant_(constant), blas_(blas) {}
  virtual ~Design() = default;

  std::int64_t n() const { return n_; }
  std::int64_t columns() const { return d_ + (constant_ != 0); }  // the constant one is the last
  std::int64_t points_columns() const { return d_; }
  double constant() const { return constant_; }
  const Blas<double>& blas() const { return blas_; }

  // v += X' beta, v (columns), by pieces 0 .. transposed_pieces - 1. v begins as 0.
  virtual std::int64_t transposed_pieces() const = 0;
  virtual void add_transposed(std::int64_t piece, const double* beta, double* v) const = 0;

  // values += X step, where step (columns) is 0 outside of `chosen`; by pieces 0 .. product_pieces(chosen) - 1.
  virtual std::int64_t product_pieces(std::span<const std::int32_t> chosen) const = 0;
  virtual void add_product(std::int64_t piece, std::span<const std::int32_t> chosen, const double* step,
                           double* values) const = 0;

  // squares_j += sum_i weight_i x_ij^2, by the pieces of `add_transposed`.
  virtual void squares(std::int64_t piece, const double* weight, double* squares) const = 0;

  // What `add_gram` wants to know of the columns chosen.
  virtual void choose(std::span<const std::int32_t> chosen, ChosenRows& rows) const = 0;
  // The lower triangle of gram (chosen, chosen) += sum over the rows listed of weight_i x_i x_i', at these columns.
  virtual void add_gram(std::span<const std::int32_t> chosen, const ChosenRows& rows,
                        std::span<const std::int32_t> listed, const double* weight, double* gram) const = 0;
  // How many of the listed rows make a piece of work for add_gram.
  virtual std::int64_t gram_rows(std::int64_t chosen) const = 0;

  // The column's sum of weight_i x_ij^2 and of weight_i x_ij values_i, and values += step x_j.
  virtual double column_square(std::int32_t column, const double* weight) const = 0;
  virtual double column_dot(std::int32_t column, const double* weight, const double* values) const = 0;
  virtual void column_add(std::int32_t column, double step, double* values) const = 0;

 private:
  std::int64_t n_, d_;
  double constant_;
  Blas<double> blas_;
};

std::unique_ptr<Design> make_design(const AnyRows& rows, double constant, const Blas<double>& blas);

}  // namespace margrove
