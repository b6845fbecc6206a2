#include "tree/weighted.hpp"

namespace margrove::tree {

MARGROVE_CLONES void add_weights(const Tags& tags, const std::int64_t* weight, const std::uint32_t* tag,
                                 std::uint32_t size, std::int64_t& all, std::int64_t& ones) {
  std::int64_t sum = 0, sum_ones = 0;
  const int shift = tags.shift;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::int64_t x = weight[tag[i] >> shift];
    sum += x;
    sum_ones += x & -static_cast<std::int64_t>(tag[i] & 1u);
  }
  all += sum;
  ones += sum_ones;
}

MARGROVE_CLONES Sight look_at_weighted_two(const Tags& tags, const std::int64_t* weight, const std::uint32_t* key,
                                           const std::uint32_t* tag, std::uint32_t size, std::int64_t w,
                                           std::int64_t t1, double bar, std::int64_t& left, std::int64_t& left_ones) {
  std::int64_t all[kChunk], ones[kChunk], sum = left, sum_ones = left_ones;
  const int shift = tags.shift;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::int64_t x = weight[tag[i] >> shift];
    all[i] = sum += x;
    ones[i] = sum_ones += x & -static_cast<std::int64_t>(tag[i] & 1u);
  }
  left = sum;
  left_ones = sum_ones;
  const double whole = w, t = t1;
  const double rounding = kRoundingOfProducts * whole * whole;
  std::int32_t wins = 0, boundaries = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const double l = all[i], r = w - all[i];
    const double d = std::abs(static_cast<double>(ones[i]) * whole - l * t) + rounding;
    const std::int32_t is_boundary = key[i] != key[i + 1];
    wins |= static_cast<std::int32_t>(d * d > bar * l * r) & is_boundary;
    boundaries += is_boundary;
  }
  return {wins != 0, static_cast<std::uint32_t>(boundaries), 0};
}

MARGROVE_CLONES Sight look_at_weighted_gini(const std::uint32_t* key, const double* squares, const double* products,
                                            const std::int64_t* left, std::uint32_t size, double w, double t2,
                                            double bar, double rounding) {
  std::int32_t wins = 0, boundaries = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const double l = left[i];
    const double score = squares[i] * w + (t2 - 2 * products[i]) * l + rounding;
    const std::int32_t is_boundary = key[i] != key[i + 1];
    wins |= static_cast<std::int32_t>(score > bar * l * (w - l)) & is_boundary;
    boundaries += is_boundary;
  }
  return {wins != 0, static_cast<std::uint32_t>(boundaries), 0};
}

}  // namespace margrove::tree
