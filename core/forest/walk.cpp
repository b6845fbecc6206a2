#include "forest/walk.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "index.hpp"
#include "large_memory.hpp"
#include "parallel.hpp"
#include "rounded_down.hpp"

namespace margrove::forest {
namespace {

// Cells of the rows of a turn: with a tree they stay in the second cache, 1 MiB of most processors.
constexpr std::int64_t kCellBytes = std::int64_t{1} << 19;

// How a node is packed. A word holds the number that `right` is, above it the column, whether a missing cell goes left,
// and whether it is a leaf.
struct Layout {
  int number_bits, column_bits;
};

template <class Word>
constexpr int kWordBits = 8 * sizeof(Word);

template <class T, class Word>
struct Step {
  T threshold;
  Word word;
};

// The next node of each row on its way: `first` is where its cells begin. A leaf leads to itself. Scalars: vectors that
// gather from as many places took twice as long (measured on an AMD EPYC of 2024).
template <class T, class Word>
MARGROVE_INLINE void step_all(const Step<T, Word>* steps, const T* cells, const std::int32_t* first, std::int32_t* at,
                              std::int64_t size, int shift, Word number_mask, Word column_mask) {
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int32_t node = at[i];
    const Step<T, Word> own = steps[node];
    const T x = cells[first[i] + static_cast<std::int64_t>(own.word >> shift & column_mask)];
    const auto number = static_cast<std::int32_t>(own.word & number_mask);
    const std::int32_t goes_left = -static_cast<std::int32_t>(x <= own.threshold);
    at[i] = number ^ ((number ^ (node + 1)) & goes_left);
  }
}

// Each node packed into 8 to 16 bytes.
template <class T, class Word>
class Steps {
 public:
  Steps(const ForestView& forest, Layout layout, int threads)
      : number_mask_((Word{1} << layout.number_bits) - 1),
        column_shift_(layout.number_bits),
        column_mask_((Word{1} << layout.column_bits) - 1),
        has_missing_(!forest.missing_branch.empty()),
        start_(forest.start.begin(), forest.start.end()),
        number_(forest.right.data()),
        steps_(large_memory<Step<T, Word>>(forest.feature.size())) {
    parallel_for(forest.n_trees(), threads, [&](std::int64_t t) {
      for (std::int64_t i = start_[t]; i < start_[t + 1]; ++i) pack(forest, i, i - start_[t]);
    });
  }

  // Whether rows must go down one by one: cells are missing, and do not all go right, or are too many to count.
  bool staged(const tree::RowBlock<T>& block) const {
    constexpr std::int64_t kMostColumns = std::int64_t{1} << 21;  // cells are counted in 32 bits
    const auto is_missing = [](T x) { return x != x; };
    return block.d > kMostColumns || (has_missing_ && std::any_of(block.cells, block.row(block.size), is_missing));
  }

  void walk(std::int64_t t, bool is_one_by_one, const tree::RowBlock<T>& block, std::int32_t* leaf) const {
    if (is_one_by_one) return walk_with_missing(t, block.cells, block.d, block.size, leaf);
    for (std::int64_t begin = 0; begin < block.size; begin += kRows)
      walk_rows(t, block.row(begin), block.d, std::min(kRows, block.size - begin), leaf + begin);
  }

 private:
  static constexpr std::int64_t kRows = 512;  // on their way at a time: what is kept of them, 6 KiB, stays in L1
  static constexpr Word kLeaf = Word{1} << (kWordBits<Word> - 1), kMissingLeft = kLeaf >> 1;

  void pack(const ForestView& forest, std::int64_t i, std::int64_t place) {
    if (forest.feature[i] < 0) {
      steps_[i] = {std::numeric_limits<T>::quiet_NaN(), static_cast<Word>(place) | kLeaf};  // no cell is at most NaN
      return;
    }
    const bool is_left = has_missing_ && forest.missing_branch[i] == 0;
    const Word column = static_cast<Word>(forest.feature[i]) << column_shift_;
    steps_[i] = {rounded_down<T>(forest.threshold[i]),
                 static_cast<Word>(forest.right[i]) | column | (is_left ? kMissingLeft : 0)};
  }

  // All rows take some steps; those that are not at a leaf by then go on, and so on.
  void walk_rows(std::int64_t t, const T* cells, std::int64_t d, std::int64_t size, std::int32_t* leaf) const {
    constexpr int kSteps = 4;  // between two looks at which rows have arrived
    std::int32_t at[kRows], first[kRows], row[kRows];
    const Step<T, Word>* steps = steps_.get() + start_[t];
    const std::int32_t* number = number_ + start_[t];
    for (std::int64_t i = 0; i < size; ++i) {
      at[i] = 0;
      row[i] = static_cast<std::int32_t>(i);
      first[i] = static_cast<std::int32_t>(i * d);
    }
    for (std::int64_t walking = size; walking > 0;) {
      for (int s = 0; s < kSteps; ++s)
        step_all(steps, cells, first, at, walking, column_shift_, number_mask_, column_mask_);
      std::int64_t going_on = 0;
      for (std::int64_t i = 0; i < walking; ++i) {
        const std::int32_t node = at[i], own = row[i], own_first = first[i];
        leaf[own] = number[node];  // to be overwritten by those that go on
        at[going_on] = node;
        row[going_on] = own;
        first[going_on] = own_first;
        going_on += (steps[node].word & kLeaf) == 0;
      }
      walking = going_on;
    }
  }

  // The same, row by row, where a cell is missing.
  void walk_with_missing(std::int64_t t, const T* cells, std::int64_t d, std::int64_t size, std::int32_t* leaf) const {
    const Step<T, Word>* steps = steps_.get() + start_[t];
    for (std::int64_t i = 0; i < size; ++i) {
      std::int64_t at = 0;
      while (!(steps[at].word & kLeaf)) {
        const T x = cells[i * d + static_cast<std::int64_t>(steps[at].word >> column_shift_ & column_mask_)];
        const bool goes_left = x <= steps[at].threshold || (x != x && (steps[at].word & kMissingLeft));
        at = goes_left ? at + 1 : static_cast<std::int64_t>(steps[at].word & number_mask_);
      }
      leaf[i] = number_[start_[t] + at];
    }
  }

  Word number_mask_;
  int column_shift_;
  Word column_mask_;
  bool has_missing_;
  std::vector<std::int64_t> start_;
  const std::int32_t* number_;  // of each leaf within its tree
  LargeMemory<Step<T, Word>> steps_;
};

// What all forests do with rows: a block of them at a time goes down one tree after the other. `Trees` says how.
template <class T, class Trees>
class ByBlocks : public PackedTrees {
 public:
  ByBlocks(const ForestView& forest, Trees trees)
      : leaf_start_(forest.leaf_start.begin(), forest.leaf_start.end()), trees_(std::move(trees)) {}

  void sums(const AnyRows& rows, const LeafValues& values, int threads, double* out) const override {
    const std::int64_t width = values.width;
    std::fill_n(out, std::visit([](const auto& view) { return view.n; }, rows) * width, 0.0);
    walk_all(rows, threads, [&](std::int64_t t, std::int64_t begin, std::int64_t size, const std::int32_t* leaf) {
      double* own = out + begin * width;
      const std::int32_t* place = values.place.empty() ? nullptr : values.place.data() + leaf_start_[t];
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t row = place ? place[leaf[i]] : leaf_start_[t] + leaf[i];
        add(values.value.data() + row * width, width, row, place != nullptr, own + i * width);
      }
    });
  }

  void leaves(const AnyRows& rows, int threads, std::int32_t* out) const override {
    const std::int64_t n_trees = length(leaf_start_) - 1;
    walk_all(rows, threads, [&](std::int64_t t, std::int64_t begin, std::int64_t size, const std::int32_t* leaf) {
      for (std::int64_t i = 0; i < size; ++i) out[(begin + i) * n_trees + t] = leaf[i];
    });
  }

 private:
  // The shares of a pure leaf, which are the first, are 1 and else 0.
  MARGROVE_INLINE static void add(const double* value, std::int64_t width, std::int64_t row, bool has_shares,
                                  double* sum) {
    constexpr std::int64_t kFew = 4;  // classes, which are added without a look
    if (has_shares && width > kFew && row < width) {
      sum[row] += 1;
      return;
    }
    for (std::int64_t k = 0; k < width; ++k) sum[k] += value[k];
  }

  // use(tree, the first row, how many, the leaf of each)
  template <class Use>
  void walk_all(const AnyRows& rows, int threads, Use use) const {
    for_blocks(rows, threads, [&](std::int64_t begin, const tree::RowBlock<T>& block) {
      std::vector<std::int32_t> leaf(block.size);
      const auto staged = trees_.staged(block);
      for (std::int64_t t = 0; t + 1 < length(leaf_start_); ++t) {
        trees_.walk(t, staged, block, leaf.data());
        use(t, begin, block.size, leaf.data());
      }
    });
  }

  // body(the first row, the block), a block of rows at a time.
  template <class Body>
  void for_blocks(const AnyRows& rows, int threads, Body body) const {
    std::visit(
        [&](const auto& view) {
          using Rows = std::decay_t<decltype(view)>;
          if constexpr (std::is_same_v<typename Rows::value_type, T>) {
            const std::int64_t bytes = std::max<std::int64_t>(1, view.d) * static_cast<std::int64_t>(sizeof(T));
            const std::int64_t some = std::clamp<std::int64_t>(kCellBytes / bytes, 64, 4096);
            parallel_for((view.n + some - 1) / some, threads, [&](std::int64_t p) {
              const std::int64_t begin = p * some, size = std::min(some, view.n - begin);
              with_block(view, begin, size, [&](const tree::RowBlock<T>& block) { body(begin, block); });
            });
          }
        },
        rows);
  }

  template <class Use>
  static void with_block(const DenseRows<T>& rows, std::int64_t begin, std::int64_t size, Use use) {
    use(tree::RowBlock<T>{rows.row(begin), rows.d, size, (rows.n - begin) * rows.d});
  }
  // Sparse rows are laid out in full.
  template <class Use>
  static void with_block(const CsrRows<T>& rows, std::int64_t begin, std::int64_t size, Use use) {
    std::vector<T> cells(size * rows.d);
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t k = rows.start[begin + i]; k < rows.start[begin + i + 1]; ++k)
        cells[i * rows.d + rows.column[k]] = rows.data[k];
    use(tree::RowBlock<T>{cells.data(), rows.d, size, length(cells)});
  }

  std::vector<std::int64_t> leaf_start_;
  Trees trees_;
};

template <class T, class Trees>
std::unique_ptr<PackedTrees> by_blocks(const ForestView& forest, Trees trees) {
  return std::make_unique<ByBlocks<T, Trees>>(forest, std::move(trees));
}

}  // namespace

std::unique_ptr<PackedTrees> pack_trees(const ForestView& forest, bool is_single, int threads) {
  if (tree::Treelets::suit(forest)) {
    tree::Treelets trees(forest, threads);
    return is_single ? by_blocks<float>(forest, std::move(trees)) : by_blocks<double>(forest, std::move(trees));
  }
  std::int64_t most_nodes = 1;
  for (std::int64_t t = 0; t < forest.n_trees(); ++t)
    most_nodes = std::max(most_nodes, forest.start[t + 1] - forest.start[t]);
  std::int32_t most_column = 1;
  for (const std::int32_t column : forest.feature) most_column = std::max(most_column, column);
  const Layout layout{static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most_nodes))),
                      static_cast<int>(std::bit_width(static_cast<std::uint32_t>(most_column)))};
  const bool is_narrow = layout.number_bits + layout.column_bits + 2 <= 32;
  if (is_single && is_narrow) return by_blocks<float>(forest, Steps<float, std::uint32_t>(forest, layout, threads));
  if (is_single) return by_blocks<float>(forest, Steps<float, std::uint64_t>(forest, layout, threads));
  return by_blocks<double>(forest, Steps<double, std::uint64_t>(forest, layout, threads));
}

}  // namespace margrove::forest
