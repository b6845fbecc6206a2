#include "tree/squared.hpp"

namespace margrove::tree {
namespace {

// Σ (y − shift) up to each of the rows, from `sum` on. Four parts of a chunk are added up side by side, since each
// addition waits for the last.
MARGROVE_INLINE void add_up_numbers(const std::uint32_t* row, std::uint32_t size, const double* number, double shift,
                                    double sum, double* sums) {
  for (std::uint32_t i = 0; i < size; ++i) sums[i] = number[row[i]] - shift;
  constexpr std::uint32_t kQuarter = kChunk / 4;
  if (size == kChunk) {
    double part[4] = {};
    for (std::uint32_t i = 0; i < kQuarter; ++i)
      for (std::uint32_t p = 0; p < 4; ++p) sums[p * kQuarter + i] = part[p] += sums[p * kQuarter + i];
    for (std::uint32_t p = 0; p < 4; ++p) {
      for (std::uint32_t i = 0; i < kQuarter; ++i) sums[p * kQuarter + i] += sum;
      sum = sums[(p + 1) * kQuarter - 1];
    }
    return;
  }
  for (std::uint32_t i = 0; i < size; ++i) sums[i] = sum += sums[i];
}

}  // namespace

MARGROVE_CLONES double sum_numbers(const std::uint32_t* row, std::uint32_t size, const double* number, double shift,
                                   double sum) {
  constexpr std::uint32_t kQuarter = kChunk / 4;
  if (size == kChunk) {
    double part[4] = {};
    for (std::uint32_t i = 0; i < kQuarter; ++i)
      for (std::uint32_t p = 0; p < 4; ++p) part[p] += number[row[p * kQuarter + i]] - shift;
    for (const double p : part) sum += p;
    return sum;
  }
  for (std::uint32_t i = 0; i < size; ++i) sum += number[row[i]] - shift;
  return sum;
}

MARGROVE_CLONES Sight look_at_numbers(const std::uint32_t* key, const std::uint32_t* row, std::uint32_t size,
                                      const double* number, double shift, double sum, double nl, double n, double total,
                                      double bar, double* sums) {
  add_up_numbers(row, size, number, shift, sum, sums);
  std::int32_t wins = 0, boundaries = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const double left = nl + static_cast<double>(static_cast<std::int32_t>(i + 1)), right = n - left;
    const double rest = total - sums[i];
    const std::int32_t is_boundary = key[i] != key[i + 1];
    wins |=
        static_cast<std::int32_t>(!(sums[i] * sums[i] * right + rest * rest * left < bar * left * right)) & is_boundary;
    boundaries += is_boundary;
  }
  return {wins != 0, static_cast<std::uint32_t>(boundaries), 0};
}

}  // namespace margrove::tree
