// Columns of few values where rows have weights: what the rows of each value weigh, class by class, is added up row by
// row, and every test of a column is judged by these sums. No list is walked or partitioned. The weights of a node are
// whole numbers (weighted.hpp), so the sums are those of the lists, to the last bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/lists.hpp"
#include "tree/scan.hpp"

namespace margrove::tree {

// Columns that follow each other. Of each row the *slots* are known, one for each column: the place of the row's value
// among the sums. Rows whose value is the column's mode have none: the mode's sums are what the others leave.
struct CodedBlock {
  struct Member {
    std::uint32_t column, first, n_keys, mode;  // first: the slot of key 0; mode: kNoMode if there is none
    std::vector<std::uint32_t> row;             // one of each key, kModeRow of the mode
  };
  std::vector<Member> members;
  std::uint32_t n_slots = 0;
  std::vector<std::uint32_t> begin, slot;  // of row i: slot[begin[i] .. begin[i + 1])

  const Member& member(std::uint32_t column) const { return members[column - members[0].column]; }
  double per_row() const { return static_cast<double>(slot.size()) / static_cast<double>(begin.size() - 1); }
};

// The sums of a block at a node.
struct CodedSums {
  std::vector<std::int64_t> weight;  // (slots, K)
  std::vector<std::uint32_t> rows;   // (slots), only where branches need more than one row
  bool is_listed = false;            // a node of few rows: sorted pairs of slot and tag in place of these
  std::vector<std::uint64_t> pairs;
  std::vector<std::uint32_t> key, tag;          // of one column, from the pairs
  std::vector<std::int64_t> left, left_weight;  // of one column, up to each key: (keys, K), (keys)
  std::vector<double> limit;                    // that the score of the test behind each key cannot surpass
};

class Coded {
 public:
  Coded(const Lists& lists, std::int64_t n, std::size_t n_classes, int threads);
  // The block that a column is in, or null.
  const CodedBlock* block_of(std::size_t column) const {
    return block_of_[column] < 0 ? nullptr : &blocks_[block_of_[column]];
  }
  // Adds up a node's rows ...
  void add_up(const CodedBlock& block, const ScanRules& rules, const NodeSums& node,
              std::span<const std::uint32_t> tags, CodedSums& sums) const;
  // ... after which the best test of one of its columns can be asked for: `scan`.
  void search(const CodedBlock::Member& member, const ScanRules& rules, const NodeSums& node, double floor,
              CodedSums& sums, ScanSpace& space, Candidate& found) const;

 private:
  void add_columns(CodedBlock& block, std::int64_t n);

  const Lists& lists_;
  std::size_t n_classes_;
  std::vector<CodedBlock> blocks_;
  std::vector<std::int32_t> block_of_;  // of each column; -1: it has a list
};

// Whether a row's value of a column is one of the keys up to `cut`.
inline bool is_left(const CodedBlock& block, const CodedBlock::Member& member, std::uint32_t cut, std::uint32_t row) {
  bool has_slot = false, is_below = false;
  for (std::uint32_t i = block.begin[row]; i < block.begin[row + 1]; ++i) {
    const std::uint32_t key = block.slot[i] - member.first;  // wraps around below the first
    has_slot |= key < member.n_keys;
    is_below |= key <= cut;
  }
  return has_slot ? is_below : member.mode <= cut;
}

}  // namespace margrove::tree
