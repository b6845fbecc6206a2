#include <algorithm>
#include <numeric>

#include "index.hpp"
#include "tree/grower_parts.hpp"

namespace margrove::tree {
namespace {

// Four sums side by side: each would wait for the last addition to it.
void add_weighted_two(const ScanRules& rules, NodeSums& sums, const std::uint32_t* tag, std::uint32_t size) {
  double all[4] = {}, ones[4] = {};
  std::uint32_t seen = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t k = tag[i] & 1;
    const double w = rules.weight[tag[i] >> rules.tags.shift];
    all[i & 3] += w;
    ones[i & 3] += k ? w : 0.0;
    seen += k;
  }
  const double w = all[0] + all[1] + all[2] + all[3], w1 = ones[0] + ones[1] + ones[2] + ones[3];
  // What is left of all for class 0 is rounding where it has no rows, and may be where it has few.
  double zeros = w - w1;
  if (zeros < 1e-3 * w) {
    zeros = 0;
    for (std::uint32_t i = 0; i < size; ++i)
      if (!(tag[i] & 1)) zeros += rules.weight[tag[i] >> rules.tags.shift];
  }
  sums.sum[0] += zeros;
  sums.sum[1] += w1;
  sums.weight += zeros + w1;
  sums.seen[0] += size - seen;
  sums.seen[1] += seen;
}

}  // namespace

// Finds out where the rows go, marks them, and adds up the children.
Grower::Branches Grower::branch_out(const Open& node, Space& space, std::vector<Open>& children) const {
  if (const FlagGroup* group = lists_->group_of(node.column)) return branch_by_flag(node, *group, space, children);
  if (const CodedBlock* block = block_of({node.column, 0, 0})) return branch_by_code(node, *block, space, children);
  const Range& range =
      *std::find_if(node.ranges.begin(), node.ranges.end(), [&](const Range& r) { return r.column == node.column; });
  const Column& column = columns_[node.column];
  const Candidate& test = node.test;
  const List& list = this->list(node.column);
  const Piece part = piece(range);
  const bool has_rest = node.sums.rows > part.size;
  Branches branches;
  branches.count = branches_of(test);
  const std::uint32_t rest = has_rest ? branch_of(test, list.mode) : branches.count;

  // The runs of equal branches in the piece.
  std::vector<std::int64_t> rows(branches.count, 0);
  space.runs.clear();
  for (std::uint32_t i = 0; i < part.size;) {
    const std::uint32_t b = branch_of(test, part.key[i]);
    std::uint32_t end;
    if (column.test == Test::threshold && part.key[i] != kMissing) {
      end = b == 0
                ? static_cast<std::uint32_t>(std::upper_bound(part.key + i, part.key + part.size, test.cut_key) -
                                             part.key)
                : static_cast<std::uint32_t>(std::lower_bound(part.key + i, part.key + part.size, kMissing) - part.key);
    } else {
      end = std::upper_bound(part.key + i, part.key + part.size, part.key[i]) - part.key;
    }
    space.runs.push_back({b, i, end});
    rows[b] += end - i;
    i = end;
  }
  branches.column = node.column;
  branches.is_in_place = column.test == Test::threshold && !(test.has_missing && test.is_missing_left);
  branches.left = rows[0];
  children.assign(branches.count, Open{});
  if (has_rest) rows[rest] += node.sums.rows - std::accumulate(rows.begin(), rows.end(), std::int64_t{0});

  // Class counts: added up, except for the branch with the rows that are not listed (or, without such, the longest).
  const std::uint32_t implied =
      has_rest ? rest : static_cast<std::uint32_t>(std::max_element(rows.begin(), rows.end()) - rows.begin());
  for (Open& child : children) {
    child.sums.sum.assign(node.sums.sum.size(), 0.0);
    child.sums.seen.assign(node.sums.seen.size(), 0);
  }
  if (branches.count > 2 && space.branch_of_row.empty()) space.branch_of_row.assign(n_, 0);
  branches.implied = implied;
  space.marked.clear();
  for (const auto& [b, begin, end] : space.runs) {
    if (b == implied) continue;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::uint32_t row = rules_.tags.row(part.tag[i]);
      space.marked.push_back(row);
      if (branches.count == 2)
        space.marks.set(row);
      else
        space.branch_of_row[row] = branches.place(b);
    }
    if (!sums_rows()) add_rows(children[b].sums, part.tag + begin, end - begin);
  }
  if (!sums_rows()) imply(node, implied, children);
  for (std::uint32_t b = 0; b < branches.count; ++b) children[b].sums.rows = rows[b];
  return branches;
}

// The counts of the implied branch: what the others leave of the node's.
void Grower::imply(const Open& node, std::uint32_t implied, std::vector<Open>& children) {
  NodeSums& sums = children[implied].sums;
  sums.sum = node.sums.sum;
  sums.seen = node.sums.seen;
  sums.weight = node.sums.weight;
  for (std::uint32_t b = 0; b < children.size(); ++b) {
    if (b == implied) continue;
    sums.weight -= children[b].sums.weight;
    for (std::size_t k = 0; k < sums.sum.size(); ++k) sums.sum[k] -= children[b].sums.sum[k];
    for (std::size_t k = 0; k < sums.seen.size(); ++k) sums.seen[k] -= children[b].sums.seen[k];
  }
}

// The same for a column that has flags.
Grower::Branches Grower::branch_by_flag(const Open& node, const FlagGroup& group, Space& space,
                                        std::vector<Open>& children) const {
  const std::span<const std::uint32_t> tags{rows_.tag + node.rows.begin, node.rows.size};
  const std::uint32_t bit = FlagGroup::bit(group.member(node.column).first + node.test.cut_key);
  const std::uint64_t* word = group.word.get();
  std::uint32_t left = 0;
  for (const std::uint32_t tag : tags) left += word[rules_.tags.row(tag)] >> bit & 1;
  const auto size = static_cast<std::uint32_t>(tags.size());
  Branches branches;
  branches.column = static_cast<std::uint32_t>(columns_.size());  // no list is divided beforehand
  branches.implied = 2 * left > size ? 0 : 1;
  children.assign(2, Open{});
  NodeSums& sums = children[1 - branches.implied].sums;
  sums.sum.assign(node.sums.sum.size(), 0.0);
  sums.seen.assign(node.sums.seen.size(), 0);
  space.marked.resize(std::min(left, size - left) + 1);  // and one behind them, which is written in vain
  std::uint32_t n_marked = 0, i = 0;
  for (std::size_t k = 0; k < node.sums.seen.size(); ++k) {
    const std::uint32_t before = n_marked;
    for (const std::uint32_t end = i + node.sums.seen[k]; i < end; ++i) {
      const std::uint32_t row = rules_.tags.row(tags[i]);
      space.marked[n_marked] = row;
      n_marked += (word[row] >> bit & 1) == branches.implied;
    }
    sums.sum[k] = sums.seen[k] = n_marked - before;
  }
  space.marked.pop_back();
  for (const std::uint32_t row : space.marked) space.marks.set(row);
  sums.weight = n_marked;
  imply(node, branches.implied, children);
  children[0].sums.rows = left;
  children[1].sums.rows = size - left;
  return branches;
}

// The same for a column of few values, where nodes are summed up from their rows.
Grower::Branches Grower::branch_by_code(const Open& node, const CodedBlock& block, Space& space,
                                        std::vector<Open>& children) const {
  const CodedBlock::Member& member = block.member(node.column);
  const List& list = lists_->lists()[node.column];  // of all rows, whichever node they are in
  Branches branches;
  branches.column = static_cast<std::uint32_t>(columns_.size());  // no list is divided beforehand
  space.marked.clear();
  if (static_cast<double>(node.sums.rows) * block.per_row() < list.size) {
    branches.implied = 1;
    for (const std::uint32_t tag : std::span(rows_.tag + node.rows.begin, node.rows.size))
      if (is_left(block, member, node.test.cut_key, rules_.tags.row(tag))) space.marked.push_back(rules_.tags.row(tag));
  } else {
    const auto middle =
        static_cast<std::uint32_t>(std::upper_bound(list.key, list.key + list.size, node.test.cut_key) - list.key);
    const bool is_left_implied = member.mode == kNoMode ? 2 * middle > list.size : member.mode <= node.test.cut_key;
    branches.implied = is_left_implied ? 0 : 1;
    for (std::uint32_t i = is_left_implied ? middle : 0; i < (is_left_implied ? list.size : middle); ++i)
      space.marked.push_back(rules_.tags.row(list.tag[i]));
  }
  for (const std::uint32_t row : space.marked) space.marks.set(row);
  children.assign(2, Open{});
  for (Open& child : children) {
    child.sums.sum.assign(node.sums.sum.size(), 0.0);
    child.sums.seen.assign(node.sums.seen.size(), 0);
  }
  return branches;
}

void Grower::add_rows(NodeSums& sums, const std::uint32_t* tag, std::uint32_t size) const {
  if (rules_.weight.empty()) {
    for (std::uint32_t i = 0; i < size; ++i) ++sums.seen[rules_.tags.label_of(tag[i])];
    std::copy(sums.seen.begin(), sums.seen.end(), sums.sum.begin());
    sums.weight += size;
    return;
  }
  if (n_classes_ == 2 && !rules_.tags.label) return add_weighted_two(rules_, sums, tag, size);
  double* sum = sums.sum.data();
  double weight = sums.weight;  // in a register: it is in no class's way
  std::uint32_t* seen = sums.seen.data();
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t k = rules_.tags.label_of(tag[i]);
    const double w = rules_.weight[rules_.tags.row(tag[i])];
    sum[k] += w;
    weight += w;
    ++seen[k];
  }
  sums.weight = weight;
}

// The parts of a piece that belong to the branches.
void Grower::partition(const Range& range, const Branches& branches, const Space& marker, Space& space) const {
  if (group_of(range) || block_of(range)) {
    space.parts.assign(branches.count, range);
    return;
  }
  if (range.column == branches.column && branches.is_in_place) {
    space.parts.resize(2);
    space.parts[0] = {range.column, range.begin, branches.left};
    space.parts[1] = {range.column, range.begin + branches.left, range.size - branches.left};
    return;
  }
  const List& l = list(range.column);
  std::uint32_t* key = l.key + range.begin;
  std::uint32_t* tag = l.tag + range.begin;
  space.parts.resize(branches.count);
  if (branches.count == 2 && branches.only < 2) {
    const std::uint32_t b = branches.only;
    const std::uint32_t kept = keep_one(key, tag, range.size, marker.marks, b != branches.implied, rules_.tags.shift);
    space.parts[b] = {range.column, range.begin, kept};
    space.parts[1 - b] = {range.column, range.begin + kept, 0};
    return;
  }
  if (branches.count == 2) {
    const std::uint32_t left =
        partition_two(key, tag, range.size, marker.marks, branches.implied == 1, rules_.tags.shift, space.spare.data());
    space.parts[0] = {range.column, range.begin, left};
    space.parts[1] = {range.column, range.begin + left, range.size - left};
    return;
  }
  space.ends.resize(branches.count);
  partition_many(key, tag, range.size, marker.branch_of_row.data(), rules_.tags.shift, space.spare.data(), space.ends);
  for (std::uint32_t b = 0; b < branches.count; ++b) {
    const std::uint32_t at = branches.place(b), begin = at ? space.ends[at - 1] : 0;
    space.parts[b] = {range.column, range.begin + begin, space.ends[at] - begin};
  }
}

void Grower::split(Open& node, Output& output, Space& space, bool is_shared, std::vector<Open>& children) {
  Branches branches = branch_out(node, space, children);
  const auto id = length(output);
  if (has_row_list()) {
    partition(node.rows, branches, space, space);
    for (std::uint32_t b = 0; b < branches.count; ++b) {
      children[b].rows = space.parts[b];
      children[b].sums.rows = space.parts[b].size;
    }
  }
  bool is_any_open = false;
  for (std::uint32_t b = 0; b < branches.count; ++b) {
    Open& child = children[b];
    child.depth = node.depth + 1;
    child.parent = id;
    child.branch = b;
    child.path = mixed(node.path + b + 1);
    child.sums.least = node.sums.least;
    child.sums.most = node.sums.most;
    summarise(child);
    child.is_open = !is_closed(child.sums, child.depth, rules_, growth_);
    child.is_small = child.is_open && may_be_small_ && child.sums.rows <= SmallTrees::kMostRows;
    is_any_open |= child.is_open;
    if (child.is_open) {
      weigh(child);
      child.ranges.reserve(node.ranges.size());
    }
  }
  write(node, children, output);
  bound_children(node, children);
  if (branches.count == 2 && children[0].is_open != children[1].is_open) branches.only = children[0].is_open ? 0 : 1;
  if (is_any_open && growth_.keeps_order && !has_copied_) copy_lists();
  if (is_any_open) search_children(node, branches, children, space, is_shared);
  for (const std::uint32_t row : space.marked) {
    if (branches.count == 2)
      space.marks.clear_word(row);
    else
      space.branch_of_row[row] = 0;
  }
}

// The branches of a monotone test are held apart from here on: each stays on its side of the middle between its value
// and its neighbour's.
void Grower::bound_children(const Open& node, std::vector<Open>& children) const {
  const int direction = columns_[node.column].monotone;
  if (direction == 0 || node.test.is_present_test) return;
  const auto value = [&](const Open& child) {
    return n_classes_ ? child.sums.sum[1] / child.sums.weight : child.sums.centre;
  };
  const bool has_missing_branch = !node.test.keys.empty() && node.test.keys.back() == kMissing;
  for (std::size_t b = 0; b + 1 < children.size() - has_missing_branch; ++b) {
    const double middle = (value(children[b]) + value(children[b + 1])) / 2;
    (direction > 0 ? children[b].sums.most : children[b].sums.least) = middle;
    (direction > 0 ? children[b + 1].sums.least : children[b + 1].sums.most) = middle;
  }
}

}  // namespace margrove::tree
