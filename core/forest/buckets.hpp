// The cells of a column at a node of many rows, counted by intervals of ranks: the test behind each interval is scored
// from the counts, and the tests inside of it are bounded. Gini; weights are numbers of draws.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace margrove::forest {

// Of the weight of a node: three such numbers share 64 bits.
constexpr int kPackBits = 21;
constexpr std::int64_t kMostPacked = (std::int64_t{1} << kPackBits) - 1;

// What of the rows up to a bucket's end is known of two classes: weight, that of the second class, and rows.
struct Packed {
  static constexpr std::uint64_t kMask = kMostPacked;
  static std::uint64_t row(std::uint64_t draws, bool is_second) {
    return draws | (is_second ? draws << kPackBits : 0) | std::uint64_t{1} << 2 * kPackBits;
  }
  static std::int64_t weight(std::uint64_t p) { return static_cast<std::int64_t>(p & kMask); }
  static std::int64_t ones(std::uint64_t p) { return static_cast<std::int64_t>(p >> kPackBits & kMask); }
  static std::int64_t rows(std::uint64_t p) { return static_cast<std::int64_t>(p >> 2 * kPackBits); }
};

struct BucketNode {
  double weight, second;  // of all rows, and of the second class
  std::int32_t rows, min_rows;
};

// Of each bucket, from the sums up to its begin, sums[b], and to its end: the score D² / (w_l w_r) of the test behind
// it, negative if it is not allowed, and what no test inside of it surpasses.
void score_two_classes(const std::uint64_t* sums, std::uint32_t n_buckets, const BucketNode& node, double* score,
                       double* limit);

// The same of more classes, whose weights are (classes, buckets); they are added up from bucket to bucket. The score is
// that of weighted.hpp: Σ l_k² / w_l + Σ r_k² / w_r less Σ t_k² / w.
struct ClassScores {
  std::vector<double> score, limit, products, left, step, largest;  // (buckets)
  void resize(std::size_t n) {
    if (score.size() < n)
      for (auto* part : {&score, &limit, &products, &left, &step, &largest}) part->resize(n);
  }
};
void score_classes(std::int32_t* counts, std::uint32_t n_buckets, std::span<const std::int32_t> totals,
                   const BucketNode& node, ClassScores& scores);
// Takes away tests whose branches have too few rows. `rows` up to the end of each bucket.
void allow_rows(const std::int32_t* rows, std::uint32_t n_buckets, const BucketNode& node, ClassScores& scores);

}  // namespace margrove::forest
