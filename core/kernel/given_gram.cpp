// A kernel matrix whose values are given, or made a row at a time when they are first asked for.
#include <algorithm>

#include "index.hpp"
#include "kernel/point_gram.hpp"
#include "parallel.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kPiece = 1024;  // columns: 8 KiB of sums, in L1

template <class T>
class GivenGram final : public Gram<T> {
 public:
  GivenGram(const DenseRows<T>& gram, std::vector<std::int64_t> chosen) : gram_(gram), chosen_(std::move(chosen)) {
    is_whole_ = size() == gram.n;
    for (std::int64_t i = 0; i < size(); ++i) {
      const std::int64_t at = chosen_[i];
      is_whole_ = is_whole_ && at == i;
      diagonal_.push_back(static_cast<double>(gram.row(at)[at]));
    }
  }
  GivenGram(std::shared_ptr<RowsOnDemand<T>> rows, std::vector<double> diagonal)
      : on_demand_(std::move(rows)),
        chosen_(all_rows(on_demand_->size())),
        is_whole_(true),
        diagonal_(std::move(diagonal)) {}
  std::int64_t size() const override { return length(chosen_); }
  const std::vector<double>& diagonal() const override { return diagonal_; }
  double cost() const override { return 1; }
  const T* ready(std::int64_t i) const override { return is_whole_ ? row(i) : nullptr; }

  void rows(std::span<const std::int64_t> wanted, const double* change, T* const* out, double* sums,
            int threads) const override {
    parallel_for((size() + kPiece - 1) / kPiece, threads, [&](std::int64_t piece) {
      const std::int64_t from = piece * kPiece, to = std::min(size(), from + kPiece);
      for (std::size_t r = 0; r < wanted.size(); ++r) {
        const T* given = row(wanted[r]);
        for (std::int64_t j = from; j < to; ++j) out[r][j] = given[chosen_[j]];
        if (change) add_scaled_row(out[r] + from, change[r], to - from, sums + from);
      }
    });
  }

  void block(std::span<const std::int64_t> a, std::span<const std::int64_t> b, T* out, std::int64_t stride,
             int) const override {
    for (std::size_t r = 0; r < a.size(); ++r)
      for (std::size_t c = 0; c < b.size(); ++c)
        out[static_cast<std::int64_t>(r) * stride + static_cast<std::int64_t>(c)] = row(a[r])[chosen_[b[c]]];
  }

  void add_sums(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
                double* sums, int threads) const override {
    const auto columns = length(b);
    parallel_for((columns + kPiece - 1) / kPiece, threads, [&](std::int64_t piece) {
      const std::int64_t from = piece * kPiece, to = std::min(columns, from + kPiece);
      for (std::size_t r = 0; r < a.size(); ++r) {
        const T* given = row(a[r]);
        for (std::int64_t c = from; c < to; ++c) sums[c] += change[r] * given[chosen_[b[c]]];
      }
    });
  }
  void exact(std::span<const std::int64_t> a, std::span<const double> change, std::span<const std::int64_t> b,
             double* sums, int threads) const override {
    add_sums(a, change, b, sums, threads);
  }
  std::shared_ptr<const Gram<T>> part(std::span<const std::int64_t> chosen) const override {
    auto some = std::make_shared<GivenGram<T>>(*this);
    some->is_whole_ = false;
    some->chosen_.clear();
    some->diagonal_.clear();
    for (const std::int64_t i : chosen) {
      some->chosen_.push_back(chosen_[i]);
      some->diagonal_.push_back(diagonal_[i]);
    }
    return some;
  }

 private:
  const T* row(std::int64_t i) const {
    const std::int64_t at = chosen_[i];
    return on_demand_ ? on_demand_->row(at) : gram_.row(at);
  }

  DenseRows<T> gram_{};  // where no rows are made on demand
  std::shared_ptr<RowsOnDemand<T>> on_demand_;
  std::vector<std::int64_t> chosen_;
  bool is_whole_;
  std::vector<double> diagonal_;
};

}  // namespace

template <class T>
std::shared_ptr<const Gram<T>> gram_given(const DenseRows<T>& gram, std::vector<std::int64_t> chosen) {
  return std::make_shared<const GivenGram<T>>(gram, std::move(chosen));
}

template <class T>
std::shared_ptr<const Gram<T>> gram_on_demand(std::shared_ptr<RowsOnDemand<T>> rows, std::vector<double> diagonal) {
  return std::make_shared<const GivenGram<T>>(std::move(rows), std::move(diagonal));
}

template std::shared_ptr<const Gram<float>> gram_on_demand(std::shared_ptr<RowsOnDemand<float>>, std::vector<double>);
template std::shared_ptr<const Gram<double>> gram_on_demand(std::shared_ptr<RowsOnDemand<double>>, std::vector<double>);
template std::shared_ptr<const Gram<float>> gram_given(const DenseRows<float>&, std::vector<std::int64_t>);
template std::shared_ptr<const Gram<double>> gram_given(const DenseRows<double>&, std::vector<std::int64_t>);

}  // namespace margrove
