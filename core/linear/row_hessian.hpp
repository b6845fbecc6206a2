// The step of Newton's method where fewer rows bend than there are columns: by a matrix of the free rows instead of one
// of the columns. The step goes to weights w+ = sum t_i x_i over the free rows + u, u = sum beta_i x_i over the others,
// where with s_i = scale C_i, K_ij = x_i·x_j over the free rows and beta_i the dual variable at f_i
//
//   (diag(1/s) + K) t + b+ 1 = beta/s + f - X u,   rho b+ = sum t_i + (sum of the other beta_i)
//
// (Woodbury's identity, written for w+ and not for the step, which may be a small difference of large numbers.)
// Products of rows are kept, so only rows that come are multiplied, also along a path over C.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "blas.hpp"
#include "index.hpp"
#include "linear/svm_hessian.hpp"
#include "linear/svm_rows.hpp"
#include "linear/svm_task.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace margrove {

template <class Rows>
class RowHessian {
 public:
  RowHessian(const Rows& rows, const LinearTask& task, const SymmetricBlas& blas)
      : rows_(rows), task_(task), blas_(blas), place_(rows.n, -1) {}

  void begin(const std::vector<std::uint8_t>& is_free) {
    list_.clear();
    std::size_t n_new = 0;
    for (std::size_t i = 0; i < is_free.size(); ++i) {
      if (!is_free[i]) continue;
      list_.push_back(i);
      n_new += place_[i] < 0;
    }
    if (members_.size() + n_new > list_.size() + list_.size() / 2 + kSpareRows) forget_others();
    known_ = members_.size();
    for (const std::uint32_t i : list_) {
      if (place_[i] >= 0) continue;
      place_[i] = members_.size();
      members_.push_back(i);
    }
    std::sort(list_.begin(), list_.end(), [&](std::uint32_t a, std::uint32_t b) { return place_[a] < place_[b]; });
    products_.resize(offset(members_.size()));
    next_ = 0;
    if (known_ < members_.size()) index_columns();
  }

  // True when all products are known; else the next call goes on.
  bool go_on(std::chrono::steady_clock::time_point until, int threads) {
    const std::int64_t missing = members_.size() - known_;
    const std::int64_t batches = (missing + kBatch - 1) / kBatch;
    return margrove::go_on(next_, batches, threads, until, [&](std::int64_t batch) {
      const std::size_t from = known_ + static_cast<std::size_t>(batch * kBatch);
      multiply(from, std::min(members_.size(), from + static_cast<std::size_t>(kBatch)));
    });
  }

  // p <- the step from w and b for p = -gradient. The slope along it: NaN where there is no step.
  double solve(double scale, const std::vector<double>& f, const std::vector<double>& beta,
               const std::vector<std::uint8_t>& is_free, const std::vector<double>& w, double b,
               std::vector<double>& p) {
    const int m = list_.size();
    const std::size_t d = rows_.d;
    const std::vector<double> g = p;
    std::vector<double> others(d), across(list_.size());  // u, X u
    double total = 0;                                     // of the other beta, which may be 0 though they are not
    bool has_others = false;
    for (std::size_t i = 0; i < beta.size(); ++i) {
      if (is_free[i] || beta[i] == 0) continue;
      add_rows(rows_, i, &beta[i], 1, others.data());
      total += beta[i];
      has_others = true;
    }
    if (has_others) values_of_listed(rows_, list_.data(), m, others.data(), across.data());
    double ridge = 0;
    for (int attempt = 0; attempt < kMostRidges; ++attempt, ridge = ridge == 0 ? 1e-14 : ridge * 100) {
      std::vector<double> t(list_.size()), e(list_.size(), 1.0);
      for (std::size_t a = 0; a < t.size(); ++a) {
        const std::uint32_t i = list_[a];
        const double bend = 1 / (scale * task_.cost[i]);
        t[a] = f[i] - across[a] + (bend + ridge * (norm(i) + bend)) * beta[i];
      }
      if (m > 0 && !factor(scale, ridge)) continue;
      if (m > 0) blas_.solve(factor_.data(), m, t.data());
      if (task_.has_intercept) {
        if (m > 0) blas_.solve(factor_.data(), m, e.data());
        const double bend = task_.rho + std::accumulate(e.begin(), e.end(), 0.0);
        const double sum = std::accumulate(t.begin(), t.end(), total);
        const double level = bend > 0 ? sum / bend : b + g[d] / bent(0.0, scale, task_);
        for (std::size_t a = 0; a < t.size(); ++a) t[a] -= level * e[a];
        p[d] = level - b;
      }
      std::copy(others.begin(), others.end(), p.begin());
      add_listed(rows_, list_.data(), m, t.data(), p.data());
      for (std::size_t j = 0; j < d; ++j) p[j] -= w[j];
      const double slope = product(p, g);
      if (std::isfinite(slope) && slope >= 0) {
        beta_ = std::move(t);
        return slope;
      }
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  // Where the last step leads beta of the free rows, and which rows these are.
  const std::vector<double>& beta() const { return beta_; }
  const std::vector<std::uint32_t>& free_rows() const { return list_; }

  // sum C_i x_ij^2 of the free rows, column by column.
  std::vector<double> squares() const {
    std::vector<double> found(hessian_size(rows_.d, task_));
    add_squares(rows_, list_.data(), length(list_), task_.cost.data(), found.data());
    if (task_.has_intercept)
      for (const std::uint32_t i : list_) found.back() += task_.cost[i];
    return found;
  }

 private:
  // Rows kept though they are not free now: they may come back. Chosen, not measured: each takes memory for its
  // products.
  static constexpr std::size_t kSpareRows = 256;
  // Rows multiplied between two looks at the clock. Chosen, not measured: fewer make small matrix products.
  static constexpr std::int64_t kBatch = 64;
  static constexpr std::int64_t kPanel = 256;  // columns multiplied at a time: of a batch 128 KiB, in L2
  static constexpr int kMostRidges = 12;  // tried on a matrix without a factor: 0, then 1e-14 to 1e6, times 100 each

  // Products of member k with members 0 ... k lie from here on.
  static std::size_t offset(std::size_t k) { return k * (k + 1) / 2; }

  double norm(std::uint32_t i) const {
    const std::size_t k = place_[i];
    return products_[offset(k) + k];
  }

  void forget_others() {
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t i : list_)
      if (place_[i] >= 0) kept.push_back(i);
    std::sort(kept.begin(), kept.end(), [&](std::uint32_t a, std::uint32_t b) { return place_[a] < place_[b]; });
    std::vector<double> products(offset(kept.size()));
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const double* row = products_.data() + offset(place_[kept[k]]);
      for (std::size_t a = 0; a <= k; ++a) products[offset(k) + a] = row[place_[kept[a]]];
    }
    for (const std::uint32_t i : members_) place_[i] = -1;
    for (std::size_t k = 0; k < kept.size(); ++k) place_[kept[k]] = k;
    members_ = std::move(kept);
    products_ = std::move(products);
  }

  // Which members have a number in a column, for sparse rows: two of them share few columns.
  void index_columns() {
    if constexpr (!requires { rows_.row(0); }) {
      column_start_.assign(rows_.d + 1, 0);
      for (const std::uint32_t i : members_)
        for (std::int64_t at = rows_.start[i]; at < rows_.start[i + 1]; ++at)
          ++column_start_[static_cast<std::size_t>(rows_.column[at]) + 1];
      std::partial_sum(column_start_.begin(), column_start_.end(), column_start_.begin());
      std::vector<std::int64_t> fill(column_start_.begin(), column_start_.end() - 1);
      entries_.resize(column_start_.back());
      for (std::size_t k = 0; k < members_.size(); ++k)
        for (std::int64_t at = rows_.start[members_[k]]; at < rows_.start[members_[k] + 1]; ++at)
          entries_[fill[rows_.column[at]]++] = {static_cast<std::uint32_t>(k), static_cast<double>(rows_.data[at])};
    }
  }

  // The products of members from ... to with all before them and with themselves.
  void multiply(std::size_t from, std::size_t to) {
    if constexpr (requires { rows_.row(0); }) {
      const int count = to - from, others = to;
      std::vector<double> found(to * (to - from)), panel(to * kPanel);
      for (std::int64_t begin = 0; begin < rows_.d; begin += kPanel) {
        const int width = std::min(kPanel, rows_.d - begin);
        for (std::size_t k = 0; k < to; ++k) {
          const auto* x = rows_.row(members_[k]) + begin;
          for (int j = 0; j < width; ++j) panel[k * width + j] = x[j];
        }
        // found (count, others) += panel[from:] panel^T
        blas_.add_products(panel.data() + from * width, panel.data(), count, others, width, found.data());
      }
      for (std::size_t k = from; k < to; ++k)
        std::copy_n(found.data() + (k - from) * to, k + 1, products_.data() + offset(k));
    } else {
      for (std::size_t k = from; k < to; ++k) {
        double* out = products_.data() + offset(k);
        std::fill_n(out, k + 1, 0.0);
        for (std::int64_t at = rows_.start[members_[k]]; at < rows_.start[members_[k] + 1]; ++at) {
          const double x = rows_.data[at];
          const std::size_t column = rows_.column[at];
          for (std::int64_t e = column_start_[column]; e < column_start_[column + 1]; ++e) {
            const Entry& entry = entries_[e];
            if (entry.member > k) break;
            out[entry.member] += x * entry.value;
          }
        }
      }
    }
  }

  // factor <- that of diag(1/s) + K. False where there is none.
  bool factor(double scale, double ridge) {
    const std::size_t m = list_.size();
    factor_.resize(m * m);
    for (std::size_t b = 0; b < m; ++b) {
      const double* row = products_.data() + offset(place_[list_[b]]);
      double* out = factor_.data() + b * m;
      for (std::size_t a = 0; a <= b; ++a) out[a] = row[place_[list_[a]]];
      out[b] = (out[b] + 1 / (scale * task_.cost[list_[b]])) * (1 + ridge);
    }
    return blas_.factor(factor_.data(), m);
  }

  struct Entry {
    std::uint32_t member;
    double value;
  };

  const Rows rows_;
  const LinearTask task_;
  const SymmetricBlas blas_;
  std::vector<std::int32_t> place_;     // (n): among the members, or -1
  std::vector<std::uint32_t> members_;  // rows whose products are kept, or will be
  std::vector<std::uint32_t> list_;     // the free rows, as the members are ordered
  std::size_t known_ = 0;               // members whose products were known when it began
  std::vector<double> products_, factor_, beta_;
  std::vector<std::int64_t> column_start_;  // (d + 1) into entries
  std::vector<Entry> entries_;              // of each column, members ascending
  std::atomic<std::int64_t> next_{0};       // batch to be multiplied
};

}  // namespace margrove
