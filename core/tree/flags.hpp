// Columns of few values as flags: one for each test, set in the rows that go left. 64 tests, of one column or of
// several that follow each other, share a word for each row. What a node's tests leave on their left is counted for all
// of them at once, class by class; no list is walked or partitioned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "large_memory.hpp"
#include "tree/column.hpp"

namespace margrove::tree {

struct FlagGroup {
  static constexpr std::uint32_t kFlags = 64;
  struct Member {
    std::uint32_t column, first;     // the flag of its first test, which cuts behind its least value; the others follow
    std::uint64_t flags;             // all of its flags in a word
    std::vector<std::uint32_t> row;  // one of each of its values, ascending
    std::uint32_t n_tests() const { return static_cast<std::uint32_t>(row.size()) - 1; }
  };
  std::vector<Member> members;
  std::uint32_t n_flags = 0;
  std::uint32_t is_further[kFlags] = {};  // all bits if the flag before is of the same column, else 0
  LargeMemory<std::uint64_t> word;        // (n)
  std::uint64_t inverse = 0;              // flags to be turned around once all are written

  // Where in a word a flag is. So 64 flags are counted as eight numbers of 8 bytes: see `FlagCounts::add_up`.
  static std::uint32_t bit(std::uint32_t flag) { return 8 * (flag % 8) + flag / 8; }
  void make_words(std::int64_t n);  // no flag set
  // Takes a column in. `row`: one of each of its values.
  void add(std::uint32_t column, std::vector<std::uint32_t> row);
  const Member& member(std::uint32_t column) const {
    return *std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.column == column; });
  }
};

// Which of these columns are floats side by side in the rows of a table and have, as far as some rows tell, two values
// at most: in runs of at least 8, no others.
std::vector<bool> seem_two_valued(std::span<const Column> columns, std::int64_t n);
void drop_short_runs(std::vector<bool>& is_two);

// Flags of at most 64 such columns, the first of which is number `first`: no column is fetched on its own. Returns how
// many columns there are, or the place of one that has more values.
std::size_t flag_two_values(std::span<const Column> columns, std::int64_t n, std::size_t first, FlagGroup& group);

// What the tests of a group leave on their left, at a node.
class FlagCounts {
 public:
  // Room for `size` words, to be written before `count`.
  std::uint64_t* words(std::uint32_t size);
  // Of rows that lie class by class: `seen` of each class. Scores tests under gini: D² / (n_l n_r) if `is_two` (see
  // TwoClasses in scan.cpp), else Σ l_k² / n_l + Σ r_k² / n_r, and infinity under other criteria.
  void count(const FlagGroup& group, std::span<const std::uint32_t> seen, std::int64_t min_rows, bool is_gini,
             bool is_two);

  std::uint32_t left(std::uint32_t flag) const { return left_[flag]; }  // rows
  double score(std::uint32_t flag) const { return score_[flag]; }       // negative where a branch has too few rows
  double best() const { return best_; }
  // Whether a test of the column has at least this score.
  bool has_above(const FlagGroup::Member& member, double bar) const {
    const double* first = score_ + member.first;
    return std::any_of(first, first + member.n_tests(), [bar](double score) { return score >= bar; });
  }
  std::uint32_t n_tests() const { return n_tests_; }  // that tell rows of the node apart, without repetitions
  bool is_two() const { return is_two_; }
  std::span<const std::uint32_t> classes() const { return classes_; }  // that occur in the node
  std::uint32_t count_of(std::size_t k, std::uint32_t flag) const { return counts_[k * FlagGroup::kFlags + flag]; }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> classes_, sizes_, counts_;  // of those classes: number, rows; (classes, flags)
  std::uint32_t left_[FlagGroup::kFlags], n_tests_ = 0;
  double score_[FlagGroup::kFlags], best_ = -1;
  bool is_two_ = false;
};

}  // namespace margrove::tree
