// Sending rows down the trees of a forest.
//
// With AVX-512 they go by treelets. Elsewhere a node is packed into 8 to 16 bytes for the way down, and some rows go
// down a tree side by side, without a branch that could be guessed wrong: a row that has come to its leaf makes way for
// the next.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rows.hpp"
#include "tree/treelets.hpp"

namespace margrove::forest {

// The arrays of src/margrove/forest/packed.py: trees whose nodes lie depth first.
struct ForestView : tree::ThresholdTrees {
  std::span<const std::int64_t> leaf_start;  // (T + 1)
};

// What a forest's leaves predict.
struct LeafValues {
  std::span<const double> value;        // (rows, width)
  std::span<const std::int32_t> place;  // the row of each leaf; empty: leaf l has row l
  std::int64_t width;
};

// A forest packed for rows of one type.
class PackedTrees {
 public:
  virtual ~PackedTrees() = default;
  // The sum over the trees, in their order, of what they predict for each row. (n, width)
  virtual void sums(const AnyRows& rows, const LeafValues& values, int threads, double* out) const = 0;
  // The leaf of each row in each tree. (n, T)
  virtual void leaves(const AnyRows& rows, int threads, std::int32_t* out) const = 0;
};

// Rows of floats, or of doubles. The forest's arrays must outlive it.
std::unique_ptr<PackedTrees> pack_trees(const ForestView& forest, bool is_single, int threads);

}  // namespace margrove::forest
