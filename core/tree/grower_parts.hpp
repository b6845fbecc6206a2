// What a grower is made of, for the files that share it: grower.cpp grows the tree, branching.cpp sends the rows of a
// node to its branches, searching.cpp finds the test of a node.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tree/grower.hpp"
#include "tree/partition.hpp"
#include "tree/small.hpp"

namespace margrove::tree {

// Cells of a node: with fewer, threads cost more than they bring. At 1.1 ns a cell (measured on a prototype) 45 µs.
constexpr double kSharedWork = 40000;

// A node's piece of a column's list. Column d stands for the list of all rows. Of columns with flags their group has
// one, under its first column.
struct Grower::Range {
  std::uint32_t column, begin, size;
};

struct Grower::Open : OpenNode {
  std::vector<Range> ranges;  // of the columns that are not constant here
  Range rows{};               // of the list of all rows, if there is one
  bool is_small = false;      // few rows: `SmallTrees` finds its test and grows the nodes below
};

struct Grower::Space {
  ScanSpace scan;
  RowMarks marks;
  struct Run {
    std::uint32_t branch, begin, end;
  };
  std::vector<Run> runs;  // of the tested column's piece
  std::vector<std::uint32_t> spare, branch_of_row, ends, marked;
  std::vector<Range> parts;
  Candidate candidate;
  FlagCounts counts;
  CodedSums sums;
  std::vector<Candidate> of_block;
  std::vector<double> floors;  // of each branch of a shared node: what this thread knows a column must surpass
  std::optional<SmallTrees> small;
  Job* job = nullptr;
  explicit Space(std::int64_t n) : marks(n), spare(2 * (n + 16)) {}
};

struct Grower::Job {
  std::vector<Open> stack;
  Output output;
  std::int64_t parent;
  std::uint32_t branch;
};

// Where the rows of a node go: those of one branch, `implied`, are known by not being marked. With two branches rows
// are marked, with more they are numbered, in the order of `place`: the implied branch is number 0.
struct Grower::Branches {
  std::uint32_t count = 2, implied = 0;
  std::uint32_t column = 0, left = 0;  // of a threshold, the tested column's own piece: its left rows come first ...
  bool is_in_place = false;            // ... unless missing cells, which stand behind, go left
  std::uint32_t only = 2;              // of two branches, the only one whose rows are still wanted; 2: both are
  std::uint32_t place(std::uint32_t b) const { return b == implied ? 0 : b < implied ? b + 1 : b; }
};

}  // namespace margrove::tree
