#include "tree/sorting.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace margrove::tree {
namespace {

// Below, comparing beats counting digits. No measurement recorded.
constexpr std::size_t kFewRows = 64;
// Below, two digits of 8 bits and a last look take less than four digits. Of more rows so many share these bits that
// putting them in order takes longer (magic04).
constexpr std::size_t kFewDigits = 1024;
// Below, adding up the counters of 11 bits, 6,144 of them, takes longer than a fourth pass over the rows.
constexpr std::size_t kShortRows = 4096;

// See `sort_pairs`. By the highest bits in which the numbers differ, as many as two digits have; what is then out of
// order, which is little unless numbers crowd together, is moved into place.
std::uint64_t* sort_by_two_digits(std::uint64_t* pairs, std::uint64_t* other, std::size_t n) {
  constexpr int kBits = 8;
  constexpr std::size_t kSize = std::size_t{1} << kBits, kMovesForEach = 4;
  std::uint64_t low = pairs[0], high = low;
  for (std::size_t i = 1; i < n; ++i) {
    low = std::min(low, pairs[i]);
    high = std::max(high, pairs[i]);
  }
  low = low >> 32 << 32;
  const int shift = std::max(32, static_cast<int>(std::bit_width(high - low)) - 2 * kBits);
  std::array<std::array<std::uint32_t, kSize>, 2> count{};
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t digits = (pairs[i] - low) >> shift;
    ++count[0][digits & (kSize - 1)];
    ++count[1][digits >> kBits];
  }
  for (int digit = 0; digit < 2; ++digit) {
    std::uint32_t next = 0;
    for (std::uint32_t& c : count[digit]) next += std::exchange(c, next);
    for (std::size_t i = 0; i < n; ++i)
      other[count[digit][(pairs[i] - low) >> (shift + kBits * digit) & (kSize - 1)]++] = pairs[i];
    std::swap(pairs, other);
  }
  std::size_t moves = 0;
  for (std::size_t i = 1; i < n && shift > 32; ++i) {
    const std::uint64_t own = pairs[i];
    std::size_t at = i;
    for (; at > 0 && pairs[at - 1] > own; --at) pairs[at] = pairs[at - 1];
    pairs[at] = own;
    moves += i - at;
    if (moves > kMovesForEach * n) {
      std::sort(pairs, pairs + n);
      break;
    }
  }
  return pairs;
}

// See `sort_pairs`.
template <int kBits>
std::uint64_t* sort_by_digits(std::uint64_t* pairs, std::uint64_t* other, std::size_t n) {
  constexpr int kDigits = (32 + kBits - 1) / kBits;
  constexpr std::size_t kSize = std::size_t{1} << kBits;
  std::array<std::array<std::uint32_t, kSize>, kDigits> count{};
  for (std::size_t i = 0; i < n; ++i)
    for (int digit = 0; digit < kDigits; ++digit) ++count[digit][pairs[i] >> (32 + kBits * digit) & (kSize - 1)];
  for (int digit = 0; digit < kDigits; ++digit) {
    const int shift = 32 + kBits * digit;
    auto& place = count[digit];
    if (place[pairs[0] >> shift & (kSize - 1)] == n) continue;  // all the same: nothing to do
    std::uint32_t next = 0;
    for (std::uint32_t& c : place) next += std::exchange(c, next);
    for (std::size_t i = 0; i < n; ++i) other[place[pairs[i] >> shift & (kSize - 1)]++] = pairs[i];
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

// The same as `ordered_bits`, of four floats.
MARGROVE_INLINE Simd<std::uint32_t, 4> ordered_four(Simd<float, 4> x) {
  const auto bits = std::bit_cast<Simd<std::uint32_t, 4>>(x + 0.0f);
  const auto sign = std::bit_cast<Simd<std::uint32_t, 4>>(std::bit_cast<Simd<std::int32_t, 4>>(bits) >> 31);
  return (bits ^ (sign | 0x80000000u)) | std::bit_cast<Simd<std::uint32_t, 4>>(x != x);
}

// Four columns that lie side by side in rows of `stride` floats. Column k goes to out + k n.
void write_four(const float* cell, std::int64_t stride, std::size_t rows, std::size_t n, std::uint32_t* out) {
  using Four = Simd<float, 4>;
  std::size_t i = 0;
  for (; i + 4 <= rows; i += 4, cell += 4 * stride) {
    const auto a = load<Four>(cell), b = load<Four>(cell + stride), c = load<Four>(cell + 2 * stride),
               d = load<Four>(cell + 3 * stride);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(out + i, ordered_four(__builtin_shufflevector(ab, cd, 0, 1, 4, 5)));
    store(out + n + i, ordered_four(__builtin_shufflevector(ab, cd, 2, 3, 6, 7)));
    store(out + 2 * n + i, ordered_four(__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5)));
    store(out + 3 * n + i, ordered_four(__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)));
  }
  for (; i < rows; ++i, cell += stride)
    for (std::size_t k = 0; k < 4; ++k) out[k * n + i] = ordered_bits(cell[k]);
}

template <class Number, class Bits>
void write_one(const Number* cell, std::int64_t stride, std::size_t rows, Bits* out) {
  for (std::size_t i = 0; i < rows; ++i, cell += stride) out[i] = ordered_bits(*cell);
}

// Whether these columns lie side by side in rows of floats.
bool are_side_by_side(std::span<const Column> columns) {
  const auto* first = static_cast<const float*>(columns[0].data);
  for (std::size_t k = 0; k < columns.size(); ++k)
    if (columns[k].cells != CellKind::f32 || columns[k].stride != columns[0].stride || columns[k].data != first + k)
      return false;
  return true;
}

// Cells that are looked at before a column of other numbers is given up, first and then each time.
constexpr std::size_t kFirstLook = 32, kLook = 1024;

MARGROVE_CLONES bool are_two_values(const std::uint32_t* bits, std::size_t n, std::uint32_t one, std::uint32_t other) {
  for (std::size_t first = 0; first < n; first += kLook) {
    const std::size_t last = std::min(first + kLook, n);
    std::uint32_t is_third = 0;
    for (std::size_t i = first; i < last; ++i) is_third |= (bits[i] != one) & (bits[i] != other);
    if (is_third) return false;
  }
  return true;
}

// Code 1 for all other bits than `zero`. Returns how many there are.
MARGROVE_CLONES std::uint32_t mark_others(const std::uint32_t* bits, std::size_t n, std::uint32_t zero,
                                          std::uint16_t* code) {
  std::uint32_t ones = 0;
  for (std::size_t i = 0; i < n; ++i) {
    code[i] = bits[i] != zero;
    ones += bits[i] != zero;
  }
  return ones;
}

// The number whose ordered bits these are.
MARGROVE_INLINE float number_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits >> 31 ? bits ^ 0x80000000u : ~bits);
}

// Whether these ordered bits of doubles are those of floats: `narrow`.
MARGROVE_CLONES bool are_floats(const std::uint64_t* wide, std::size_t n, std::uint32_t* narrow) {
  for (std::size_t first = 0; first < n; first += kLook) {
    const std::size_t last = std::min(first + kLook, n);
    std::uint64_t is_other = 0;
    for (std::size_t i = first; i < last; ++i) {
      const std::uint64_t bits = wide[i] >> 63 ? wide[i] ^ std::uint64_t{1} << 63 : ~wide[i];
      const auto x = std::bit_cast<double>(bits);
      const auto single = static_cast<float>(x);
      narrow[i] = ordered_bits(single);
      is_other |= static_cast<double>(single) != x && x == x;
    }
    if (is_other) return false;
  }
  return true;
}

// If these are whole numbers of which the largest is less than `most` above the least, `low`: how many codes they need.
// Else 0.
MARGROVE_CLONES std::int32_t whole_codes(const std::uint32_t* bits, std::size_t n, std::int32_t most,
                                         std::int32_t& low) {
  // 2^24: of floats up to it there is no whole number between two.
  constexpr auto kLargest = std::bit_cast<std::uint32_t>(16777216.0f);
  std::int32_t least = std::numeric_limits<std::int32_t>::max(), largest = -least;
  for (std::size_t first = 0, last; first < n; first = last) {
    last = std::min(first + (first ? kLook : kFirstLook), n);
    std::uint32_t is_other = 0;
    for (std::size_t i = first; i < last; ++i) {  // by bits alone, which goes in lanes
      const std::uint32_t sign = static_cast<std::uint32_t>(static_cast<std::int32_t>(bits[i]) >> 31);
      const std::uint32_t own = bits[i] ^ (~sign | 0x80000000u);                               // of `number_of`
      const std::uint32_t is_small = -static_cast<std::uint32_t>((own << 1) < kLargest << 1);  // NaN is not
      const auto whole = static_cast<std::int32_t>(std::bit_cast<float>(own & is_small));
      is_other |= ~is_small | (std::bit_cast<std::uint32_t>(static_cast<float>(whole)) ^ (own & is_small));
      least = std::min(least, whole);
      largest = std::max(largest, whole);
    }
    if (is_other || largest - least >= most) return 0;
  }
  low = least;
  return largest - least + 1;
}

MARGROVE_CLONES void write_offsets(const std::uint32_t* bits, std::size_t n, std::int32_t low, std::uint16_t* code) {
  for (std::size_t i = 0; i < n; ++i)
    code[i] = static_cast<std::uint16_t>(static_cast<std::int32_t>(number_of(bits[i])) - low);
}

}  // namespace

std::uint64_t* sort_pairs(std::uint64_t* pairs, std::uint64_t* other, std::size_t n) {
  if (n < kFewRows) {
    std::sort(pairs, pairs + n);
    return pairs;
  }
  if (n < kFewDigits) return sort_by_two_digits(pairs, other, n);
  // Digits of 11 + 11 + 10 bits: the counters of all are 24 KiB, in L1.
  return n < kShortRows ? sort_by_digits<8>(pairs, other, n) : sort_by_digits<11>(pairs, other, n);
}

std::vector<ColumnBits> SortSpace::fetch(std::span<const Column> columns, std::size_t n) {
  constexpr std::size_t kRows = 64;  // rows read at a time: their lines, 8 KiB, stay in L1 from column to column
  const auto is_double = [](const Column& column) { return column.cells == CellKind::f64; };
  const std::size_t doubles = std::count_if(columns.begin(), columns.end(), is_double);
  if (n_narrow_ < columns.size() * n) {
    narrow_ = large_memory<std::uint32_t>(columns.size() * n);
    n_narrow_ = columns.size() * n;
  }
  if (n_wide_ < doubles * n) {
    wide_ = large_memory<std::uint64_t>(doubles * n);
    n_wide_ = doubles * n;
  }
  for (std::size_t first = 0; first < n; first += kRows) {
    const std::size_t rows = std::min(kRows, n - first);
    std::uint64_t* wide = wide_.get() + first;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const Column& column = columns[j];
      const std::int64_t from = static_cast<std::int64_t>(first) * column.stride;
      std::uint32_t* narrow = narrow_.get() + j * n + first;
      if (j + 4 <= columns.size() && are_side_by_side(columns.subspan(j, 4))) {
        write_four(static_cast<const float*>(column.data) + from, column.stride, rows, n, narrow);
        j += 3;
      } else if (column.cells == CellKind::f32) {
        write_one(static_cast<const float*>(column.data) + from, column.stride, rows, narrow);
      } else if (is_double(column)) {
        write_one(static_cast<const double*>(column.data) + from, column.stride, rows, wide);
        wide += n;
      }
    }
  }
  std::vector<ColumnBits> found(columns.size());
  const std::uint64_t* wide = wide_.get();
  for (std::size_t j = 0; j < columns.size(); ++j) {
    std::uint32_t* narrow = narrow_.get() + j * n;
    if (columns[j].cells == CellKind::f32 || (is_double(columns[j]) && are_floats(wide, n, narrow)))
      found[j].narrow = {narrow, n};
    else if (is_double(columns[j]))
      found[j].wide = {wide, n};
    if (is_double(columns[j])) wide += n;
  }
  return found;
}

SortSpace& SortSpaces::own() {
  std::unique_ptr<SortSpace>& mine = spaces_[thread_number()];
  if (!mine) mine = std::make_unique<SortSpace>(n_);
  return *mine;
}

bool FewValues::find(std::span<const std::uint32_t> bits) {
  code_.resize(bits.size());
  return !bits.empty() && (find_two(bits) || find_whole(bits) || find_in_table(bits));
}

bool FewValues::find_two(std::span<const std::uint32_t> bits) {
  const std::size_t n = bits.size();
  const auto second = static_cast<std::size_t>(
      std::find_if(bits.begin(), bits.end(), [&](std::uint32_t b) { return b != bits[0]; }) - bits.begin());
  if (second == n || !are_two_values(bits.data(), n, bits[0], bits[second])) return false;
  const std::uint32_t low = std::min(bits[0], bits[second]), high = std::max(bits[0], bits[second]);
  const std::uint32_t ones = mark_others(bits.data(), n, low, code_.data());
  const auto some = static_cast<std::uint32_t>(second);
  rows_ = {static_cast<std::uint32_t>(n) - ones, ones};
  row_ = bits[0] == low ? std::vector<std::uint32_t>{0, some} : std::vector<std::uint32_t>{some, 0};
  used_ = {0, 1};
  n_missing_ = high == kMissing ? ones : 0;
  n_ranks_ = high == kMissing ? 1 : 2;
  rank_of_ = {0, high == kMissing ? kMissing : 1};
  return true;
}

bool FewValues::find_whole(std::span<const std::uint32_t> bits) {
  // As many codes as there are numbers of 16 bits, and not more than there are rows: the tables are cleared.
  constexpr std::size_t kMostWhole = std::size_t{1} << 16;
  const auto most = static_cast<std::int32_t>(std::min(kMostWhole, std::max(bits.size(), kPlaces)));
  std::int32_t low = 0;
  const std::int32_t n_codes = whole_codes(bits.data(), bits.size(), most, low);
  if (n_codes == 0) return false;
  write_offsets(bits.data(), bits.size(), low, code_.data());
  count(bits, n_codes);
  return true;
}

bool FewValues::find_in_table(std::span<const std::uint32_t> bits) {
  std::array<std::uint32_t, kPlaces> value;
  std::array<bool, kPlaces> is_full{};
  std::size_t n_full = 0;
  const auto place_of = [&](std::uint32_t b) {
    std::size_t place = b * 2654435761u >> 24;
    while (is_full[place] && value[place] != b) place = (place + 1) % kPlaces;
    n_full += !is_full[place];
    is_full[place] = true;
    value[place] = b;
    return static_cast<std::uint16_t>(place);
  };
  std::uint32_t before = ~bits[0];
  std::uint16_t place = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] != before) place = place_of(before = bits[i]);
    if (n_full > kMost) return false;
    code_[i] = place;
  }
  count(bits, kPlaces);
  return true;
}

// The rows of each code, and the codes by rank.
void FewValues::count(std::span<const std::uint32_t> bits, std::size_t n_codes) {
  rows_.assign(n_codes, 0);
  row_.resize(n_codes);
  rank_of_.resize(n_codes);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    ++rows_[code_[i]];
    row_[code_[i]] = static_cast<std::uint32_t>(i);
  }
  used_.clear();
  for (std::size_t code = 0; code < n_codes; ++code)
    if (rows_[code]) used_.push_back(static_cast<std::uint16_t>(code));
  const auto is_less = [&](std::uint16_t a, std::uint16_t b) { return bits[row_[a]] < bits[row_[b]]; };
  if (!std::is_sorted(used_.begin(), used_.end(), is_less)) std::sort(used_.begin(), used_.end(), is_less);
  for (std::size_t rank = 0; rank < used_.size(); ++rank) rank_of_[used_[rank]] = static_cast<std::uint32_t>(rank);
  n_ranks_ = static_cast<std::uint32_t>(used_.size());
  n_missing_ = 0;
  if (bits[row_[used_.back()]] != kMissing) return;
  --n_ranks_;
  n_missing_ = rows_[used_.back()];
  rank_of_[used_.back()] = kMissing;
}

const std::uint64_t* ranked_rows(const ColumnBits& bits, SortSpace& space) {
  std::uint64_t *pairs = space.pairs.get(), *other = space.other.get();
  if (!bits.narrow.empty()) {
    const std::size_t n = bits.narrow.size();
    for (std::size_t i = 0; i < n; ++i) pairs[i] = std::uint64_t{bits.narrow[i]} << 32 | i;
    pairs = sort_pairs(pairs, other, n);
    rank(pairs, n, [](std::uint64_t pair) { return static_cast<std::uint32_t>(pair >> 32); });
    return pairs;
  }
  const std::size_t n = bits.wide.size();
  const auto bits_of = [&](std::uint64_t pair) { return bits.wide[static_cast<std::uint32_t>(pair)]; };
  for (std::size_t i = 0; i < n; ++i) pairs[i] = (bits.wide[i] >> 32 << 32) | i;
  pairs = sort_pairs(pairs, other, n);
  // By their high halves they are sorted; few numbers have the same.
  for (std::size_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && pairs[end] >> 32 == pairs[begin] >> 32;) ++end;
    const auto is_less = [&](std::uint64_t a, std::uint64_t b) { return bits_of(a) < bits_of(b); };
    if (!std::is_sorted(pairs + begin, pairs + end, is_less)) std::stable_sort(pairs + begin, pairs + end, is_less);
  }
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
