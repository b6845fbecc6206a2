// Tests on categories and intervals. The list groups the node's rows by key, so a level is a run of equal keys; the
// rows left out of the list are one more, and so are missing cells.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tree/absolute.hpp"
#include "tree/scan.hpp"

namespace margrove::tree {
namespace {

struct Level {
  std::uint32_t key;
  std::uint32_t begin, end;  // in the piece; empty for the mode
  std::int64_t rows;
  double weight;
};

class Levels {
 public:
  Levels(const ScanRules& rules, std::uint32_t mode, const Piece& piece, const NodeSums& node, ScanSpace& space)
      : rules_(rules), node_(node), piece_(piece), width_(node.sum.size()), sums_(space.level_sum) {
    sums_.clear();
    for (std::uint32_t begin = 0; begin < piece.size;) {
      std::uint32_t end = begin;
      while (end < piece.size && piece.key[end] == piece.key[begin]) ++end;
      add_run(begin, end);
      begin = end;
    }
    const std::int64_t left_out = node.rows - piece.size;
    if (left_out) add_mode(mode, left_out);
  }

  std::size_t size() const { return levels_.size(); }
  const Level& operator[](std::size_t l) const { return levels_[l]; }
  const double* sum(std::size_t l) const { return sums_.data() + l * width_; }

  // U of some levels together.
  double purity(const std::uint32_t* level, std::size_t count) const {
    if (rules_.measure.criterion == Criterion::absolute_error) {
      const std::size_t n_targets = rules_.measure.n_targets();
      double sum = 0;
      for (std::size_t t = 0; t < n_targets; ++t) {
        std::vector<Weighted> rows;
        for (std::size_t i = 0; i < count; ++i) add_numbers(levels_[level[i]], rows, t);
        sum += absolute_error(rows);
      }
      return -sum / static_cast<double>(n_targets);
    }
    std::vector<double> total(width_);
    double weight = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < width_; ++k) total[k] += sum(level[i])[k];
      weight += levels_[level[i]].weight;
    }
    return rules_.measure.purity(total.data(), weight);
  }

  // By what levels are ordered for class k, or for numbers: the share of the class, the mean.
  double share(std::size_t l, std::size_t k) const { return sum(l)[k] / levels_[l].weight; }

  double median(std::size_t l) const {
    std::vector<Weighted> rows;
    add_numbers(levels_[l], rows);
    return weighted_median(rows);
  }

 private:
  void add_numbers(const Level& level, std::vector<Weighted>& rows, std::size_t target = 0) const {
    const std::size_t n_targets = rules_.measure.n_targets();
    for (std::uint32_t at = level.begin; at < level.end; ++at) {
      const std::uint32_t row = rules_.tags.row(piece_.tag[at]);
      rows.emplace_back(rules_.number[row * n_targets + target], rules_.weight_of(row));
    }
  }

  void add_run(std::uint32_t begin, std::uint32_t end) {
    levels_.push_back({piece_.key[begin], begin, end, end - begin, 0.0});
    Level& level = levels_.back();
    sums_.resize(sums_.size() + width_, 0.0);
    double* sum = sums_.data() + sums_.size() - width_;
    for (std::uint32_t at = begin; at < end; ++at) level.weight += add_row(rules_, node_, piece_.tag[at], sum);
  }

  void add_mode(std::uint32_t mode, std::int64_t rows) {
    Level level{mode, 0, 0, rows, node_.weight};
    std::vector<double> rest(node_.sum);
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      level.weight -= levels_[l].weight;
      for (std::size_t k = 0; k < width_; ++k) rest[k] -= sum(l)[k];
    }
    // In its place by key, so that branches come in the order of keys.
    const auto at = std::lower_bound(levels_.begin(), levels_.end(), mode,
                                     [](const Level& a, std::uint32_t key) { return a.key < key; }) -
                    levels_.begin();
    levels_.insert(levels_.begin() + at, level);
    sums_.insert(sums_.begin() + at * static_cast<std::ptrdiff_t>(width_), rest.begin(), rest.end());
  }

  const ScanRules& rules_;
  const NodeSums& node_;
  const Piece& piece_;
  const std::size_t width_;
  std::vector<double>& sums_;
  std::vector<Level> levels_;
};

bool is_large_enough(const ScanRules& rules, std::int64_t rows, double weight) {
  return rows >= rules.min_rows && weight >= rules.min_weight;
}

// Whether the values of a monotone column's intervals go its way, within the bounds of columns above.
bool is_monotone(const ScanRules& rules, const Column& column, const NodeSums& node, const Levels& levels) {
  double before = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Criterion criterion = rules.measure.criterion;
    const double value = is_of_classes(criterion)                 ? levels.share(l, 1)
                         : criterion == Criterion::absolute_error ? levels.median(l)
                                                                  : node.shift + levels.share(l, 0);
    const bool has_before = l > 0 && levels[l].key != kMissing;
    if (!is_in_order(rules, column, node, has_before ? before : value, value)) return false;
    before = value;
  }
  return true;
}

void try_multiway(const ScanRules& rules, const Column& column, const NodeSums& node, const Levels& levels,
                  Candidate& found) {
  found.n_tests = 1;
  if (column.monotone && !is_monotone(rules, column, node, levels)) return;
  double total = 0, information = x_log_x(node.weight);
  for (std::uint32_t l = 0; l < levels.size(); ++l) {
    if (!is_large_enough(rules, levels[l].rows, levels[l].weight)) return;
    if (!rules.measure.is_possible(levels.sum(l), node.sum.data())) return;
    total += levels.purity(&l, 1);
    information -= x_log_x(levels[l].weight);
  }
  found.excess = total - node.purity;
  found.split_information = information / node.weight;
  found.keys.clear();
  found.branch.clear();
  for (std::uint32_t l = 0; l < levels.size(); ++l) {
    found.keys.push_back(levels[l].key);
    found.branch.push_back(l);
  }
}

// One of two branches.
struct Half {
  std::vector<double> sum;
  double weight = 0;
  std::int64_t rows = 0;

  void add(const Levels& levels, std::size_t l) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += levels.sum(l)[k];
    weight += levels[l].weight;
    rows += levels[l].rows;
  }
};

// order[0 .. count) go left, the rest of the levels right.
void try_two(const ScanRules& rules, const NodeSums& node, const Levels& levels, const Half& left,
             const std::vector<std::uint32_t>& order, std::size_t count, Half& right, Candidate& found) {
  right.weight = node.weight - left.weight;
  if (!is_large_enough(rules, left.rows, left.weight) || !is_large_enough(rules, node.rows - left.rows, right.weight))
    return;
  double excess = -node.purity;
  if (rules.measure.criterion == Criterion::absolute_error) {
    excess += levels.purity(order.data(), count) + levels.purity(order.data() + count, order.size() - count);
  } else {
    for (std::size_t k = 0; k < right.sum.size(); ++k) right.sum[k] = node.sum[k] - left.sum[k];
    const Measure& measure = rules.measure;
    if (!measure.is_possible(left.sum.data(), node.sum.data()) ||
        !measure.is_possible(right.sum.data(), node.sum.data()))
      return;
    excess += measure.purity(left.sum.data(), left.weight) + measure.purity(right.sum.data(), right.weight);
  }
  if (found.found() && excess <= found.excess + node.tolerance) return;
  found.excess = excess;
  found.split_information = split_information(left.weight, right.weight);
  found.keys.resize(levels.size());
  found.branch.assign(levels.size(), 1);
  for (std::size_t l = 0; l < levels.size(); ++l) found.keys[l] = levels[l].key;
  for (std::size_t i = 0; i < count; ++i) found.branch[order[i]] = 0;
}

// What all levels tell together: φ² of levels and classes, or the share of the numbers' variance between levels.
LevelTable all_levels(const ScanRules& rules, const NodeSums& node, const Levels& levels) {
  LevelTable table{static_cast<double>(levels.size())};
  double explained = 0;
  const bool has_classes = is_of_classes(rules.measure.criterion);
  const std::size_t n_sums = has_classes ? node.sum.size() : 1;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const double weight = std::max(levels[l].weight, kLeastLevel * node.weight);
    table.inverse_weight += 1 / weight;
    for (std::size_t k = 0; k < n_sums; ++k) {
      const double sum = levels.sum(l)[k];
      if (sum != 0) explained += sum / weight * (has_classes ? sum / node.sum[k] : sum);
    }
  }
  if (has_classes) {
    table.association = std::max(explained - 1, 0.0);
  } else if (rules.measure.criterion != Criterion::absolute_error) {
    const double of_mean = node.sum[0] / node.weight * node.sum[0], total = node.sum[1] - of_mean;
    table.association = total > 0 ? std::clamp((explained - of_mean) / total, 0.0, 1.0) : 0.0;
  }
  return table;
}

// For two classes and for numbers the best two sets are a prefix of the levels in the order of the share of class 1, or
// of the mean (Breiman et al. 1984, 4.2.2). For more classes: the best prefix of all orders by the share of a class.
void try_subsets(const ScanRules& rules, const NodeSums& node, const Levels& levels, Candidate& found) {
  found.n_tests = std::exp2(std::min<double>(static_cast<double>(levels.size()) - 1, 1000.0)) - 1;
  found.levels = all_levels(rules, node, levels);
  std::vector<std::uint32_t> order(levels.size());
  std::vector<double> by(levels.size());
  const bool has_classes = is_of_classes(rules.measure.criterion);
  const std::size_t n_classes = node.sum.size();
  const std::size_t first = has_classes && n_classes == 2 ? 1 : 0, last = has_classes ? n_classes : 1;
  Half right{node.sum};
  for (std::size_t k = first; k < last; ++k) {
    for (std::size_t l = 0; l < levels.size(); ++l)
      by[l] = rules.measure.criterion == Criterion::absolute_error ? levels.median(l) : levels.share(l, k);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return by[a] < by[b]; });
    Half left{std::vector<double>(node.sum.size())};
    for (std::size_t count = 1; count < levels.size(); ++count) {
      left.add(levels, order[count - 1]);
      try_two(rules, node, levels, left, order, count, right, found);
    }
  }
}

void try_one_against_rest(const ScanRules& rules, const NodeSums& node, const Levels& levels, Candidate& found) {
  found.n_tests = levels.size() == 2 ? 1 : static_cast<double>(levels.size());
  std::vector<std::uint32_t> order(levels.size());
  std::iota(order.begin(), order.end(), 0u);
  Half right{node.sum};
  for (std::size_t l = 0; l < levels.size(); ++l) {
    std::swap(order[0], order[l]);
    Half left{std::vector<double>(node.sum.size())};
    left.add(levels, order[0]);
    try_two(rules, node, levels, left, order, 1, right, found);
    std::swap(order[0], order[l]);
  }
}

}  // namespace

void scan_levels(const ScanRules& rules, const Column& column, std::uint32_t mode, const Piece& piece,
                 const NodeSums& node, ScanSpace& space, Candidate& found) {
  const Levels levels(rules, mode, piece, node, space);
  if (column.test == Test::subset)
    try_subsets(rules, node, levels, found);
  else if (column.test == Test::one_vs_rest)
    try_one_against_rest(rules, node, levels, found);
  else
    try_multiway(rules, column, node, levels, found);
}

}  // namespace margrove::tree
