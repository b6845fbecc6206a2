#include "tree/grower.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "index.hpp"
#include "large_memory.hpp"
#include "parallel.hpp"
#include "tree/grower_parts.hpp"

namespace margrove::tree {
namespace {

// A node of less than this part of all rows is a job of its own. Chosen, not measured: larger jobs leave threads idle.
constexpr std::int64_t kJobShare = 16;

}  // namespace

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
