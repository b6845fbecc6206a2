#include "forest/tree_grower.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "forest/partition.hpp"
#include "forest/sorting.hpp"
#include "index.hpp"

namespace margrove::forest {
namespace {

using tree::Criterion;

template <class T>
void shrink(std::vector<T>& from, std::vector<T>& to) {
  to.assign(from.begin(), from.end());
  from.clear();
}

}  // namespace

TreeGrower::TreeGrower(const ForestTask& task, const RankTable& table, const CellRows& cells)
    : task_(task),
      table_(table),
      rows_(cells),
      has_counts_(task.has_counts()),
      width_(task.has_classes() ? static_cast<std::size_t>(task.n_classes) : 2),
      best_(task, table),
      random_(task, cells),
      count_(static_cast<std::size_t>(task.n)) {
  sums_.sum.resize(width_);
  sums_.whole.resize(width_);
}

// ---- the rows of a tree

void TreeGrower::draw_rows(std::int64_t t) {
  if (task_.n_drawn > 0)
    count_draws(task_.seed_of(t), task_.n_drawn, count_);
  else
    std::fill(count_.begin(), count_.end(), 1u);
  std::uint32_t most = 1;
  row_.clear();
  for (std::size_t i = 0; i < count_.size(); ++i) {
    const std::uint32_t row = has_counts_ ? task_.by_class[i] : static_cast<std::uint32_t>(i);
    most = std::max(most, count_[row]);
    if (count_[row]) row_.push_back(row);
  }
  const std::size_t size = row_.size();
  count_bits_ = std::bit_width(most);
  const int class_bits = std::bit_width(static_cast<unsigned>(std::max(task_.n_classes - 1, 1)));
  const int place_bits = std::bit_width(size - 1);
  load_bits_ = has_counts_ ? count_bits_ + class_bits : std::max(place_bits, 1);
  load_.resize(task_.has_classes() ? size : 0);
  weight_.resize(has_counts_ ? 0 : size);
  number_.resize(task_.has_classes() ? 0 : size);
  total_weight_ = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t row = row_[i], count = count_[row];
    const double w = task_.weight.empty() ? count : count * task_.weight[row];
    total_weight_ += w;
    if (!has_counts_) weight_[i] = w;
    if (!task_.has_classes())
      number_[i] = task_.number[row];
    else if (has_counts_)
      load_[i] = static_cast<std::uint32_t>(task_.label[row]) << count_bits_ | count;
    else
      load_[i] = static_cast<std::uint32_t>(task_.label[row]);
  }
}

void TreeGrower::plant(std::int64_t t) {
  draw_rows(t);
  sums_.min_weight = std::max(task_.min_weight, task_.min_weight_share * total_weight_);
  const std::size_t size = row_.size();
  spare_row_.resize(size + 16);  // whole vectors are stored
  key_.resize(size);
  spare_load_.resize(load_.size() + 16);
  spare_weight_.resize(weight_.size());
  spare_number_.resize(number_.size());
  is_gini_ = best_.begin_tree(static_cast<std::int64_t>(total_weight_), count_bits_, load_bits_);
  is_random_ = task_.is_random && (has_counts_ || !task_.has_classes());
  if (is_random_) random_.begin_tree(count_bits_);
  cells_.resize(is_gini_ || is_random_ ? 0 : size);
  other_.resize(cells_.size());
  if (!has_counts_ && task_.has_classes()) whole_.resize(size);
  alive_.clear();
  for (std::uint32_t j = 0; j < task_.columns.size(); ++j)
    if (task_.is_random || table_.n_ranks(j) > 1) alive_.push_back(j);
  tree_.decrease.assign(task_.columns.size(), 0.0);
  const auto all = static_cast<std::uint32_t>(alive_.size());
  stack_.assign(1, Open{0, static_cast<std::uint32_t>(size), 0, tree::mixed(task_.seed_of(t)), -1, 0, all});
}

GrownTree TreeGrower::take() {
  GrownTree grown;
  shrink(tree_.feature, grown.feature);
  shrink(tree_.right, grown.right);
  shrink(tree_.threshold, grown.threshold);
  shrink(tree_.leaf_weight, grown.leaf_weight);
  shrink(tree_.leaf_rows, grown.leaf_rows);
  shrink(tree_.leaf_shape, grown.leaf_shape);
  shrink(tree_.shares, grown.shares);
  shrink(tree_.mean, grown.mean);
  shrink(tree_.impurity, grown.impurity);
  shrink(tree_.decrease, grown.decrease);
  return grown;
}

bool TreeGrower::run(std::chrono::steady_clock::time_point until) {
  constexpr std::uint32_t kRowsPerLook = 1 << 12;  // rows of nodes between two looks at the clock: some 100 µs
  std::uint32_t passed = kRowsPerLook;
  while (!stack_.empty()) {
    if (passed >= kRowsPerLook) {
      if (std::chrono::steady_clock::now() >= until) return false;
      passed = 0;
    }
    const Open node = stack_.back();
    stack_.pop_back();
    passed += node.size;
    grow(node);
  }
  return true;
}

// ---- a node

void TreeGrower::grow(const Open& node) {
  if (node.parent >= 0) tree_.right[node.parent] = static_cast<std::int32_t>(tree_.feature.size());
  alive_.resize(node.alive_end);
  summarise(node);
  std::uint32_t column = 0;
  Found best;
  if (is_closed(node) || !search(node, column, best)) return add_leaf(node);
  split(node, column, best);
}

bool TreeGrower::is_closed(const Open& node) const {
  return sums_.is_pure || node.depth >= task_.max_depth || node.size < task_.min_rows_to_split ||
         node.size < 2 * task_.min_rows || sums_.weight < 2 * sums_.min_weight;
}

void TreeGrower::add_leaf(const Open& node) {
  const auto leaf = static_cast<std::int32_t>(tree_.leaf_rows.size());
  tree_.feature.push_back(-1);
  tree_.right.push_back(leaf);
  tree_.threshold.push_back(std::numeric_limits<double>::quiet_NaN());
  tree_.leaf_rows.push_back(static_cast<std::int32_t>(node.size));
  tree_.leaf_weight.push_back(sums_.weight);
  if (!task_.has_classes()) {
    // Around one of its numbers the mean of a leaf whose numbers are equal is that number, to the last digit.
    const double* y = number_.data() + node.begin;
    const double* w = weight_.data() + node.begin;
    double off = 0, square = 0;
    for (std::uint32_t i = 0; i < node.size; ++i) off += w[i] * (y[i] - y[0]);
    off /= sums_.weight;
    for (std::uint32_t i = 0; i < node.size; ++i) square += w[i] * ((y[i] - y[0] - off) * (y[i] - y[0] - off));
    tree_.mean.push_back(y[0] + off);
    tree_.impurity.push_back(square / sums_.weight);
    return;
  }
  if (sums_.is_pure) {
    const auto k = std::max_element(sums_.sum.begin(), sums_.sum.end()) - sums_.sum.begin();
    tree_.leaf_shape.push_back(static_cast<std::int32_t>(k));
    return;
  }
  tree_.leaf_shape.push_back(static_cast<std::int32_t>(width_ + tree_.shares.size() / width_));
  for (const double sum : sums_.sum) tree_.shares.push_back(sum / sums_.weight);
}

void TreeGrower::split(const Open& node, std::uint32_t column, const Found& test) {
  double threshold = test.theta;
  const std::uint32_t left = partition(node, column, test, threshold);
  const auto id = static_cast<std::int64_t>(tree_.feature.size());
  tree_.feature.push_back(static_cast<std::int32_t>(column));
  tree_.right.push_back(0);
  tree_.threshold.push_back(threshold);
  tree_.decrease[column] += test.excess;
  std::uint32_t alive_begin = node.alive_begin, alive_end = node.alive_end;
  if (list_alive(node)) {
    alive_begin = alive_end;
    alive_end = static_cast<std::uint32_t>(alive_.size());
  }
  const auto child = [&](std::uint32_t branch, std::uint32_t begin, std::uint32_t size) {
    const std::uint64_t path = tree::mixed(node.path + branch + 1);
    stack_.push_back({begin, size, node.depth + 1, path, branch ? id : -1, alive_begin, alive_end});
  };
  child(1, node.begin + left, node.size - left);
  child(0, node.begin, left);
}

// Appends the columns that are not known to be constant. False if these are all that were alive.
bool TreeGrower::list_alive(const Open& node) {
  if (is_best_) return best_.list_alive(alive_);
  if (is_random_) return random_.list_alive(alive_);
  if (constant_.empty()) return false;
  std::sort(constant_.begin(), constant_.end());
  for (std::uint32_t i = node.alive_begin; i < node.alive_end; ++i)
    if (!std::binary_search(constant_.begin(), constant_.end(), alive_[i])) alive_.push_back(alive_[i]);
  return true;
}

// ---- the sums of a node

void TreeGrower::summarise(const Open& node) {
  sums_.rows = node.size;
  if (!task_.has_classes()) return summarise_numbers(node);
  has_counts_ ? summarise_counts(node) : summarise_weights(node);
  sums_.purity = task_.measure.purity(sums_.sum.data(), sums_.weight);
  sums_.mass = task_.measure.criterion == Criterion::entropy ? -sums_.purity : sums_.weight - sums_.purity;
  sums_.tolerance = tree::kEqualGain * sums_.mass;
  sums_.heaviest =
      static_cast<std::size_t>(std::max_element(sums_.whole.begin(), sums_.whole.end()) - sums_.whole.begin());
}

void TreeGrower::summarise_counts(const Open& node) {
  const CountReader reader{count_bits_, (1u << count_bits_) - 1};
  std::fill(sums_.whole.begin(), sums_.whole.end(), 0);
  sums_.segments.clear();
  sums_.whole_weight = 0;
  const std::uint32_t* load = load_.data() + node.begin;
  for (std::uint32_t begin = 0, end = 0; begin < node.size; begin = end) {
    const std::uint32_t label = reader.label(load[begin]);
    std::int64_t weight = 0;
    for (; end < node.size && reader.label(load[end]) == label; ++end) weight += reader.whole(load[end]);
    sums_.whole[label] = weight;
    sums_.whole_weight += weight;
    sums_.segments.push_back({label, begin, end, weight});
  }
  sums_.is_pure = sums_.segments.size() == 1;
  std::copy(sums_.whole.begin(), sums_.whole.end(), sums_.sum.begin());
  sums_.weight = static_cast<double>(sums_.whole_weight);
}

// Also as whole numbers, whose sums are exact: `Grower::weigh`.
void TreeGrower::summarise_weights(const Open& node) {
  const std::uint32_t* label = load_.data() + node.begin;
  const double* weight = weight_.data() + node.begin;
  std::fill(sums_.sum.begin(), sums_.sum.end(), 0.0);
  sums_.weight = 0;
  sums_.is_pure = true;
  for (std::uint32_t i = 0; i < node.size; ++i) {
    sums_.sum[label[i]] += weight[i];
    sums_.weight += weight[i];
    sums_.is_pure &= label[i] == label[0];
  }
  if (task_.measure.criterion != Criterion::gini || task_.is_random) return;
  const int bits = 60 - std::ilogb(sums_.weight);
  const double scale = std::ldexp(1.0, bits);
  sums_.unit = std::ldexp(1.0, -bits);
  std::fill(sums_.whole.begin(), sums_.whole.end(), 0);
  for (std::uint32_t i = 0; i < node.size; ++i) {
    whole_[i] = std::max(std::int64_t{1}, static_cast<std::int64_t>(weight[i] * scale + 0.5));
    sums_.whole[label[i]] += whole_[i];
  }
  sums_.whole_weight = std::accumulate(sums_.whole.begin(), sums_.whole.end(), std::int64_t{0});
}

void TreeGrower::summarise_numbers(const Open& node) {
  const double* y = number_.data() + node.begin;
  const double* w = weight_.data() + node.begin;
  double sum = 0, weight = 0, off = 0, squares = 0;
  sums_.is_pure = true;
  for (std::uint32_t i = 0; i < node.size; ++i) {
    sums_.is_pure &= y[i] == y[0];
    sum += w[i] * y[i];
    weight += w[i];
  }
  sums_.weight = weight;
  sums_.shift = sum / weight;
  for (std::uint32_t i = 0; i < node.size; ++i) {
    const double from = y[i] - sums_.shift;
    off += w[i] * from;
    squares += w[i] * from * from;
  }
  sums_.sum[0] = off;
  sums_.sum[1] = squares;
  sums_.purity = tree::number_purity(Criterion::squared_error, off, squares, weight, 0);
  sums_.mass = tree::squares_around_mean(sums_.sum.data(), weight);
  sums_.tolerance = tree::kEqualGain * std::abs(sums_.mass);
}

// ---- the best test of a node

bool TreeGrower::search(const Open& node, std::uint32_t& column, Found& best) {
  const std::span<const std::uint32_t> alive{alive_.data() + node.alive_begin, node.alive_end - node.alive_begin};
  if (!task_.has_classes()) {
    number_rows_.resize(std::max<std::size_t>(number_rows_.size(), node.size));
    for (std::uint32_t i = 0; i < node.size; ++i) {
      const double weight = weight_[node.begin + i];
      number_rows_[i] = {weight, weight * (number_[node.begin + i] - sums_.shift)};
    }
  }
  const NodeRows rows{
      row_.data() + node.begin, node.size, node.path, alive, load_.data() + (has_counts_ ? node.begin : 0),
      number_rows_.data()};
  is_best_ = is_gini_ || (!task_.has_classes() && best_.begin_node(rows, sums_));
  const bool is_found = is_best_     ? best_.search(rows, sums_, column, best)
                        : is_random_ ? random_.search(rows, sums_, column, best)
                                     : search_columns(node, column, best);
  if (!is_found) return false;
  const double gain = (best.excess + sums_.tolerance) / sums_.weight;
  return gain >= 0 && sums_.weight / total_weight_ * gain >= task_.min_impurity_decrease;
}

bool TreeGrower::search_columns(const Open& node, std::uint32_t& column, Found& best) {
  const std::size_t alive = node.alive_end - node.alive_begin;
  const std::size_t wanted = task_.max_columns ? static_cast<std::size_t>(task_.max_columns) : alive;
  constant_.clear();
  draw_.begin(node.path, {alive_.data() + node.alive_begin, alive}, task_.column_key, wanted);
  Found found;
  for (std::size_t looked_at = 0; draw_.has_next();) {
    if (looked_at >= wanted && best.exists()) break;
    const std::uint32_t j = draw_.next();
    found = {};
    const double floor = best.exists() ? best.excess + sums_.tolerance : tree::kNoFloor;
    const bool has_tests = task_.is_random ? scan_random(node, j, found) : scan_column(node, j, floor, found);
    if (!has_tests) {
      constant_.push_back(j);
      continue;
    }
    ++looked_at;
    if (!found.exists() || (best.exists() && !(found.excess > best.excess + sums_.tolerance))) continue;
    best = found;
    column = j;
  }
  return best.exists();
}

PlaceReader TreeGrower::places_of(const Open& node) const {
  return {load_.data() + node.begin, whole_.data(), weight_.data() + node.begin};
}

template <class Use>
void TreeGrower::with_class_kernel(const Open& node, double floor, Found& found, Use use) {
  const auto go = [&](const auto& reader) {
    using Reader = std::decay_t<decltype(reader)>;
    if (task_.is_random || task_.measure.criterion != Criterion::gini)
      use(ClassSums<Reader>(task_, sums_, found, floor, reader, left_));
    else if (width_ == 2)
      use(GiniTwo<Reader>(task_, sums_, found, floor, reader));
    else
      use(GiniMany<Reader>(task_, sums_, found, floor, reader, left_whole_));
  };
  has_counts_ ? go(CountReader{count_bits_, (1u << count_bits_) - 1}) : go(places_of(node));
}

// use(the kernel that compares tests)
template <class Use>
void TreeGrower::with_kernel(const Open& node, double floor, Found& found, Use use) {
  if (task_.has_classes()) return with_class_kernel(node, floor, found, use);
  use(NumberKernel(task_, sums_, found, floor, number_rows_.data()));
}

bool TreeGrower::scan_column(const Open& node, std::uint32_t column, double floor, Found& found) {
  const int rank_bits = std::bit_width(table_.n_ranks(column));
  return rank_bits + load_bits_ <= 32 ? scan_cells<std::uint32_t>(node, column, floor, found)
                                      : scan_cells<std::uint64_t>(node, column, floor, found);
}

template <class Cell>
bool TreeGrower::scan_cells(const Open& node, std::uint32_t column, double floor, Found& found) {
  const int bits = load_bits_;
  Cell* cells = reinterpret_cast<Cell*>(cells_.data());
  Cell least = ~Cell{0}, most = 0;
  table_.visit(column, [&](const auto& rank) {
    for (std::uint32_t i = 0; i < node.size; ++i) {
      const std::uint32_t at = node.begin + i;
      const Cell cell = static_cast<Cell>(rank[row_[at]]) << bits | load_of(at, node.begin);
      least = std::min(least, cell);
      most = std::max(most, cell);
      cells[i] = cell;
    }
  });
  if (least >> bits == most >> bits) return false;
  const Cell* sorted = sort_cells(cells, reinterpret_cast<Cell*>(other_.data()), node.size, bits, least, most);
  const Cell mask = (Cell{1} << bits) - 1;
  with_kernel(node, floor, found, [&](auto&& kernel) {
    for (std::uint32_t i = 0; i + 1 < node.size; ++i) {
      kernel.add(static_cast<std::uint32_t>(sorted[i] & mask));
      const Cell key = sorted[i] >> bits, next = sorted[i + 1] >> bits;
      if (key != next) kernel.consider(static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(next));
    }
  });
  return true;
}

// A threshold drawn between the least and the largest cell.
bool TreeGrower::scan_random(const Open& node, std::uint32_t column, Found& found) {
  const tree::Column& cells = task_.columns[column];
  const std::uint32_t* row = row_.data() + node.begin;
  double low = cells.number(row[0]), high = low;
  for (std::uint32_t i = 0; i < node.size; ++i) {
    const double x = cells.number(row[i]);
    low = std::min(low, x);
    high = std::max(high, x);
  }
  if (!(low < high)) return false;
  const double cut = tree::random_cut(tree::place_of(node.path, column), low, high);
  with_kernel(node, tree::kNoFloor, found, [&](auto&& kernel) {
    for (std::uint32_t i = 0; i < node.size; ++i)
      if (cells.number(row[i]) <= cut) kernel.add(load_of(node.begin + i, node.begin));
    kernel.consider(0, 0);
  });
  found.theta = cut;
  return true;
}

// ---- splitting

// The rows of each branch side by side, in their order. Returns how many go left.
std::uint32_t TreeGrower::partition(const Open& node, std::uint32_t column, const Found& test, double& threshold) {
  const tree::Column& cells = task_.columns[column];
  const std::uint32_t* row = row_.data() + node.begin;
  const std::uint32_t* key = key_.data();
  std::uint32_t cut = 0;
  if (task_.is_random) {
    rows_.visit([&](const auto* cell, std::int64_t stride) {
      const auto* own = cell + column;
      for (std::uint32_t i = 0; i < node.size; ++i) key_[i] = !(static_cast<double>(own[row[i] * stride]) <= threshold);
    });
  } else {
    cut = test.cut;
    if (const std::uint32_t* known = is_best_ ? best_.ranks_of(column) : nullptr)
      key = known;
    else
      table_.visit(column, [&](const auto& rank) {
        for (std::uint32_t i = 0; i < node.size; ++i) key_[i] = rank[row[i]];
      });
    const auto [below, above] = ranks_around(key, node.size, cut);
    const auto cell_of = [&](std::uint32_t rank) {
      return cells.number(row[std::find(key, key + node.size, rank) - key]);
    };
    threshold = tree::halfway(cell_of(below), cell_of(above));
  }
  std::uint32_t left = 0;
  const auto part = [&](auto& values, auto& spare) {
    if (!values.empty()) left = partition_values(values.data() + node.begin, spare.data(), key, node.size, cut);
  };
  part(row_, spare_row_);
  part(load_, spare_load_);
  part(weight_, spare_weight_);
  part(number_, spare_number_);
  return left;
}

}  // namespace margrove::forest
