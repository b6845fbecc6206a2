#include "linear/design.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "index.hpp"

namespace margrove {
namespace {

// Multiplications between two looks at the clock: about half a millisecond.
constexpr std::int64_t kWorkOfAPiece = 1 << 20;
constexpr std::int64_t kGramBlock = 256;  // rows multiplied by one call: with 128 columns 256 KiB, in L2

// Hot loops, compiled for each instruction set.

template <class T>
MARGROVE_INLINE void add_rows_body(const DenseRows<T>& rows, std::int64_t from, std::int64_t to, const double* beta,
                                   double* v) {
  for (std::int64_t i = from; i < to; ++i)
    if (beta[i] != 0) add_scaled(v, beta[i], rows.row(i), rows.d);
}

template <class T>
MARGROVE_INLINE void dot_rows_body(const DenseRows<T>& rows, std::int64_t from, std::int64_t to, const double* step,
                                   double* values) {
  for (std::int64_t i = from; i < to; ++i) values[i] += dot(rows.row(i), step, rows.d);
}

template <class T>
MARGROVE_INLINE double sparse_dot_body(const T* value, const std::int32_t* row, std::int64_t size, const double* beta) {
  double s0 = 0, s1 = 0;  // two sums: one would wait for its own additions
  std::int64_t k = 0;
  for (; k + 2 <= size; k += 2) {
    s0 += value[k] * beta[row[k]];
    s1 += value[k + 1] * beta[row[k + 1]];
  }
  if (k < size) s0 += value[k] * beta[row[k]];
  return s0 + s1;
}

#define MARGROVE_DESIGN_LOOPS(T)                                                                                  \
  MARGROVE_CLONES void add_rows(const DenseRows<T>& rows, std::int64_t from, std::int64_t to, const double* beta, \
                                double* v) {                                                                      \
    add_rows_body(rows, from, to, beta, v);                                                                       \
  }                                                                                                               \
  MARGROVE_CLONES void dot_rows(const DenseRows<T>& rows, std::int64_t from, std::int64_t to, const double* step, \
                                double* values) {                                                                 \
    dot_rows_body(rows, from, to, step, values);                                                                  \
  }
MARGROVE_DESIGN_LOOPS(float)
MARGROVE_DESIGN_LOOPS(double)
#undef MARGROVE_DESIGN_LOOPS

// ---- dense

template <class T>
class DenseDesign final : public Design {
 public:
  DenseDesign(const DenseRows<T>& rows, double constant, const Blas<double>& blas)
      : Design(rows.n, rows.d, constant, blas),
        rows_(rows),
        block_(std::max<std::int64_t>(1, kWorkOfAPiece / (rows.d + 1))) {}

  std::int64_t transposed_pieces() const override { return (n() + block_ - 1) / block_; }
  void add_transposed(std::int64_t piece, const double* beta, double* v) const override {
    const std::int64_t from = piece * block_, to = std::min(n(), from + block_);
    add_rows(rows_, from, to, beta, v);
    for (std::int64_t i = from; i < to && constant() != 0; ++i) v[rows_.d] += constant() * beta[i];
  }

  std::int64_t product_pieces(std::span<const std::int32_t>) const override { return transposed_pieces(); }
  void add_product(std::int64_t piece, std::span<const std::int32_t> chosen, const double* step,
                   double* values) const override {
    const std::int64_t from = piece * block_, to = std::min(n(), from + block_);
    // A column here and there costs a cache line each: a whole row is read unless they are few.
    if (length(chosen) * 8 > rows_.d) {
      dot_rows(rows_, from, to, step, values);
      for (std::int64_t i = from; i < to && constant() != 0; ++i) values[i] += constant() * step[rows_.d];
      return;
    }
    for (std::int64_t i = from; i < to; ++i) {
      double sum = 0;
      for (const std::int32_t j : chosen) sum += at(i, j) * step[j];
      values[i] += sum;
    }
  }

  void squares(std::int64_t piece, const double* weight, double* squares) const override {
    const std::int64_t from = piece * block_, to = std::min(n(), from + block_);
    for (std::int64_t i = from; i < to; ++i) {
      if (weight[i] == 0) continue;
      for (std::int64_t j = 0; j < rows_.d; ++j)
        squares[j] += weight[i] * rows_.row(i)[j] * static_cast<double>(rows_.row(i)[j]);
      if (constant() != 0) squares[rows_.d] += weight[i] * constant() * constant();
    }
  }

  void choose(std::span<const std::int32_t>, ChosenRows&) const override {}

  // Rows times the root of their weight, column by column, so that one matrix product of the block with itself does it;
  // rows to add and rows to take away by themselves.
  void add_gram(std::span<const std::int32_t> chosen, const ChosenRows&, std::span<const std::int32_t> listed,
                const double* weight, double* gram) const override {
    const int width = chosen.size();
    std::vector<double> block(chosen.size() * kGramBlock);
    for (const double sign : {1.0, -1.0}) {
      int filled = 0;
      const auto flush = [&] {
        if (filled == 0) return;
        const int leading = kGramBlock;
        const double one = 1;
        blas().gemm("T", "N", &width, &width, &filled, &sign, block.data(), &leading, block.data(), &leading, &one,
                    gram, &width);
        filled = 0;
      };
      for (const std::int32_t i : listed) {
        if (!(sign * weight[i] > 0)) continue;
        const double root = std::sqrt(sign * weight[i]);
        for (std::size_t k = 0; k < chosen.size(); ++k) block[k * kGramBlock + filled] = root * at(i, chosen[k]);
        if (++filled == kGramBlock) flush();
      }
      flush();
    }
  }
  std::int64_t gram_rows(std::int64_t chosen) const override {
    return std::max<std::int64_t>(kGramBlock, 16 * kWorkOfAPiece / (chosen * chosen + 1) / kGramBlock * kGramBlock);
  }

  double column_square(std::int32_t column, const double* weight) const override {
    double sum = 0;
    for (std::int64_t i = 0; i < n(); ++i) sum += weight[i] * at(i, column) * at(i, column);
    return sum;
  }
  double column_dot(std::int32_t column, const double* weight, const double* values) const override {
    double sum = 0;
    for (std::int64_t i = 0; i < n(); ++i)
      if (weight[i] != 0) sum += weight[i] * at(i, column) * values[i];
    return sum;
  }
  void column_add(std::int32_t column, double step, double* values) const override {
    for (std::int64_t i = 0; i < n(); ++i) values[i] += step * at(i, column);
  }

 private:
  double at(std::int64_t i, std::int32_t j) const {
    return j < rows_.d ? static_cast<double>(rows_.row(i)[j]) : constant();
  }
  DenseRows<T> rows_;
  std::int64_t block_;
};

// ---- sparse, by columns

template <class T>
class ColumnDesign final : public Design {
 public:
  ColumnDesign(const CsrRows<T>& rows, double constant, const Blas<double>& blas)
      : Design(rows.n, rows.d, constant, blas), start_(rows.d + 1), row_(rows.start[rows.n]), value_(row_.size()) {
    for (std::int64_t k = 0; k < rows.start[rows.n]; ++k) ++start_[static_cast<std::size_t>(rows.column[k]) + 1];
    for (std::size_t j = 1; j < start_.size(); ++j) start_[j] += start_[j - 1];
    std::vector<std::int64_t> end(start_.begin(), start_.end() - 1);
    for (std::int64_t i = 0; i < rows.n; ++i)
      for (std::int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) {
        const std::size_t place = end[rows.column[k]]++;
        row_[place] = i;
        value_[place] = rows.data[k];
      }
    // Pieces of about the same number of entries.
    borders_.push_back(0);
    for (std::int64_t j = 1, begun = 0; j <= rows.d; ++j)
      if (start_[j] - begun >= kWorkOfAPiece / 4 || j == rows.d) {
        borders_.push_back(j);
        begun = start_[j];
      }
  }

  std::int64_t transposed_pieces() const override { return length(borders_) - 1; }
  void add_transposed(std::int64_t piece, const double* beta, double* v) const override {
    const std::size_t p = piece;
    for (std::int64_t j = borders_[p]; j < borders_[p + 1]; ++j) {
      const auto [first, size] = column(j);
      v[j] += sparse_dot_body(value_.data() + first, row_.data() + first, size, beta);
    }
    if (piece == 0 && constant() != 0)
      for (std::int64_t i = 0; i < n(); ++i) v[points_columns()] += constant() * beta[i];
  }

  std::int64_t product_pieces(std::span<const std::int32_t> chosen) const override {
    return static_cast<std::int64_t>(chosen.size() + kPushed - 1) / kPushed;
  }
  void add_product(std::int64_t piece, std::span<const std::int32_t> chosen, const double* step,
                   double* values) const override {
    const auto first = piece * kPushed;
    for (const std::int32_t j : chosen.subspan(first, std::min<std::size_t>(kPushed, chosen.size() - first)))
      if (step[j] != 0) column_add(j, step[j], values);
  }

  void squares(std::int64_t piece, const double* weight, double* squares) const override {
    const std::size_t p = piece;
    for (std::int64_t j = borders_[p]; j < borders_[p + 1]; ++j) {
      const auto [first, size] = column(j);
      for (std::int64_t k = first; k < first + size; ++k) {
        const double x = value_[k];
        squares[j] += weight[row_[k]] * x * x;
      }
    }
    if (piece == 0 && constant() != 0)
      for (std::int64_t i = 0; i < n(); ++i) squares[points_columns()] += weight[i] * constant() * constant();
  }

  void choose(std::span<const std::int32_t> chosen, ChosenRows& rows) const override {
    rows.start.assign(n() + 1, 0);
    const bool has_constant = !chosen.empty() && chosen.back() == points_columns();
    const auto each = [&](auto&& visit) {
      for (std::size_t place = 0; place < chosen.size() - has_constant; ++place) {
        const auto [first, size] = column(chosen[place]);
        for (std::int64_t k = first; k < first + size; ++k) visit(row_[k], place, value_[k]);
      }
      for (std::int64_t i = 0; i < n() && has_constant; ++i) visit(i, chosen.size() - 1, constant());
    };
    each([&](std::int32_t i, std::size_t, double) { ++rows.start[static_cast<std::size_t>(i) + 1]; });
    for (std::size_t i = 1; i < rows.start.size(); ++i) rows.start[i] += rows.start[i - 1];
    rows.place.resize(rows.start.back());
    rows.value.resize(rows.place.size());
    each([&](std::int32_t i, std::size_t place, double value) {
      const std::size_t at = rows.start[i]++;
      rows.place[at] = place;
      rows.value[at] = value;
    });
    std::move_backward(rows.start.begin(), rows.start.end() - 1, rows.start.end());
    rows.start[0] = 0;
  }

  void add_gram(std::span<const std::int32_t> chosen, const ChosenRows& rows, std::span<const std::int32_t> listed,
                const double* weight, double* gram) const override {
    const std::size_t width = chosen.size();
    for (const std::int32_t i : listed) {
      const std::int64_t from = rows.start[i], to = rows.start[static_cast<std::size_t>(i) + 1];
      for (std::int64_t a = from; a < to; ++a) {
        const double factor = weight[i] * rows.value[a];
        double* line = gram + static_cast<std::size_t>(rows.place[a]) * width;
        for (std::int64_t b = from; b <= a; ++b) line[rows.place[b]] += factor * rows.value[b];
      }
    }
  }
  std::int64_t gram_rows(std::int64_t) const override { return 1024; }

  double column_square(std::int32_t j, const double* weight) const override {
    double sum = 0;
    if (j == points_columns()) return constant() * constant() * std::accumulate(weight, weight + n(), 0.0);
    const auto [first, size] = column(j);
    for (std::int64_t k = first; k < first + size; ++k) {
      const double x = value_[k];
      sum += weight[row_[k]] * x * x;
    }
    return sum;
  }
  double column_dot(std::int32_t j, const double* weight, const double* values) const override {
    double sum = 0;
    if (j == points_columns()) {
      for (std::int64_t i = 0; i < n(); ++i) sum += weight[i] * values[i];
      return constant() * sum;
    }
    const auto [first, size] = column(j);
    for (std::int64_t k = first; k < first + size; ++k) {
      const std::int32_t i = row_[k];
      sum += value_[k] * weight[i] * values[i];
    }
    return sum;
  }
  void column_add(std::int32_t j, double step, double* values) const override {
    if (j == points_columns()) {
      for (std::int64_t i = 0; i < n(); ++i) values[i] += step * constant();
      return;
    }
    const auto [first, size] = column(j);
    for (std::int64_t k = first; k < first + size; ++k) values[row_[k]] += step * value_[k];
  }

 private:
  static constexpr std::size_t kPushed = 64;  // columns added between two looks at the clock. Chosen, not measured

  struct Extent {
    std::int64_t first, size;
  };
  Extent column(std::int64_t j) const {
    const std::size_t at = j;
    return {start_[at], start_[at + 1] - start_[at]};
  }

  std::vector<std::int64_t> start_;  // (d + 1)
  std::vector<std::int32_t> row_;    // (nnz)
  std::vector<T> value_;             // (nnz)
  std::vector<std::int64_t> borders_;
};

}  // namespace

std::unique_ptr<Design> make_design(const AnyRows& rows, double constant, const Blas<double>& blas) {
  return std::visit(
      [&](const auto& r) -> std::unique_ptr<Design> {
        using Rows = std::decay_t<decltype(r)>;
        using T = typename Rows::value_type;
        if constexpr (std::is_same_v<Rows, DenseRows<T>>)
          return std::make_unique<DenseDesign<T>>(r, constant, blas);
        else
          return std::make_unique<ColumnDesign<T>>(r, constant, blas);
      },
      rows);
}

}  // namespace margrove
