#include "tree/treelets.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "dispatch.hpp"
#include "index.hpp"
#include "parallel.hpp"
#include "rounded_down.hpp"
#include "tree/sixteen.hpp"

namespace margrove::tree {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kVector = 16, kMostColumns = 256;

// Whether some number was rounded.
bool round_down(const float* from, float* to, std::int64_t size) {
  std::copy_n(from, size, to);
  return false;
}
// NaN counts.
MARGROVE_CLONES bool round_down(const double* from, float* to, std::int64_t size) {
  int n = 0;
  for (std::int64_t j = 0; j < size; ++j) {
    to[j] = rounded_down<float>(from[j]);
    n |= static_cast<double>(to[j]) != from[j];
  }
  return n != 0;
}

template <class T>
MARGROVE_INLINE bool find_missing(const T* cells, std::int64_t size) {
  int n = 0;
  for (std::int64_t i = 0; i < size; ++i) n |= cells[i] != cells[i];
  return n != 0;
}
MARGROVE_CLONES bool holds_missing(const float* cells, std::int64_t size) { return find_missing(cells, size); }
MARGROVE_CLONES bool holds_missing(const double* cells, std::int64_t size) { return find_missing(cells, size); }

// Where a treelet ends so far: a node, and the tests that lead there where they hold.
struct End {
  std::int64_t node;
  std::uint16_t left_of;
};

struct Walk {
  const Treelet* treelets;
  const float* cells;
  std::int64_t stride, width, size;  // width: floats that are read of a row
};

#ifdef MARGROVE_HAS_SIXTEEN

// The cells that the tests of a treelet look at, from a row of so many pairs of vectors. (Gathering them took twice as
// long, even from 256 columns.)
template <int pairs>
MARGROVE_SIXTEEN inline __m512 looked_up(const float* row, __m512i column) {
  __m512 found = _mm512_permutex2var_ps(_mm512_loadu_ps(row), column, _mm512_loadu_ps(row + kVector));
  const __m512i pair = _mm512_srli_epi32(column, 5);
  for (int p = 1; p < pairs; ++p) {
    const float* own = row + 2 * kVector * p;
    const __m512 here = _mm512_permutex2var_ps(_mm512_loadu_ps(own), column, _mm512_loadu_ps(own + kVector));
    found = _mm512_mask_mov_ps(found, _mm512_cmpeq_epi32_mask(pair, _mm512_set1_epi32(p)), here);
  }
  return found;
}

// All rows go through one treelet after the other. Rows with a cell that is rounded to a threshold are marked.
template <int pairs, bool is_rounded, bool has_missing>
MARGROVE_SIXTEEN void walk_down(const Walk& walk, std::int32_t* leaf, std::uint8_t* is_doubtful) {
  constexpr std::int64_t kRows = 256;  // on their way at a time
  std::int32_t row[kRows], at[kRows];
  for (std::int64_t begin = 0; begin < walk.size; begin += kRows) {
    const std::int64_t size = std::min(kRows, walk.size - begin);
    const float* cells = walk.cells + begin * walk.stride;
    for (std::int64_t i = 0; i < size; ++i) {
      row[i] = static_cast<std::int32_t>(i);
      at[i] = 0;
    }
    for (std::int64_t walking = size; walking > 0;) {
      std::int64_t going_on = 0;
      for (std::int64_t i = 0; i < walking; ++i) {
        const std::int32_t own = row[i];
        const Treelet& treelet = walk.treelets[at[i]];
        const __m256i column = _mm256_load_si256(reinterpret_cast<const __m256i*>(treelet.column));
        const __m512 x = looked_up<pairs>(cells + own * walk.stride, _mm512_cvtepu16_epi32(column));
        const __m512 threshold = _mm512_load_ps(treelet.threshold);
        unsigned fails = _mm512_cmp_ps_mask(x, threshold, _CMP_NLE_UQ);
        if constexpr (is_rounded) is_doubtful[begin + own] |= _mm512_cmp_ps_mask(x, threshold, _CMP_EQ_OQ) != 0;
        if constexpr (has_missing)
          fails &= ~(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) & static_cast<unsigned>(treelet.column[kTests]));
        const __m256i left_of = _mm256_load_si256(reinterpret_cast<const __m256i*>(treelet.left_of));
        const __mmask16 open = _mm256_testn_epi16_mask(left_of, _mm256_set1_epi16(static_cast<short>(fails)));
        const std::int32_t next = treelet.way[__builtin_ctz(open)];
        leaf[begin + own] = ~next;  // to be overwritten by those that go on
        row[going_on] = own;
        at[going_on] = next;
        going_on += next >= 0;
      }
      walking = going_on;
    }
  }
}

template <int pairs>
MARGROVE_SIXTEEN void walk_with(const Walk& walk, bool is_rounded, bool has_missing, std::int32_t* leaf,
                                std::uint8_t* is_doubtful) {
  if (is_rounded && has_missing) return walk_down<pairs, true, true>(walk, leaf, is_doubtful);
  if (is_rounded) return walk_down<pairs, true, false>(walk, leaf, is_doubtful);
  if (has_missing) return walk_down<pairs, false, true>(walk, leaf, is_doubtful);
  walk_down<pairs, false, false>(walk, leaf, is_doubtful);
}

void walk_any(const Walk& walk, bool is_rounded, bool has_missing, std::int32_t* leaf, std::uint8_t* is_doubtful) {
  switch (walk.width / (2 * kVector)) {
    case 1:
      return walk_with<1>(walk, is_rounded, has_missing, leaf, is_doubtful);
    case 2:
      return walk_with<2>(walk, is_rounded, has_missing, leaf, is_doubtful);
    case 4:
      return walk_with<4>(walk, is_rounded, has_missing, leaf, is_doubtful);
    default:
      walk_with<8>(walk, is_rounded, has_missing, leaf, is_doubtful);
  }
}

#else

void walk_any(const Walk&, bool, bool, std::int32_t*, std::uint8_t*) {}  // `suit` says no

#endif

std::vector<std::int32_t> tested_columns(const ThresholdTrees& trees) {
  std::vector<std::int32_t> columns;
  std::vector<std::uint8_t> is_tested;
  for (const std::int32_t j : trees.feature) {
    if (j < 0) continue;
    if (j >= length(is_tested)) is_tested.resize(static_cast<std::size_t>(j) + 1);
    is_tested[j] = true;
  }
  for (std::int64_t j = 0; j < length(is_tested); ++j)
    if (is_tested[j]) columns.push_back(static_cast<std::int32_t>(j));
  return columns;
}

}  // namespace

bool Treelets::suit(const ThresholdTrees& trees) {
  return has_sixteen() && length(tested_columns(trees)) <= kMostColumns;
}

Treelets::Treelets(const ThresholdTrees& trees, int threads)
    : trees_(trees), start_(static_cast<std::size_t>(trees.n_trees()) + 1) {
  columns_ = tested_columns(trees);
  is_in_place_ = columns_.empty() || columns_.back() < kMostColumns;
  const std::int64_t width = columns_.empty() ? 0 : is_in_place_ ? columns_.back() + 1 : length(columns_);
  stride_ = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(width, 2 * kVector))));
  std::vector<std::uint16_t> place(columns_.empty() ? 0 : static_cast<std::size_t>(columns_.back()) + 1);
  for (std::size_t c = 0; c < columns_.size(); ++c)
    place[columns_[c]] = static_cast<std::uint16_t>(is_in_place_ ? static_cast<std::size_t>(columns_[c]) : c);
  std::vector<std::vector<Treelet>> made(static_cast<std::size_t>(trees.n_trees()));
  parallel_for(length(made), threads, [&](std::int64_t t) { made[t] = cut(t, place); });
  for (std::size_t t = 0; t < made.size(); ++t) start_[t + 1] = start_[t] + length(made[t]);
  treelets_ = large_memory<Treelet>(static_cast<std::size_t>(start_.back()));
  for (std::size_t t = 0; t < made.size(); ++t) std::copy(made[t].begin(), made[t].end(), &treelets_[start_[t]]);
}

// The test with the largest tree below it is taken next, until there are fifteen.
std::vector<Treelet> Treelets::cut(std::int64_t t, const std::vector<std::uint16_t>& place) const {
  const std::int64_t first = trees_.start[t], n_nodes = trees_.start[t + 1] - first;
  const std::int32_t* feature = &trees_.feature[first];
  const std::int32_t* right = &trees_.right[first];
  const auto left = [&](std::int64_t i) { return trees_.left.empty() ? i + 1 : trees_.left[first + i]; };
  std::vector<std::int32_t> size(static_cast<std::size_t>(n_nodes), 1);  // of the tree below a node
  for (std::int64_t i = n_nodes; i-- > 0;)
    if (feature[i] >= 0) size[i] += size[left(i)] + size[right[i]];
  std::vector<Treelet> treelets;
  std::vector<std::int64_t> root{0};  // of each treelet
  for (std::size_t own = 0; own < root.size(); ++own) {
    Treelet treelet{};
    std::fill_n(treelet.threshold, kWays, kNan);
    std::array<End, kWays> end{End{root[own], 0}};
    int tests = 0;
    for (; tests < kTests; ++tests) {
      const auto largest = std::max_element(end.begin(), end.begin() + tests + 1,
                                            [&](const End& a, const End& b) { return size[a.node] < size[b.node]; });
      if (feature[largest->node] < 0) break;
      const auto [node, left_of] = *largest;
      treelet.threshold[tests] = rounded_down<float>(trees_.threshold[first + node]);
      treelet.column[tests] = place[feature[node]];
      const bool passes_missing = !trees_.missing_branch.empty() && trees_.missing_branch[first + node] == 0;
      treelet.column[kTests] |= static_cast<std::uint16_t>(passes_missing << tests);
      std::copy_backward(largest + 1, end.begin() + tests + 1, end.begin() + tests + 2);
      largest[0] = {left(node), static_cast<std::uint16_t>(left_of | 1u << tests)};
      largest[1] = {right[node], left_of};
    }
    for (int w = 0; w <= tests; ++w) {
      const auto [node, left_of] = end[w];
      treelet.left_of[w] = left_of;
      treelet.way[w] = feature[node] < 0 ? ~right[node] : static_cast<std::int32_t>(root.size());
      if (feature[node] >= 0) root.push_back(node);
    }
    treelets.push_back(treelet);
  }
  return treelets;
}

template <class T>
StagedRows Treelets::staged(const RowBlock<T>& block) const {
  StagedRows rows{nullptr, stride_, {}};
  if constexpr (std::is_same_v<T, float>)
    if (is_in_place_ && (block.size - 1) * block.d + stride_ <= block.readable) rows = {block.cells, block.d, {}};
  if (!rows.cells) {
    rows.own.resize(static_cast<std::size_t>(block.size * stride_));
    rows.cells = rows.own.data();
    for (std::int64_t i = 0; i < block.size; ++i) {
      float* to = rows.own.data() + i * stride_;
      if (is_in_place_) {
        rows.is_rounded |= round_down(block.row(i), to, std::min(block.d, stride_));
        continue;
      }
      for (std::size_t c = 0; c < columns_.size(); ++c)
        rows.is_rounded |= round_down(block.row(i) + columns_[c], to + c, 1);
    }
  }
  rows.has_missing = !trees_.missing_branch.empty() && holds_missing(block.cells, block.size * block.d);
  return rows;
}

template <class T>
std::int32_t Treelets::leaf_of(std::int64_t t, const T* row) const {
  std::int64_t at = trees_.start[t];
  while (trees_.feature[at] >= 0) {
    const auto x = static_cast<double>(row[trees_.feature[at]]);
    const bool passes_missing = !trees_.missing_branch.empty() && trees_.missing_branch[at] == 0;
    const bool passes = x <= trees_.threshold[at] || (x != x && passes_missing);
    const std::int64_t left = trees_.left.empty() ? at + 1 : trees_.start[t] + trees_.left[at];
    at = passes ? left : trees_.start[t] + trees_.right[at];
  }
  return trees_.right[at];
}

// A cell that was rounded to the same float as a threshold may lie on either side of it.
template <class T>
void Treelets::walk(std::int64_t t, const StagedRows& rows, const RowBlock<T>& block, std::int32_t* leaf) const {
  std::vector<std::uint8_t> is_doubtful(rows.is_rounded ? static_cast<std::size_t>(block.size) : 0);
  walk_any({&treelets_[start_[t]], rows.cells, rows.stride, stride_, block.size}, rows.is_rounded, rows.has_missing,
           leaf, is_doubtful.data());
  for (std::size_t i = 0; i < is_doubtful.size(); ++i)
    if (is_doubtful[i]) leaf[i] = leaf_of(t, block.row(static_cast<std::int64_t>(i)));
}

template StagedRows Treelets::staged(const RowBlock<float>&) const;
template StagedRows Treelets::staged(const RowBlock<double>&) const;
template void Treelets::walk(std::int64_t, const StagedRows&, const RowBlock<float>&, std::int32_t*) const;
template void Treelets::walk(std::int64_t, const StagedRows&, const RowBlock<double>&, std::int32_t*) const;

}  // namespace margrove::tree
