#include "tree/sorting.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "parallel.hpp"

namespace margrove::tree {
namespace {

constexpr int kDigitBits = 11, kDigits = 3;  // 11 + 11 + 10 bits: the counters of all digits are 24 KiB, in L1
constexpr std::size_t kDigitSize = std::size_t{1} << kDigitBits;
// Below, comparing beats counting digits (24 KiB to clear). No measurement recorded.
constexpr std::size_t kFewRows = 256;

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

std::vector<std::span<const std::uint32_t>> SortSpace::fetch(std::span<const Column> columns, std::size_t n) {
  constexpr std::size_t kRows = 256;  // rows read at a time: their lines, 16 KiB, stay in L1 from column to column
  const auto is_float = [](const Column& column) { return column.cells == CellKind::f32; };
  const std::size_t floats = std::count_if(columns.begin(), columns.end(), is_float);
  if (fetched_.size() < floats * n) fetched_.resize(floats * n);
  std::vector<std::span<const std::uint32_t>> found(columns.size());
  for (std::size_t j = 0, at = 0; j < columns.size(); ++j)
    if (is_float(columns[j])) found[j] = {fetched_.data() + n * at++, n};
  for (std::size_t first = 0; first < n; first += kRows) {
    const std::size_t last = std::min(first + kRows, n);
    std::uint32_t* to = fetched_.data();
    for (const Column& column : columns) {
      if (!is_float(column)) continue;
      const auto* cell = static_cast<const float*>(column.data);
      for (std::size_t i = first; i < last; ++i)
        to[i] = ordered_bits(cell[static_cast<std::int64_t>(i) * column.stride]);
      to += n;
    }
  }
  return found;
}

SortSpace& SortSpaces::own() {
  std::unique_ptr<SortSpace>& mine = spaces_[thread_number()];
  if (!mine) mine = std::make_unique<SortSpace>(n_);
  return *mine;
}

int FewValues::slot_of(std::uint32_t bits, std::uint32_t row) {
  std::size_t slot = bits * 2654435761u >> 24;
  while (rows_[slot]) {
    if (bits_[slot] == bits) return static_cast<int>(slot);
    slot = (slot + 1) % kSlots;
  }
  if (n_used_ == kMost) return -1;
  bits_[slot] = bits;
  row_[slot] = row;
  used_[n_used_++] = static_cast<std::uint8_t>(slot);
  return static_cast<int>(slot);
}

bool FewValues::find(std::span<const std::uint32_t> bits) {
  slot_.resize(bits.size());
  rows_.fill(0);
  n_used_ = n_missing_ = 0;
  std::uint32_t before = bits.empty() ? 0 : ~bits[0];
  int slot = -1;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] != before) slot = slot_of(before = bits[i], static_cast<std::uint32_t>(i));
    if (slot < 0) return false;
    ++rows_[slot];
    slot_[i] = static_cast<std::uint8_t>(slot);
  }
  std::sort(used_.begin(), used_.begin() + n_used_,
            [&](std::uint8_t a, std::uint8_t b) { return bits_[a] < bits_[b]; });
  n_ranks_ = n_used_;
  for (std::uint32_t r = 0; r < n_used_; ++r) rank_of_slot_[used_[r]] = r;
  if (n_used_ && bits_[used_[n_used_ - 1]] == kMissing) {
    --n_ranks_;
    n_missing_ = rows_[used_[n_used_ - 1]];
    rank_of_slot_[used_[n_used_ - 1]] = kMissing;
  }
  return true;
}

void FewValues::write(std::uint64_t* out) const {
  std::array<std::uint32_t, kSlots> place;
  std::uint32_t next = 0;
  for (std::uint32_t r = 0; r < n_used_; ++r) {
    place[used_[r]] = next;
    next += rows_[used_[r]];
  }
  for (std::size_t i = 0; i < slot_.size(); ++i) out[place[slot_[i]]++] = std::uint64_t{rank(i)} << 32 | i;
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
      const float narrow = x;
      is_single &= std::isnan(x) || narrow == x;
      space.bits[i] = ordered_bits(narrow);
    }
    bits = space.bits;
  }
  if (is_single) {
    if (n >= kFewRows && space.few.find(bits)) {
      space.few.write(pairs);
      return pairs;
    }
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
