// Some columns of a node of few rows side by side: their cells are sorted by a network of exchanges, and their tests
// scored, in the lanes of vectors. A cell is a rank above what its row carries, class << count bits | draws.
#pragma once

#include <cstdint>
#include <span>

namespace margrove::forest {

// The most rows of such a node, and where the target is a number: there a cell carries the place of its row, a byte.
constexpr std::uint32_t kMostLaneRows = 2048, kMostNumberRows = 256;
constexpr std::uint32_t kMostLanes = 16;
constexpr std::size_t kMostLaneClasses = 16;
// Of draws: with more, 32 bits do not hold the products, and a float not the squares of more than two classes.
constexpr std::int64_t kMostLaneWeight = 4000;
// Up to so many draws the scores are fractions of whole numbers that a float holds, also once they are
// cross-multiplied.
constexpr std::int64_t kExactWeight = 32;

struct LaneNode {
  std::uint32_t size;   // rows
  std::uint32_t lanes;  // 8 or 16
  std::int32_t min_rows;
  int count_bits, load_bits;
  std::int32_t weight;                    // of all rows
  std::span<const std::uint32_t> labels;  // the classes that occur, ascending, ...
  std::span<const std::int32_t> totals;   // ... and their weights
};

// The best test of each lane: its score is num / den, of two classes D² / (w_l w_r), of more
// Σ l_k² / w_l + Σ r_k² / w_r; num is -1 where there is none. It cuts behind the row `at`.
// Of the rows of such a node where the target is a number, by their places: weights, w (y − mean), and all weights.
constexpr int kLanePlaceBits = 8;
static_assert(kMostNumberRows <= 1u << kLanePlaceBits);
struct NumberRows {
  alignas(64) float weight[kMostNumberRows], term[kMostNumberRows];
  float all;
};

struct LaneScores {
  alignas(64) float num[kMostLanes], den[kMostLanes];
  alignas(64) std::int32_t at[kMostLanes];
};

// Sorts the cells (size, lanes), and scores their tests.
void sort_and_score(std::uint32_t* cells, const LaneNode& node, LaneScores& scores);
// The same of kMostLanes columns where the target is a number: cells carry the places of their rows.
void sort_and_score_numbers(std::uint32_t* cells, const LaneNode& node, const NumberRows& rows, LaneScores& scores);
// Sorts them alone.
void sort_lanes(std::uint32_t* cells, std::uint32_t size, std::uint32_t lanes);

}  // namespace margrove::forest
