#include "tree/sorting.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace margrove::tree {
namespace {

constexpr int kDigitBits = 11, kDigits = 3;  // 11 + 11 + 10 bits: counters of a digit fit into the first cache
constexpr std::size_t kDigitSize = std::size_t{1} << kDigitBits;
constexpr std::size_t kFewRows = 256;  // below, comparing beats counting digits

// Sorts `pairs` (n of them) by their high 32 bits, stably; `other` is room for as many. Returns where they end up.
std::uint64_t* sort_pairs(std::uint64_t* pairs, std::uint64_t* other, std::size_t n) {
  if (n < kFewRows) {
    std::stable_sort(pairs, pairs + n, [](std::uint64_t a, std::uint64_t b) { return a >> 32 < b >> 32; });
    return pairs;
  }
  std::array<std::array<std::uint32_t, kDigitSize>, kDigits> count{};
  for (std::size_t i = 0; i < n; ++i)
    for (int digit = 0; digit < kDigits; ++digit)
      ++count[digit][pairs[i] >> (32 + kDigitBits * digit) & (kDigitSize - 1)];
  for (int digit = 0; digit < kDigits; ++digit) {
    const int shift = 32 + kDigitBits * digit;
    auto& place = count[digit];
    if (place[pairs[0] >> shift & (kDigitSize - 1)] == n) continue;  // all the same: nothing to do
    std::uint32_t next = 0;
    for (std::uint32_t& c : place) next += std::exchange(c, next);
    for (std::size_t i = 0; i < n; ++i) other[place[pairs[i] >> shift & (kDigitSize - 1)]++] = pairs[i];
    std::swap(pairs, other);
  }
  return pairs;
}

// Of columns with few different values: these are looked up in a small table and counted, which is several times faster
// than sorting rows. The bits of such columns are told by the first rows; others are given up early.
class FewValues {
 public:
  // Whether there are few. Then rank << 32 | row goes to `out`, ascending.
  bool rank(std::span<const std::uint32_t> bits, std::uint64_t* out) {
    slot_of_row_.resize(bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const int slot = find(bits[i]);
      if (slot < 0) return false;
      ++rows_[static_cast<std::size_t>(slot)];
      slot_of_row_[i] = static_cast<std::uint8_t>(slot);
    }
    std::sort(used_.begin(), used_.begin() + n_used_,
              [&](std::uint8_t a, std::uint8_t b) { return bits_[a] < bits_[b]; });
    std::array<std::uint32_t, kSlots> place, rank_of;
    std::uint32_t next = 0;
    for (std::uint32_t r = 0; r < n_used_; ++r) {
      place[used_[r]] = next;
      rank_of[used_[r]] = bits_[used_[r]] == kMissing ? kMissing : r;
      next += rows_[used_[r]];
    }
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const std::uint8_t slot = slot_of_row_[i];
      out[place[slot]++] = std::uint64_t{rank_of[slot]} << 32 | i;
    }
    return true;
  }

 private:
  static constexpr std::size_t kSlots = 256, kMost = 128;

  int find(std::uint32_t bits) {
    std::size_t slot = bits * 2654435761u >> 24;
    while (rows_[slot]) {
      if (bits_[slot] == bits) return static_cast<int>(slot);
      slot = (slot + 1) % kSlots;
    }
    if (n_used_ == kMost) return -1;
    bits_[slot] = bits;
    used_[n_used_++] = static_cast<std::uint8_t>(slot);
    return static_cast<int>(slot);
  }

  std::array<std::uint32_t, kSlots> bits_, rows_{};
  std::array<std::uint8_t, kMost> used_;
  std::uint32_t n_used_ = 0;
  std::vector<std::uint8_t> slot_of_row_;
};

// Equal high halves become equal ranks; `is_missing` tells them by the largest of all.
template <class Bits>
void rank(std::uint64_t* pairs, std::size_t n, Bits bits_of) {
  std::uint32_t rank = 0;
  auto before = bits_of(pairs[0]);
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = bits_of(pairs[i]);
    if (bits != before) ++rank;
    before = bits;
    const bool is_missing = bits == static_cast<decltype(bits)>(-1);
    pairs[i] = std::uint64_t{is_missing ? kMissing : rank} << 32 | static_cast<std::uint32_t>(pairs[i]);
  }
}

}  // namespace

std::uint32_t ordered_bits(float x) {
  if (std::isnan(x)) return kMissing;
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);
  return bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u);
}
std::uint64_t ordered_bits(double x) {
  if (std::isnan(x)) return ~std::uint64_t{0};
  const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return bits ^ (bits >> 63 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

const std::uint64_t* ranked_rows(const Column& column, std::size_t n, std::span<const std::uint32_t> bits,
                                 SortSpace& space) {
  std::uint64_t *pairs = space.pairs.data(), *other = space.other.data();
  bool is_single = !bits.empty();
  if (!is_single) {  // numbers that are no wider than a float are sorted as floats
    is_single = true;
    space.bits.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = column.number(static_cast<std::int64_t>(i));
      const auto narrow = static_cast<float>(x);
      is_single &= std::isnan(x) || narrow == x;
      space.bits[i] = ordered_bits(narrow);
    }
    bits = space.bits;
  }
  if (is_single) {
    if (n >= kFewRows && FewValues().rank(bits, pairs)) return pairs;
    for (std::size_t i = 0; i < n; ++i) pairs[i] = std::uint64_t{bits[i]} << 32 | i;
    pairs = sort_pairs(pairs, other, n);
    rank(pairs, n, [](std::uint64_t pair) { return static_cast<std::uint32_t>(pair >> 32); });
    return pairs;
  }
  const auto bits_of = [&](std::uint64_t row) { return ordered_bits(column.number(static_cast<std::uint32_t>(row))); };
  for (std::size_t i = 0; i < n; ++i) pairs[i] = bits_of(i) << 32 | i;
  pairs = sort_pairs(pairs, other, n);  // by the low half, then, stably, by the high one
  other = pairs == space.pairs.data() ? space.other.data() : space.pairs.data();
  for (std::size_t i = 0; i < n; ++i) pairs[i] = (bits_of(pairs[i]) >> 32 << 32) | static_cast<std::uint32_t>(pairs[i]);
  pairs = sort_pairs(pairs, other, n);
  rank(pairs, n, bits_of);
  return pairs;
}

void Binning::finish(const Column& column, int n_bins) {
  std::int64_t total = 0, reached = 0, next = 1;
  for (const Run& run : runs_) total += run.rows;
  const auto value = [&](const Run& run) { return run.row == kModeRow ? 0.0 : column.cell(run.row); };
  const bool is_few = runs_.size() <= static_cast<std::size_t>(n_bins);
  bin_.resize(runs_.size());
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    bin_[r] = static_cast<std::uint32_t>(cuts_.size());
    // A cut lies behind the value at which a share b / n_bins of the rows is reached, for b = 1 .. n_bins - 1.
    reached += runs_[r].rows;
    bool is_cut = is_few;
    for (; reached * n_bins >= next * total; ++next) is_cut = true;
    if (is_cut && r + 1 < runs_.size()) cuts_.push_back(halfway(value(runs_[r]), value(runs_[r + 1])));
  }
}

double halfway(double low, double high) {
  const double middle = std::midpoint(low, high);
  return low <= middle && middle < high ? middle : low;
}

}  // namespace margrove::tree
