#include "forest/treelets.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "dispatch.hpp"
#include "index.hpp"
#include "parallel.hpp"
#include "rounded_down.hpp"
#include "tree/wide.hpp"

#ifdef MARGROVE_HAS_SIXTEEN
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // GCC's own header: undefined lanes are meant to be (bug 105593)
#include <immintrin.h>
#define MARGROVE_SIXTEEN __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,popcnt,bmi2")))
#endif

namespace margrove::forest {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kVector = 16, kMostColumns = 256;

// Whether some number was rounded; NaN counts.
MARGROVE_CLONES bool round_down(const double* from, float* to, std::int64_t size) {
  int n = 0;
  for (std::int64_t j = 0; j < size; ++j) {
    to[j] = rounded_down<float>(from[j]);
    n |= static_cast<double>(to[j]) != from[j];
  }
  return n != 0;
}

// Where a treelet ends so far: a node, and the tests that lead there where they hold.
struct End {
  std::int64_t node;
  std::uint16_t left_of;
};

#ifdef MARGROVE_HAS_SIXTEEN

// What a walk needs to know beside the rows.
struct Walk {
  const Treelet* treelets;
  const float* cells;
  std::int64_t stride, size;
};

// The cells that the tests of a treelet look at, from a row of so many pairs of vectors. (Gathering them took twice as
// long, even from 256 columns.)
template <int pairs>
MARGROVE_SIXTEEN inline __m512 looked_up(const float* row, __m512i column) {
  __m512 found = _mm512_permutex2var_ps(_mm512_load_ps(row), column, _mm512_load_ps(row + kVector));
  const __m512i pair = _mm512_srli_epi32(column, 5);
  for (int p = 1; p < pairs; ++p) {
    const float* own = row + 2 * kVector * p;
    const __m512 here = _mm512_permutex2var_ps(_mm512_load_ps(own), column, _mm512_load_ps(own + kVector));
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
  switch (walk.stride / (2 * kVector)) {
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

struct Walk {
  const Treelet* treelets;
  const float* cells;
  std::int64_t stride, size;
};
void walk_any(const Walk&, bool, bool, std::int32_t*, std::uint8_t*) {}  // `suit` says no

#endif

std::vector<std::int32_t> tested_columns(const ForestView& forest) {
  std::vector<std::int32_t> columns;
  std::vector<std::uint8_t> is_tested;
  for (const std::int32_t j : forest.feature) {
    if (j < 0) continue;
    if (j >= length(is_tested)) is_tested.resize(static_cast<std::size_t>(j) + 1);
    is_tested[j] = true;
  }
  for (std::int64_t j = 0; j < length(is_tested); ++j)
    if (is_tested[j]) columns.push_back(static_cast<std::int32_t>(j));
  return columns;
}

}  // namespace

bool Treelets::suit(const ForestView& forest) {
  return tree::has_sixteen() && length(tested_columns(forest)) <= kMostColumns;
}

Treelets::Treelets(const ForestView& forest, int threads)
    : forest_(forest), start_(static_cast<std::size_t>(forest.n_trees()) + 1) {
  const std::vector<std::int32_t> columns = tested_columns(forest);
  n_columns_ = length(columns);
  stride_ = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n_columns_, 2 * kVector)));
  std::vector<std::uint16_t> place(columns.empty() ? 0 : static_cast<std::size_t>(columns.back()) + 1);
  for (std::int64_t c = 0; c < n_columns_; ++c) {
    place[columns[c]] = static_cast<std::uint16_t>(c);
    if (c == 0 || columns[c] != columns[c - 1] + 1) runs_.push_back({columns[c], c, 0});
    ++runs_.back().size;
  }
  std::vector<std::vector<Treelet>> trees(static_cast<std::size_t>(forest.n_trees()));
  parallel_for(length(trees), threads, [&](std::int64_t t) { trees[t] = cut(t, place); });
  for (std::size_t t = 0; t < trees.size(); ++t) start_[t + 1] = start_[t] + length(trees[t]);
  treelets_ = large_memory<Treelet>(static_cast<std::size_t>(start_.back()));
  for (std::size_t t = 0; t < trees.size(); ++t) std::copy(trees[t].begin(), trees[t].end(), &treelets_[start_[t]]);
}

// The test with the largest tree below it is taken next, until there are fifteen.
std::vector<Treelet> Treelets::cut(std::int64_t t, const std::vector<std::uint16_t>& place) const {
  const std::int64_t first = forest_.start[t], n_nodes = forest_.start[t + 1] - first;
  const std::int32_t* feature = &forest_.feature[first];
  const std::int32_t* right = &forest_.right[first];
  std::vector<std::int32_t> past(static_cast<std::size_t>(n_nodes));  // the first node behind those below a node
  for (std::int64_t i = n_nodes; i-- > 0;) past[i] = feature[i] < 0 ? static_cast<std::int32_t>(i) + 1 : past[right[i]];
  std::vector<Treelet> treelets;
  std::vector<std::int64_t> root{0};  // of each treelet
  for (std::size_t own = 0; own < root.size(); ++own) {
    Treelet treelet{};
    std::fill_n(treelet.threshold, kWays, kNan);
    std::array<End, kWays> end{End{root[own], 0}};
    int tests = 0;
    for (; tests < kTests; ++tests) {
      const auto size = [&](const End& one) { return past[one.node] - one.node; };
      const auto largest = std::max_element(end.begin(), end.begin() + tests + 1,
                                            [&](const End& a, const End& b) { return size(a) < size(b); });
      if (feature[largest->node] < 0) break;
      const auto [node, left_of] = *largest;
      treelet.threshold[tests] = rounded_down<float>(forest_.threshold[first + node]);
      treelet.column[tests] = place[feature[node]];
      const bool passes_missing = !forest_.missing_branch.empty() && forest_.missing_branch[first + node] == 0;
      treelet.column[kTests] |= static_cast<std::uint16_t>(passes_missing << tests);
      std::copy_backward(largest + 1, end.begin() + tests + 1, end.begin() + tests + 2);
      largest[0] = {node + 1, static_cast<std::uint16_t>(left_of | 1u << tests)};
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
StagedRows Treelets::staged(const T* cells, std::int64_t d, std::int64_t size) const {
  StagedRows rows{large_memory<float>(static_cast<std::size_t>(size * stride_))};
  bool has_missing = false;
  for (std::int64_t i = 0; i < size; ++i) {
    float* own = rows.cells.get() + i * stride_;  // what lies behind its columns is not looked at
    for (const auto& [from, to, n] : runs_) {
      if constexpr (std::is_same_v<T, float>)
        std::copy_n(cells + i * d + from, n, own + to);
      else
        rows.is_rounded |= round_down(cells + i * d + from, own + to, n);
    }
    if (!forest_.missing_branch.empty())
      has_missing |= std::any_of(own, own + n_columns_, [](float x) { return x != x; });
  }
  rows.has_missing = has_missing;
  return rows;
}

template <class T>
std::int32_t Treelets::leaf_of(std::int64_t t, const T* row) const {
  std::int64_t at = forest_.start[t];
  while (forest_.feature[at] >= 0) {
    const auto x = static_cast<double>(row[forest_.feature[at]]);
    const bool passes_missing = !forest_.missing_branch.empty() && forest_.missing_branch[at] == 0;
    const bool passes = x <= forest_.threshold[at] || (x != x && passes_missing);
    at = passes ? at + 1 : forest_.start[t] + forest_.right[at];
  }
  return forest_.right[at];
}

// A cell that was rounded to the same float as a threshold may lie on either side of it.
template <class T>
void Treelets::walk(std::int64_t t, const StagedRows& rows, const T* cells, std::int64_t d, std::int64_t size,
                    std::int32_t* leaf) const {
  std::vector<std::uint8_t> is_doubtful(rows.is_rounded ? static_cast<std::size_t>(size) : 0);
  walk_any({&treelets_[start_[t]], rows.cells.get(), stride_, size}, rows.is_rounded, rows.has_missing, leaf,
           is_doubtful.data());
  for (std::size_t i = 0; i < is_doubtful.size(); ++i)
    if (is_doubtful[i]) leaf[i] = leaf_of(t, cells + static_cast<std::int64_t>(i) * d);
}

template StagedRows Treelets::staged(const float*, std::int64_t, std::int64_t) const;
template StagedRows Treelets::staged(const double*, std::int64_t, std::int64_t) const;
template void Treelets::walk(std::int64_t, const StagedRows&, const float*, std::int64_t, std::int64_t,
                             std::int32_t*) const;
template void Treelets::walk(std::int64_t, const StagedRows&, const double*, std::int64_t, std::int64_t,
                             std::int32_t*) const;

}  // namespace margrove::forest
