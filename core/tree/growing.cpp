#include "tree/growing.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "index.hpp"
#include "tree/absolute.hpp"

namespace margrove::tree {

Node OpenNode::as_leaf() const {
  Node node;
  node.parent = parent;
  node.branch = branch;
  node.rows = sums.rows;
  node.weight = sums.weight;
  node.least = sums.least;
  node.most = sums.most;
  if (!sums.seen.empty()) node.value = sums.sum;
  return node;
}

Node OpenNode::as_inner(std::span<const double> weights, std::int64_t n_codes, double threshold) const {
  Node node = as_leaf();
  node.column = column;
  node.n_branches = weights.size();
  node.gain = test.excess / sums.weight;
  node.n_tests = test.n_tests;
  node.n_candidates = n_candidates;
  node.levels = test.levels;
  node.threshold = threshold;
  const auto heaviest = std::max_element(weights.begin(), weights.end()) - weights.begin();
  node.default_branch = node.missing_branch = heaviest;
  if (test.has_missing) node.missing_branch = branch_of(test, kMissing);
  node.level_branch.assign(n_codes, -1);
  for (std::size_t i = 0; i < test.keys.size(); ++i)
    if (test.keys[i] != kMissing) node.level_branch[test.keys[i]] = test.branch[i];
  return node;
}

void OpenNode::settle(Chooser& chooser, double weight) {
  if (!chooser.decide(weight)) return;
  is_leaf = false;
  column = chooser.column();
  test = std::move(chooser.best());
  n_candidates = chooser.n_candidates();
  priority = chooser.best_excess();
}

double threshold_of(const Lists& lists, std::size_t column, const Candidate& test) {
  if (test.is_present_test) return std::numeric_limits<double>::infinity();
  return std::isnan(test.theta) ? lists.threshold(column, test.cut_key, test.left_row, test.right_row) : test.theta;
}

std::vector<std::uint32_t> column_order(const GrowthRules& growth, std::uint64_t path, std::size_t columns) {
  std::vector<std::uint32_t> order(columns);
  std::iota(order.begin(), order.end(), 0u);
  if (growth.is_shuffled)
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place_of(path, a) < place_of(path, b); });
  return order;
}

std::vector<Node> depth_first(std::vector<Node> nodes) {
  std::vector<std::uint32_t> first(nodes.size() + 1), child(nodes.size()), order;
  for (std::size_t i = 0; i < nodes.size(); ++i) first[i + 1] = first[i] + nodes[i].n_branches;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].parent >= 0) child[first[nodes[i].parent] + nodes[i].branch] = static_cast<std::uint32_t>(i);
  order.reserve(nodes.size());
  std::vector<std::uint32_t> waiting{0};
  while (!waiting.empty()) {
    const std::uint32_t i = waiting.back();
    waiting.pop_back();
    order.push_back(i);
    for (std::uint32_t at = first[i + 1]; at-- > first[i];) waiting.push_back(child[at]);
  }
  if (std::is_sorted(order.begin(), order.end())) return nodes;  // as a single thread grows them
  std::vector<std::uint32_t> place(nodes.size());
  for (std::size_t at = 0; at < order.size(); ++at) place[order[at]] = static_cast<std::uint32_t>(at);
  std::vector<Node> ordered;
  ordered.reserve(nodes.size());
  for (const std::uint32_t i : order) {
    ordered.push_back(std::move(nodes[i]));
    if (ordered.back().parent >= 0) ordered.back().parent = place[ordered.back().parent];
  }
  return ordered;
}

Chooser::Chooser(const GrowthRules& growth, const NodeSums& node, std::size_t columns)
    : growth_(growth),
      node_(node),
      column_bits_(growth.complexity > 0 ? std::log2(static_cast<double>(columns)) : 0.0) {}

void Chooser::add(std::uint32_t column, Candidate& candidate) {
  n_candidates_ += candidate.n_choices();
  if (!candidate.found()) return;
  double excess = candidate.excess;
  if (growth_.complexity > 0) {
    excess -= growth_.complexity * (column_bits_ + std::log2(std::max(candidate.n_tests, 1.0)));
    if (excess <= node_.tolerance) return;
  }
  if (growth_.score != SplitScore::gain) {
    all_.push_back({column, excess, candidate});
    return;
  }
  if (excess > best_excess_ + node_.tolerance || !best_.found()) {
    best_excess_ = excess;
    column_ = column;
    std::swap(best_, candidate);
  }
}

double Chooser::floor() const { return takes_largest() && best_.found() ? best_excess_ + node_.tolerance : kNoFloor; }

bool Chooser::decide(double weight) {
  double mean = 0, best_score = 0;
  for (const Charged& charged : all_) mean += charged.excess / all_.size();
  for (auto& [column, excess, candidate] : all_) {
    // Of a branch so light that its weight is lost in rounding nothing is known, but it may be all there is.
    const double information = std::max(candidate.split_information, std::numeric_limits<double>::epsilon());
    double score;
    if (growth_.score == SplitScore::gain_ratio) {
      if (excess < mean - node_.tolerance) continue;
      score = excess / information;
    } else {
      score = node_.mass - (node_.mass - excess) / information;
    }
    const double rounding = std::max(node_.tolerance, kEqualGain * std::abs(best_score));
    if (best_.found() && !(score > best_score + rounding)) continue;
    best_score = score;
    best_excess_ = excess;
    column_ = column;
    best_ = std::move(candidate);
  }
  if (!best_.found()) return false;
  const double gain = (best_excess_ + node_.tolerance) / node_.weight;
  return gain >= growth_.min_gain && node_.weight / weight * gain >= growth_.min_impurity_decrease;
}

double score_bar(const ScanRules& rules, const NodeSums& node, double floor) {
  if (floor == kNoFloor || rules.measure.criterion != Criterion::gini) return kNoFloor;
  const double bar = is_of_two_classes(node) ? floor * static_cast<double>(node.rows) / 2 : floor + node.purity;
  return bar * (1 - kEqualGain);
}

void choose_flags(const ScanRules& rules, const FlagGroup& group, const FlagCounts& counts, const NodeSums& node,
                  double bar, ScanSpace& space, Candidate& candidate, Chooser& chooser) {
  if (chooser.takes_largest()) {
    // Each column that is chosen before a better one may be a tolerance above it: see `SmallTrees::search`.
    const auto n = static_cast<double>(node.rows);
    bar = std::max(bar, counts.best() * (1 - kEqualGain) - FlagGroup::kFlags * kEqualGain * n * n);
  }
  double others = counts.n_tests();
  for (const FlagGroup::Member& member : group.members) {
    if (!counts.has_above(member, bar)) continue;
    scan_flags(rules, member, counts, node, chooser.floor(), space, candidate);
    others -= candidate.n_tests;
    chooser.add(member.column, candidate);
  }
  candidate.excess = kNoFloor;
  candidate.n_tests = others;
  candidate.levels = {};
  chooser.add(group.members[0].column, candidate);
}

bool is_closed(const NodeSums& sums, std::int64_t depth, const ScanRules& rules, const GrowthRules& growth) {
  if (sums.is_pure || depth >= growth.max_depth || sums.rows < growth.min_rows_to_split) return true;
  if (sums.rows < 2 * rules.min_rows || sums.weight < 2 * rules.min_weight) return true;
  return is_of_classes(rules.measure.criterion) && !rules.measure.has_several() && growth.majority < 1 &&
         *std::max_element(sums.sum.begin(), sums.sum.end()) >= growth.majority * (1 - kEqualGain) * sums.weight;
}

void summarise_classes(const ScanRules& rules, NodeSums& sums) {
  sums.purity = rules.measure.purity(sums.sum.data(), sums.weight);
  sums.mass = rules.measure.criterion == Criterion::entropy ? -sums.purity : sums.weight - sums.purity;
  sums.tolerance = kEqualGain * sums.mass;
  sums.is_pure = *std::max_element(sums.seen.begin(), sums.seen.end()) >= sums.rows;
  sums.whole = 0;
  for (const std::uint32_t count : sums.seen)
    sums.whole += rules.x_log_x.empty() ? std::int64_t{count} * count : rules.x_log_x[count];
}

namespace {

// Of one target: w imp(S), what else its purity has digits of, and the median where that is predicted.
struct TargetSums {
  double mass, besides = 0, median = 0;
};

TargetSums sums_of(const ScanRules& rules, std::span<const std::uint32_t> rows, const NodeSums& sums, std::size_t t) {
  const Measure& measure = rules.measure;
  const std::size_t n_targets = measure.n_targets();
  const int first = measure.has_several() ? measure.start[t] : 0;
  const double* own = sums.sum.data() + first;
  const auto number = [&](std::uint32_t row) { return rules.number[row * n_targets + t]; };
  switch (measure.criterion) {
    case Criterion::absolute_error: {
      std::vector<Weighted> cells;
      for (const std::uint32_t row : rows) cells.emplace_back(number(row) - sums.shifts[t], rules.weight_of(row));
      const double mass = absolute_error(cells);
      return {mass, 0, sums.shifts[t] + weighted_median(cells)};
    }
    case Criterion::poisson: {  // Σ w y ln(y / mean)
      double mass = 0;
      for (const std::uint32_t row : rows)
        if (const double y = number(row); y > 0)
          mass += rules.weight_of(row) * y * std::log(y / (own[0] / sums.weight));
      return {mass, own[0]};
    }
    case Criterion::squared_error:
      return {squares_around_mean(own, sums.weight)};
    case Criterion::gaussian_entropy:  // w · ½ (1 + ln 2π + ln σ²), which may be negative
      return {0.5 * sums.weight * (1 + std::log(2 * std::numbers::pi)) - sums.purity, sums.weight};
    default:
      const double purity = measure.purity_of_one(own, measure.start[t + 1] - first, sums.weight);
      return {measure.criterion == Criterion::entropy ? -purity : sums.weight - purity};
  }
}

}  // namespace

void summarise_rows(const ScanRules& rules, std::span<const std::uint32_t> rows, NodeSums& sums) {
  const Measure& measure = rules.measure;
  if (measure.criterion == Criterion::squared_error && !measure.has_several() && rules.weight.empty())
    return summarise_numbers([&, number = rules.number.data()](std::size_t i) { return number[rows[i]]; }, rows.size(),
                             sums);
  const std::size_t n_targets = measure.n_targets();
  const bool has_classes = !rules.labels.empty();
  sums.rows = length(rows);
  sums.weight = 0;
  for (const std::uint32_t row : rows) sums.weight += rules.weight_of(row);
  sums.is_pure = true;
  sums.shifts.assign(n_targets, 0.0);
  for (std::size_t t = 0; t < n_targets; ++t) {
    const auto is_as_first = [&](const auto& target) {
      const auto first = target[rows[0] * n_targets + t];
      return std::all_of(rows.begin(), rows.end(),
                         [&](std::uint32_t row) { return target[row * n_targets + t] == first; });
    };
    sums.is_pure = sums.is_pure && (has_classes ? is_as_first(rules.labels) : is_as_first(rules.number));
    if (has_classes || measure.criterion == Criterion::poisson) continue;
    double sum = 0;
    for (const std::uint32_t row : rows) sum += rules.weight_of(row) * rules.number[row * n_targets + t];
    sums.shifts[t] = sum / sums.weight;
  }
  sums.shift = sums.shifts[0];
  sums.sum.assign(measure.width, 0.0);
  for (const std::uint32_t row : rows) add_row(rules, sums, row, sums.sum.data());
  sums.purity = measure.purity(sums.sum.data(), sums.weight);
  sums.centre = sums.shift + sums.sum[0] / sums.weight;
  sums.mass = 0;
  double besides = 0;
  for (std::size_t t = 0; t < n_targets; ++t) {
    const TargetSums own = sums_of(rules, rows, sums, t);
    sums.mass += own.mass / static_cast<double>(n_targets);
    besides += own.besides / static_cast<double>(n_targets);
    if (measure.criterion == Criterion::absolute_error) sums.centre = own.median;
  }
  if (measure.criterion == Criterion::absolute_error) sums.purity = -sums.mass;
  sums.tolerance = kEqualGain * (std::abs(sums.mass) + besides);
}

}  // namespace margrove::tree
