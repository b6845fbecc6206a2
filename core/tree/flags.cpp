#include "tree/flags.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "dispatch.hpp"
#include "simd.hpp"

namespace margrove::tree {
namespace {

constexpr std::uint32_t kFlags = FlagGroup::kFlags;
static_assert(std::endian::native == std::endian::little);  // bytes of words are counters

// In how many words of each run each flag is set: (runs, flags).
MARGROVE_CLONES void add_up(const std::uint64_t* word, std::span<const std::uint32_t> runs, std::uint32_t* counts) {
  using Words = Simd<std::uint64_t, 8>;
  constexpr std::uint32_t kMost = 255;  // words whose flags a byte can count
  const Words shift{0, 1, 2, 3, 4, 5, 6, 7};
  for (std::uint32_t size : runs) {
    std::fill_n(counts, kFlags, 0u);
    while (size > 0) {
      const std::uint32_t now = std::min(size, kMost);
      Words sums{};  // byte i of number j counts bit 8 i + j
      for (std::uint32_t i = 0; i < now; ++i) sums += ((Words{} + word[i]) >> shift) & 0x0101010101010101u;
      std::uint8_t bytes[kFlags];
      store(bytes, sums);
      for (std::uint32_t f = 0; f < kFlags; ++f) counts[f] += bytes[f];
      word += now;
      size -= now;
    }
    counts += kFlags;
  }
}

// D² / (n_l n_r) with D = l_1 n − n_l t_1: whole numbers, as doubles.
MARGROVE_CLONES void score_two(const std::uint32_t* ones, const std::uint32_t* left, double t1, double n,
                               double* score) {
  for (std::uint32_t f = 0; f < kFlags; ++f) {
    const double nl = static_cast<std::int32_t>(left[f]), d = static_cast<std::int32_t>(ones[f]) * n - nl * t1;
    score[f] = d * d / (nl * (n - nl));
  }
}

MARGROVE_CLONES void score_many(const std::uint32_t* counts, std::span<const std::uint32_t> sizes,
                                const std::uint32_t* left, double n, double* score) {
  double l2[kFlags] = {}, r2[kFlags] = {};
  for (const std::uint32_t size : sizes) {
    const double total = size;
    for (std::uint32_t f = 0; f < kFlags; ++f) {
      const double l = static_cast<std::int32_t>(counts[f]), r = total - l;
      l2[f] += l * l;
      r2[f] += r * r;
    }
    counts += kFlags;
  }
  for (std::uint32_t f = 0; f < kFlags; ++f) {
    const double nl = static_cast<std::int32_t>(left[f]);
    score[f] = l2[f] / nl + r2[f] / (n - nl);
  }
}

constexpr int kSide = 8;  // columns looked at side by side: a vector of AVX2

// Sets the flags of cells that are `one`, as number `place` of eight. Returns whether a cell is neither that nor
// `other`.
MARGROVE_CLONES bool flag_eight(const float* cell, std::int64_t stride, std::int64_t rows, std::size_t lanes,
                                const float* one, const float* other, std::size_t place, std::uint64_t* word) {
  using Cells = Simd<float, kSide>;
  const auto first = load<Cells>(one), second = load<Cells>(other);
  Simd<std::int32_t, kSide> is_third{};
  float some[kSide] = {};
  for (std::int64_t i = 0; i < rows; ++i, cell += stride) {
    Cells x;
    if (lanes == kSide) {
      x = load<Cells>(cell);
    } else {
      std::copy_n(cell, lanes, some);
      x = load<Cells>(some);
    }
    const auto is_first = x == first;
    is_third |= ~(is_first | (x == second));
    word[i] |= std::bit_cast<std::uint64_t>(converted<Simd<std::uint8_t, kSide>>(is_first & 1)) << place;
  }
  std::int32_t found = 0;
  for (std::size_t k = 0; k < lanes; ++k) found |= is_third[k];
  return found != 0;
}

// How many tests there are, and the best score. Tests that leave too few rows in a branch get a score of -1.
MARGROVE_CLONES void look_at(const std::uint32_t* left, const std::uint32_t* is_further, std::int32_t n,
                             std::int32_t least, double* score, std::uint32_t& n_tests, double& best) {
  std::int32_t before[kFlags] = {}, tests = 0;
  for (std::uint32_t f = 1; f < kFlags; ++f) before[f] = static_cast<std::int32_t>(left[f - 1] & is_further[f]);
  for (std::uint32_t f = 0; f < kFlags; ++f) {
    const auto nl = static_cast<std::int32_t>(left[f]);
    tests += static_cast<std::int32_t>(nl != before[f]) & static_cast<std::int32_t>(nl != n);
    score[f] = nl < least || n - nl < least ? -1.0 : score[f];
  }
  double most[8];  // side by side: each comparison waits for the last
  std::copy_n(score, 8, most);
  for (std::uint32_t f = 8; f < kFlags; f += 8)
    for (std::uint32_t i = 0; i < 8; ++i) most[i] = score[f + i] > most[i] ? score[f + i] : most[i];
  n_tests = static_cast<std::uint32_t>(tests);
  best = *std::max_element(most, most + 8);
}

}  // namespace

void FlagGroup::add(std::uint32_t column, std::vector<std::uint32_t> row) {
  Member member{column, n_flags, 0, std::move(row)};
  for (std::uint32_t t = 0; t < member.n_tests(); ++t) {
    member.flags |= std::uint64_t{1} << bit(n_flags + t);
    is_further[n_flags + t] = t ? ~0u : 0;
  }
  n_flags += member.n_tests();
  members.push_back(std::move(member));
}

void FlagGroup::make_words(std::int64_t n) {
  word = large_memory<std::uint64_t>(n);
  std::fill_n(word.get(), n, std::uint64_t{0});
}

void drop_short_runs(std::vector<bool>& is_two) {
  for (auto from = is_two.begin(); from != is_two.end();) {
    const auto end = std::find(from, is_two.end(), !*from);
    if (*from && end - from < kSide) std::fill(from, end, false);
    from = end;
  }
}

std::vector<bool> seem_two_valued(std::span<const Column> columns, std::int64_t n) {
  constexpr std::int64_t kSample = 128;  // rows
  std::vector<bool> is_two(columns.size());
  const auto* row = static_cast<const float*>(columns[0].data);
  for (std::size_t j = 0; j < columns.size(); ++j)
    is_two[j] =
        columns[j].cells == CellKind::f32 && columns[j].stride == columns[0].stride && columns[j].data == row + j;
  std::vector<float> other(is_two.size());
  if (is_two[0]) std::copy_n(row, std::find(is_two.begin(), is_two.end(), false) - is_two.begin(), other.begin());
  for (std::int64_t s = 0; is_two[0] && s < std::min(n, kSample); ++s) {
    const float* cell = row + s * n / std::min(n, kSample) * columns[0].stride;
    for (std::size_t j = 0; j < is_two.size(); ++j) {
      if (!is_two[j] || cell[j] == row[j] || cell[j] == other[j]) continue;
      is_two[j] = other[j] == row[j];
      other[j] = cell[j];
    }
  }
  drop_short_runs(is_two);
  return is_two;
}

std::size_t flag_two_values(std::span<const Column> columns, std::int64_t n, std::size_t first, FlagGroup& group) {
  constexpr std::int64_t kRows = 64;  // looked at together, so that their lines stay in L1
  const auto* row = static_cast<const float*>(columns[0].data);
  const std::int64_t stride = columns[0].stride;
  const std::size_t d = columns.size();
  float one[kFlags] = {}, other[kFlags] = {};
  std::uint32_t row_of_other[kFlags] = {};
  std::copy_n(row, d, one);
  std::copy_n(row, d, other);
  group.make_words(n);
  for (std::int64_t from = 0; from < n; from += kRows) {
    const std::int64_t rows = std::min(kRows, n - from);
    for (std::size_t at = 0; at < d; at += kSide) {
      const float* cell = row + from * stride + at;
      const std::size_t lanes = std::min<std::size_t>(kSide, d - at);
      if (!flag_eight(cell, stride, rows, lanes, one + at, other + at, at / kSide, group.word.get() + from)) continue;
      for (std::int64_t i = 0; i < rows; ++i, cell += stride)
        for (std::size_t k = at; k < at + lanes; ++k) {
          const float x = cell[k - at];
          if (x == one[k] || x == other[k]) continue;
          if (other[k] != one[k] || x != x) return k;
          other[k] = x;
          row_of_other[k] = static_cast<std::uint32_t>(from + i);
        }
    }
  }
  for (std::uint32_t k = 0; k < d; ++k) {
    group.n_flags = k;
    if (one[k] != one[k]) return k;
    if (one[k] == other[k]) continue;  // constant
    const bool is_first_low = one[k] < other[k];
    if (!is_first_low) group.inverse |= std::uint64_t{1} << FlagGroup::bit(k);
    const std::uint32_t rare = row_of_other[k];
    group.add(first + k, is_first_low ? std::vector<std::uint32_t>{0, rare} : std::vector<std::uint32_t>{rare, 0});
  }
  return d;
}

std::uint64_t* FlagCounts::words(std::uint32_t size) {
  if (words_.size() < size) words_.resize(size);
  return words_.data();
}

void FlagCounts::count(const FlagGroup& group, std::span<const std::uint32_t> seen, std::int64_t min_rows, bool is_gini,
                       bool is_two) {
  classes_.clear();
  sizes_.clear();
  std::uint32_t n = 0;
  for (std::uint32_t k = 0; k < seen.size(); ++k) {
    if (seen[k] == 0) continue;
    classes_.push_back(k);
    sizes_.push_back(seen[k]);
    n += seen[k];
  }
  counts_.resize(classes_.size() * kFlags);
  add_up(words_.data(), sizes_, counts_.data());
  std::fill_n(left_, kFlags, 0u);
  for (std::size_t k = 0; k < classes_.size(); ++k)
    for (std::uint32_t f = 0; f < kFlags; ++f) left_[f] += counts_[k * kFlags + f];
  is_two_ = is_two;
  if (!is_gini)
    std::fill_n(score_, kFlags, std::numeric_limits<double>::infinity());
  else if (is_two)
    score_two(&counts_[kFlags], left_, sizes_[1], n, score_);
  else
    score_many(counts_.data(), sizes_, left_, n, score_);
  const auto least = static_cast<std::int32_t>(std::clamp<std::int64_t>(min_rows, 1, n));
  look_at(left_, group.is_further, static_cast<std::int32_t>(n), least, score_, n_tests_, best_);
}

}  // namespace margrove::tree
