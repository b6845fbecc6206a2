#include "tree/grower.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "index.hpp"
#include "large_memory.hpp"
#include "parallel.hpp"
#include "tree/partition.hpp"
#include "tree/small.hpp"

namespace margrove::tree {
namespace {

// Cells of a node: with fewer, threads cost more than they bring. At 1.1 ns a cell (measured on a prototype) 45 µs.
constexpr double kSharedWork = 40000;
// Parts into which the columns of a shared node are cut for each thread: fewer leave threads idle at the end, and of a
// sparse table a single column is done sooner than the next is asked for.
constexpr std::int64_t kPartsPerThread = 8;
// Of the tolerance. A column may be dropped while a thread knows one that is better by so much, though it may come
// later in their order; equal ones must not be.
constexpr double kClearlyBetter = 1000;
// The same of a root that is searched by runs, where few cells are visited. No measurement recorded.
constexpr double kSharedRuns = 1e6;
// A node of less than this part of all rows is a job of its own. Chosen, not measured: larger jobs leave threads idle.
constexpr std::int64_t kJobShare = 16;

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

// What a further column must surpass, where one found this.
void raise_floor(double& floor, const Candidate& found, const NodeSums& sums, const Chooser& chooser) {
  if (chooser.takes_largest()) floor = std::max(floor, found.excess - kClearlyBetter * sums.tolerance);
}

// Whether some of these columns tells rows apart.
bool is_any_told(const std::vector<Candidate>& found) {
  return std::any_of(found.begin(), found.end(), [](const Candidate& one) { return !one.is_constant; });
}

}  // namespace

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

Grower::Grower(std::vector<Column> columns, std::int64_t n, std::span<const std::int32_t> label, int n_classes,
               ScanRules rules, GrowthRules growth, int threads)
    : columns_(std::move(columns)),
      n_(n),
      label_(label),
      n_classes_(n_classes),
      rules_(std::move(rules)),
      growth_(growth),
      threads_(std::max(threads, 1)) {
  if (static_cast<double>(n) * static_cast<double>(columns_.size()) < kSharedWork) threads_ = 1;
}

Grower::~Grower() = default;

const List& Grower::list(std::uint32_t column) const {
  if (column == columns_.size()) return rows_;
  return has_copied_ ? copies_[column] : lists_->lists()[column];
}

const FlagGroup* Grower::group_of(const Range& range) const {
  return range.column < columns_.size() ? lists_->group_of(range.column) : nullptr;
}

const CodedBlock* Grower::block_of(const Range& range) const {
  return coded_ && range.column < columns_.size() ? coded_->block_of(range.column) : nullptr;
}

void Grower::copy_lists() {
  const std::span<const List> lists = lists_->lists();
  if (copies_.empty()) {
    copies_.assign(lists.begin(), lists.end());
    for (std::size_t j = 0; coded_ && j < copies_.size(); ++j)
      if (coded_->block_of(j)) copies_[j].size = 0;
    std::size_t total = 0;
    for (const List& l : copies_) total += 2 * static_cast<std::size_t>(l.size);
    copy_memory_ = large_memory<std::uint32_t>(total);
    std::uint32_t* next = copy_memory_.get();
    for (List& l : copies_) {
      l.key = next;
      l.tag = next + l.size;
      next += 2 * static_cast<std::size_t>(l.size);
    }
  }
  parallel_for(length(lists), threads_, [&](std::int64_t r) {
    const std::size_t j = r;
    std::copy_n(lists[j].key, copies_[j].size, copies_[j].key);
    std::copy_n(lists[j].tag, copies_[j].size, copies_[j].tag);
  });
  has_copied_ = true;
}

Piece Grower::piece(const Range& range) const {
  const List& l = list(range.column);
  return {l.key + range.begin, l.tag + range.begin, range.size};
}

void Grower::scan_range(const Range& range, const Open& node, double floor, Space& space, Candidate& found) const {
  if (coarse_ && node.depth == 0 && coarse_->covers(range.column))
    return coarse_->search(rules_, range.column, piece(range), node.sums, floor, space.scan, found);
  const Mode mode{list(range.column).mode, lists_->mode_value(range.column)};
  const std::uint64_t draw = place_of(node.path, range.column);
  scan(rules_, columns_[range.column], mode, piece(range), node.sums, floor, space.scan, found, draw);
}

void Grower::count(const FlagGroup& group, const Open& node, FlagCounts& counts) const {
  const std::uint32_t* tag = rows_.tag + node.rows.begin;
  const auto size = static_cast<std::uint32_t>(node.sums.rows);
  std::uint64_t* words = counts.words(size);
  for (std::uint32_t i = 0; i < size; ++i) words[i] = group.word[rules_.tags.row(tag[i])];
  counts.count(group, node.sums.seen, rules_.min_rows, rules_.measure.criterion == Criterion::gini,
               is_of_two_classes(node.sums));
}

void Grower::choose(const Range& range, const FlagCounts& counts, const Open& node, Chooser& chooser,
                    Space& space) const {
  choose_flags(rules_, *group_of(range), counts, node.sums, score_bar(rules_, node.sums, chooser.floor()), space.scan,
               space.candidate, chooser);
}

void Grower::search_block(const CodedBlock& block, const Open& node, Space& space, const Chooser& chooser,
                          double& floor, std::vector<Candidate>& found) const {
  coded_->add_up(block, rules_, node.sums, {rows_.tag + node.rows.begin, node.rows.size}, space.sums);
  found.resize(block.members.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    coded_->search(block.members[i], rules_, node.sums, floor, space.sums, space.scan, found[i]);
    raise_floor(floor, found[i], node.sums, chooser);
  }
}

void Grower::offer_block(const CodedBlock& block, std::vector<Candidate>& found, Chooser& chooser) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].is_constant) chooser.add(block.members[i].column, found[i]);
}

bool Grower::can_share(const Open& node) const {
  if (threads_ == 1) return false;
  double cells = 0;
  for (const Range& range : node.ranges) {
    if (const CodedBlock* block = block_of(range))
      cells += block->per_row() * static_cast<double>(node.sums.rows);
    else
      cells += group_of(range) ? static_cast<double>(node.sums.rows) : range.size;
  }
  return cells >= kSharedWork;
}

bool Grower::can_share_runs() const {
  return threads_ > 1 && static_cast<double>(n_) * static_cast<double>(columns_.size()) >= kSharedRuns;
}

// Whether columns may have flags: rows count the same, each node looks at all columns, and there is one tree.
bool Grower::may_flag() const {
  const Criterion criterion = rules_.measure.criterion;
  return (criterion == Criterion::gini || criterion == Criterion::entropy) && !rules_.measure.has_several() &&
         rules_.weight.empty() && rules_.min_weight <= 0 && rules_.thresholds == Thresholds::every &&
         !growth_.is_shuffled && !growth_.keeps_order &&
         std::all_of(columns_.begin(), columns_.end(),
                     [](const Column& column) { return column.test == Test::threshold && column.monotone == 0; });
}

void Grower::prepare() {
  const bool may_leave_out = rules_.measure.criterion != Criterion::absolute_error;
  if (growth_.sorted && growth_.sorted->can_serve(n_, columns_.size(), growth_.n_bins, may_leave_out))
    lists_ = std::make_unique<Lists>(*growth_.sorted, columns_, label_, n_classes_, threads_);
  else
    lists_ =
        std::make_unique<Lists>(columns_, n_, label_, n_classes_, growth_.n_bins, may_leave_out, may_flag(), threads_);
  rules_.tags = lists_->tags();
  rules_.prepare(n_);
  if (!rules_.weight.empty() && rules_.measure.criterion == Criterion::gini && n_classes_) {
    whole_weight_.resize(n_);
    rules_.whole_weight = whole_weight_.data();
  }
}

// Lists all rows in their order; class by class, unless sums of weights or numbers depend on it.
void Grower::list_rows(Open& root) {
  row_memory_.resize(2 * n_);
  rows_ = {row_memory_.data(), row_memory_.data() + n_, static_cast<std::uint32_t>(n_), kNoMode};
  if (sums_rows()) {
    for (std::uint32_t i = 0; i < n_; ++i) rows_.tag[i] = lists_->tag_of(i);
  } else {
    std::vector<std::uint32_t> place(root.sums.seen.size(), 0);
    std::exclusive_scan(root.sums.seen.begin(), root.sums.seen.end(), place.begin(), 0u);
    for (std::uint32_t i = 0; i < n_; ++i) rows_.tag[place[label_[i]]++] = lists_->tag_of(i);
  }
  root.rows = {static_cast<std::uint32_t>(columns_.size()), 0, static_cast<std::uint32_t>(n_)};
}

// The root as it is before any column is looked at: a leaf.
void Grower::plant() {
  Open root;
  root.path = mixed(growth_.seed);
  root.sums.sum.assign(rules_.measure.width, 0.0);
  root.sums.seen.assign(n_classes_, 0);
  root.sums.rows = n_;
  if (sums_rows()) {
    list_rows(root);
  } else {
    for (const std::int32_t k : label_) ++root.sums.seen[k];
    std::copy(root.sums.seen.begin(), root.sums.seen.end(), root.sums.sum.begin());
    root.sums.weight = n_;
  }
  summarise(root);
  weight_ = root.sums.weight;
  if (rules_.measure.criterion == Criterion::gaussian_entropy)
    // It came as a share of the variance.
    rules_.measure.floor *= squares_around_mean(root.sums.sum.data(), root.sums.weight) / root.sums.weight;
  if (!n_classes_) summarise(root);
  stack_.push_back(std::move(root));
}

// Sorts the columns and finds the root's test. False where the time was over before.
bool Grower::start(Time until) {
  if (!lists_) {
    prepare();
    plant();
  }
  if (is_closed(stack_.back().sums, 0, rules_, growth_)) return true;
  if (!lists_->sort(until)) return false;
  if (growth_.keeps_order && !growth_.is_shuffled && rules_.whole_weight && rules_.thresholds == Thresholds::every)
    coded_ = std::make_unique<Coded>(*lists_, n_, static_cast<std::size_t>(n_classes_), threads_);
  for (int t = 0; t < threads_; ++t) spaces_.push_back(std::make_unique<Space>(n_));
  const std::span<const List> lists = lists_->lists();
  may_be_small_ = SmallTrees::can_grow(columns_, lists, rules_, growth_);
  if (may_be_small_)
    for (auto& space : spaces_) space->small.emplace(columns_, *lists_, rules_, growth_, n_, weight_);
  const auto leaves_out = [](const List& l) { return l.mode != kNoMode; };
  const bool needs_rows = lists_->has_flags() || (may_be_small_ && std::any_of(lists.begin(), lists.end(), leaves_out));
  if (!sums_rows() && needs_rows) list_rows(stack_.back());
  open_root();
  return true;
}

// The root's test.
void Grower::open_root() {
  Open& root = stack_.back();
  if (is_closed(root.sums, 0, rules_, growth_)) return;
  for (std::uint32_t j = 0; j < columns_.size(); ++j) {
    const FlagGroup* group = lists_->group_of(j);
    if (const CodedBlock* block = block_of({j, 0, 0})) {
      if (block->members[0].column == j) root.ranges.push_back({j, 0, 0});
    } else if (!group)
      root.ranges.push_back({j, 0, lists_->lists()[j].size});
    else if (group->members[0].column == j)
      root.ranges.push_back({j, 0, 0});
  }
  weigh(root);
  if (coarse_) coarse_->add_up(whole_weight_.data(), can_share_runs() ? threads_ : 1);
  search(root, *spaces_[0]);
}

// The weights of an open node's rows as whole numbers, whose sums are exact: see weighted.hpp.
void Grower::weigh(Open& node) {
  if (!rules_.whole_weight) return;
  NodeSums& sums = node.sums;
  const int bits = 60 - std::ilogb(sums.weight);
  const double scale = std::ldexp(1.0, bits);
  sums.unit = std::ldexp(1.0, -bits);
  sums.whole_sum.assign(n_classes_, 0);
  for (std::uint32_t i = 0; i < node.rows.size; ++i) {
    const std::uint32_t tag = rows_.tag[node.rows.begin + i], row = rules_.tags.row(tag);
    const std::int64_t w = std::max(std::int64_t{1}, static_cast<std::int64_t>(rules_.weight[row] * scale + 0.5));
    whole_weight_[row] = w;
    sums.whole_sum[rules_.tags.label_of(tag)] += w;
  }
  sums.whole_weight = std::accumulate(sums.whole_sum.begin(), sums.whole_sum.end(), std::int64_t{0});
}

// What the criterion makes of a node, from its class counts or from its rows.
void Grower::summarise(Open& node) const {
  const std::uint32_t* row = rows_.tag + node.rows.begin;
  if (!n_classes_) return summarise_rows(rules_, {row, node.rows.size}, node.sums);
  if (sums_rows()) add_rows(node.sums, row, node.rows.size);
  summarise_classes(rules_, node.sums);
}

void Grower::make_room_to_share(std::size_t scans) {
  found_.resize(std::max(found_.size(), scans));
  if (lists_->has_flags()) counts_.resize(std::max(counts_.size(), scans));
  if (coded_) of_block_.resize(std::max(of_block_.size(), scans));
}

// body(place in node.ranges, the thread's space) for each column, on all threads.
template <class Body>
void Grower::share_columns(const Open& node, std::size_t n_branches, Body body) {
  for (auto& space : spaces_) space->floors.assign(n_branches, kNoFloor);
  const std::int64_t size = length(node.ranges), part = size / (kPartsPerThread * threads_) + 1;
  parallel_for((size + part - 1) / part, threads_, [&](std::int64_t p) {
    Space& own = *spaces_[thread_number()];
    for (std::int64_t at = p * part; at < std::min(size, (p + 1) * part); ++at) body(at, own);
  });
}

// The node's test, from scratch: of the root, and of all nodes where columns are drawn at random.
void Grower::search(Open& node, Space& space) {
  Chooser chooser(growth_, node.sums, columns_.size());
  std::vector<Range> kept;
  if (growth_.is_shuffled) {
    std::vector<Range> order = node.ranges;
    std::sort(order.begin(), order.end(), [&](const Range& a, const Range& b) {
      return place_of(node.path, a.column) < place_of(node.path, b.column);
    });
    std::int64_t looked_at = 0;
    for (const Range& range : order) {
      if (growth_.max_columns && looked_at >= growth_.max_columns && chooser.has_any()) {
        kept.push_back(range);
        continue;
      }
      scan_range(range, node, chooser.floor(), space, space.candidate);
      if (space.candidate.is_constant) continue;
      kept.push_back(range);
      looked_at += space.candidate.n_tests > 0;
      chooser.add(range.column, space.candidate);
    }
    std::sort(kept.begin(), kept.end(), [](const Range& a, const Range& b) { return a.column < b.column; });
  } else {
    const auto take = [&](const Range& range, Candidate& candidate) {
      if (candidate.is_constant) return;
      kept.push_back(range);
      chooser.add(range.column, candidate);
    };
    const auto take_group = [&](const Range& range, const FlagCounts& counts) {
      kept.push_back(range);
      choose(range, counts, node, chooser, space);
    };
    const auto take_block = [&](const Range& range, const CodedBlock& block, std::vector<Candidate>& found) {
      if (!is_any_told(found)) return;
      kept.push_back(range);
      offer_block(block, found, chooser);
    };
    if (coarse_ && node.depth == 0 ? can_share_runs() : can_share(node)) {
      make_room_to_share(node.ranges.size());
      share_columns(node, 1, [&](std::size_t at, Space& own) {
        if (const FlagGroup* group = group_of(node.ranges[at])) return count(*group, node, counts_[at]);
        if (const CodedBlock* block = block_of(node.ranges[at]))
          return search_block(*block, node, own, chooser, own.floors[0], of_block_[at]);
        scan_range(node.ranges[at], node, own.floors[0], own, found_[at]);
        raise_floor(own.floors[0], found_[at], node.sums, chooser);
      });
      for (std::size_t r = 0; r < node.ranges.size(); ++r) {
        if (const CodedBlock* block = block_of(node.ranges[r]))
          take_block(node.ranges[r], *block, of_block_[r]);
        else
          group_of(node.ranges[r]) ? take_group(node.ranges[r], counts_[r]) : take(node.ranges[r], found_[r]);
      }
    } else {
      for (const Range& range : node.ranges) {
        if (const FlagGroup* group = group_of(range)) {
          count(*group, node, space.counts);
          take_group(range, space.counts);
        } else if (const CodedBlock* block = block_of(range)) {
          double floor = chooser.floor();
          search_block(*block, node, space, chooser, floor, space.of_block);
          take_block(range, *block, space.of_block);
        } else {
          scan_range(range, node, chooser.floor(), space, space.candidate);
          take(range, space.candidate);
        }
      }
    }
  }
  node.ranges = std::move(kept);
  node.settle(chooser, weight_);
}

// ---- splitting

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

void Grower::search_children(const Open& node, const Branches& branches, std::vector<Open>& children, Space& space,
                             bool is_shared) {
  if (growth_.is_shuffled) {
    for (const Range& range : node.ranges) {
      partition(range, branches, space, space);
      for (std::uint32_t b = 0; b < branches.count; ++b)
        if (children[b].is_open) children[b].ranges.push_back(space.parts[b]);
    }
    for (Open& child : children)
      if (child.is_open) search(child, space);
    return;
  }
  std::vector<Chooser> choosers;
  choosers.reserve(branches.count);
  for (const Open& child : children) choosers.emplace_back(growth_, child.sums, columns_.size());
  if (!is_shared) {
    for (const Range& range : node.ranges) {
      partition(range, branches, space, space);
      const FlagGroup* group = group_of(range);
      const CodedBlock* block = block_of(range);
      for (std::uint32_t b = 0; b < branches.count; ++b) {
        if (!children[b].is_open) continue;
        if (block) {
          double floor = choosers[b].floor();
          search_block(*block, children[b], space, choosers[b], floor, space.of_block);
          if (is_any_told(space.of_block)) children[b].ranges.push_back(range);
          offer_block(*block, space.of_block, choosers[b]);
          continue;
        }
        if (children[b].is_small) {
          children[b].ranges.push_back(space.parts[b]);
          continue;
        }
        if (group) {
          count(*group, children[b], space.counts);
          if (space.counts.n_tests() == 0) continue;
          children[b].ranges.push_back(space.parts[b]);
          choose(range, space.counts, children[b], choosers[b], space);
          continue;
        }
        scan_range(space.parts[b], children[b], choosers[b].floor(), space, space.candidate);
        if (space.candidate.is_constant) continue;
        children[b].ranges.push_back(space.parts[b]);
        choosers[b].add(range.column, space.candidate);
      }
    }
  } else {
    make_room_to_share(node.ranges.size() * branches.count);
    std::vector<Range> parts(node.ranges.size() * branches.count);
    share_columns(node, branches.count, [&](std::size_t at, Space& own) {
      const std::size_t first = at * branches.count;
      partition(node.ranges[at], branches, space, own);
      std::copy_n(own.parts.begin(), branches.count, parts.begin() + static_cast<std::ptrdiff_t>(first));
      for (std::uint32_t b = 0; b < branches.count; ++b) {
        if (children[b].is_small || !children[b].is_open) continue;
        if (const FlagGroup* group = group_of(node.ranges[at])) {
          count(*group, children[b], counts_[first + b]);
          continue;
        }
        if (const CodedBlock* block = block_of(node.ranges[at])) {
          search_block(*block, children[b], own, choosers[b], own.floors[b], of_block_[first + b]);
          continue;
        }
        Candidate& found = found_[first + b];
        scan_range(parts[first + b], children[b], own.floors[b], own, found);
        raise_floor(own.floors[b], found, children[b].sums, choosers[b]);
      }
    });
    for (std::size_t at = 0; at < parts.size(); ++at) {
      const std::size_t b = at % branches.count;
      if (!children[b].is_open) continue;
      if (const CodedBlock* block = block_of(parts[at])) {
        if (!is_any_told(of_block_[at])) continue;
        offer_block(*block, of_block_[at], choosers[b]);
      } else if (!children[b].is_small && group_of(parts[at])) {
        if (counts_[at].n_tests() == 0) continue;
        choose(parts[at], counts_[at], children[b], choosers[b], space);
      } else if (!children[b].is_small) {
        if (found_[at].is_constant) continue;
        choosers[b].add(parts[at].column, found_[at]);
      }
      children[b].ranges.push_back(parts[at]);
    }
  }
  for (std::uint32_t b = 0; b < branches.count; ++b) {
    if (children[b].is_small)
      children[b].is_leaf = false;
    else if (children[b].is_open)
      children[b].settle(choosers[b], weight_);
  }
}

// ---- the finished tree

void Grower::leave(const Open& node, Output& output) {
  output.push_back(node.as_leaf());
  output.back().first_row = node.rows.begin;
  settled_ += node.sums.rows;
}

bool Grower::finish(const Open& node, Output& output, Space* space) {
  if (node.is_leaf) leave(node, output);
  if (node.is_leaf || !node.is_small) return node.is_leaf;
  SmallTrees& small = *space->small;
  std::uint32_t* rows = has_row_list() ? rows_.tag + node.rows.begin : nullptr;
  const auto size = static_cast<std::size_t>(node.sums.rows);
  small.begin({rows ? rows : piece(node.ranges.front()).tag, size});
  for (const Range& range : node.ranges) {
    if (const FlagGroup* group = group_of(range)) {
      small.add(*group);
      continue;
    }
    const Piece part = piece(range);
    const bool is_constant = part.size == 0 || (part.size == size && part.key[0] == part.key[size - 1]);
    if (!is_constant) small.add(range.column, part);
  }
  small.grow(node, node.rows.begin, output);
  if (sums_rows()) std::copy_n(small.tags().begin(), size, rows);
  settled_ += node.sums.rows;
  return true;
}

void Grower::write(const Open& node, const std::vector<Open>& children, Output& output) const {
  const Column& column = columns_[node.column];
  std::vector<double> weights;
  for (const Open& child : children) weights.push_back(child.sums.weight);
  const double threshold = column.test == Test::threshold ? threshold_of(*lists_, node.column, node.test)
                                                          : std::numeric_limits<double>::quiet_NaN();
  output.push_back(node.as_inner(weights, column.n_codes, threshold));
}

// Nodes to have room for from the start, since moving them takes as long as finding some. What is not used costs
// nothing: such memory is touched page by page.
std::size_t Grower::most_nodes() const {
  constexpr std::int64_t kMostNodes = 1 << 17;  // 20 MiB
  constexpr std::int64_t kDeep = 16;            // levels that have as many
  const std::int64_t levels = std::min(growth_.max_depth, kDeep) + 1;
  return static_cast<std::size_t>(std::min({2 * n_, kMostNodes, std::int64_t{1} << levels}));
}

bool Grower::run(double seconds) {
  const Time until = in_seconds(seconds);
  if (!is_started_ && !(is_started_ = start(until))) return false;
  if (growth_.max_leaves) return run_best_first(until);
  std::vector<Open> children;
  if (output_.empty()) output_.reserve(most_nodes());
  while (!stack_.empty()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    Open node = std::move(stack_.back());
    stack_.pop_back();
    if (finish(node, output_, spaces_.empty() ? nullptr : spaces_[0].get())) continue;  // a single leaf needs none
    if (threads_ > 1 && node.sums.rows < n_ / kJobShare) {
      auto job = std::make_unique<Job>();
      job->parent = node.parent;
      job->branch = node.branch;
      node.parent = -1;
      job->stack.push_back(std::move(node));
      jobs_.push_back(std::move(job));
    } else {
      split(node, output_, *spaces_[0], can_share(node), children);
      for (auto child = children.rbegin(); child != children.rend(); ++child) stack_.push_back(std::move(*child));
    }
  }
  if (jobs_.empty()) return true;  // threads are not woken for nothing
  return take_turns(
      spaces_, next_job_, jobs_.size(), until, [](const Space& space) { return space.job == nullptr; },
      [&](Space& space, std::size_t job) { space.job = jobs_[job].get(); },
      [&](Space& space) {
        std::vector<Open> found;
        Job& job = *space.job;
        while (!job.stack.empty()) {
          if (std::chrono::steady_clock::now() >= until) return false;
          Open node = std::move(job.stack.back());
          job.stack.pop_back();
          if (finish(node, job.output, &space)) continue;
          split(node, job.output, space, false, found);
          for (auto child = found.rbegin(); child != found.rend(); ++child) job.stack.push_back(std::move(*child));
        }
        space.job = nullptr;
        return true;
      });
}

// The node whose split gains most comes first. `stack_` is a heap.
bool Grower::run_best_first(Time until) {
  std::vector<Open> children;
  while (!stack_.empty()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::pop_heap(stack_.begin(), stack_.end(), is_less_urgent);
    Open node = std::move(stack_.back());
    stack_.pop_back();
    const std::int64_t more = node.is_leaf ? 0 : branches_of(node.test) - 1;
    if (node.is_leaf || leaves_ + more > growth_.max_leaves) {
      leave(node, output_);
      continue;
    }
    leaves_ += more;
    split(node, output_, *spaces_[0], can_share(node), children);
    for (Open& child : children) {
      child.order = ++opened_;
      stack_.push_back(std::move(child));
      std::push_heap(stack_.begin(), stack_.end(), is_less_urgent);
    }
  }
  return true;
}

void Grower::restart(std::span<const double> weight) {
  rules_.weight = weight;
  has_copied_ = false;
  output_.clear();
  settled_ = 0;
  next_job_ = 0;
  leaves_ = 1;
  opened_ = 0;
  if (!lists_) return;
  plant();
  is_started_ = !spaces_.empty();  // the columns are sorted
  if (!is_started_) return;
  if (rules_.whole_weight && rules_.thresholds == Thresholds::every && !coarse_)
    coarse_ =
        std::make_unique<Coarse>(*lists_, coded_.get(), n_, label_, static_cast<std::size_t>(n_classes_), threads_);
  open_root();
}

std::vector<Node> Grower::take() {
  if (!lists_) {  // the time was over before it began
    prepare();
    plant();
  }
  for (const Open& node : stack_) leave(node, output_);
  stack_.clear();
  for (auto& job : jobs_) {
    for (const Open& node : job->stack) leave(node, job->output);
    const auto first = length(output_);
    for (Node& node : job->output) {
      if (node.parent < 0) {
        node.parent = job->parent;
        node.branch = job->branch;
      } else {
        node.parent += first;
      }
      output_.push_back(std::move(node));
    }
  }
  jobs_.clear();
  return depth_first(std::move(output_));
}

}  // namespace margrove::tree
