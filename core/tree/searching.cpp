#include <algorithm>

#include "index.hpp"
#include "parallel.hpp"
#include "tree/grower_parts.hpp"

namespace margrove::tree {
namespace {

// Parts into which the columns of a shared node are cut for each thread: fewer leave threads idle at the end, and of a
// sparse table a single column is done sooner than the next is asked for.
constexpr std::int64_t kPartsPerThread = 8;
// Of the tolerance. A column may be dropped while a thread knows one that is better by so much, though it may come
// later in their order; equal ones must not be.
constexpr double kClearlyBetter = 1000;
// The same of a root that is searched by runs, where few cells are visited. No measurement recorded.
constexpr double kSharedRuns = 1e6;

// What a further column must surpass, where one found this.
void raise_floor(double& floor, const Candidate& found, const NodeSums& sums, const Chooser& chooser) {
  if (chooser.takes_largest()) floor = std::max(floor, found.excess - kClearlyBetter * sums.tolerance);
}

// Whether some of these columns tells rows apart.
bool is_any_told(const std::vector<Candidate>& found) {
  return std::any_of(found.begin(), found.end(), [](const Candidate& one) { return !one.is_constant; });
}

}  // namespace

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

}  // namespace margrove::tree
