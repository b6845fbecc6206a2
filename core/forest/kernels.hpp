// The best test among the sorted cells of a node: what is added up from row to row, by criterion and by what rows
// weigh.
//
// A kernel adds the node's rows to the left branch one by one, in the order of a column. Between two rows of different
// ranks it compares the score of the test that cuts there with the best. The scores are those of tree/scan.cpp and
// tree/weighted.hpp, by the same operations, so that a forest's trees are those that the solver of single trees grows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "forest/task.hpp"
#include "tree/weighted.hpp"

namespace margrove::forest {

// Rows of a node that are of one class: they lie side by side, class by class.
struct Segment {
  std::uint32_t label, begin, end;
  std::int64_t weight;
};

// Of a row where the target is a number: its weight w and w (y − shift), with the shift of its node.
struct NumberRow {
  double weight, term;
};

// The rows of a node as the criterion sees them.
struct NodeSums {
  std::vector<Segment> segments;  // where weights are numbers of draws
  std::int64_t rows = 0;
  double weight = 0;
  bool is_pure = false;
  std::vector<double> sum;          // the weight of each class; of numbers {Σ w (y − shift), Σ w (y − shift)²}
  std::vector<std::int64_t> whole;  // of each class, as a multiple of `unit`: exact, whatever the order
  std::int64_t whole_weight = 0;
  double unit = 1;
  std::size_t heaviest = 0;  // class
  double shift = 0, purity = 0, mass = 0;
  double min_weight = 0;  // of a branch
  double tolerance = 0;   // excesses that differ by less are equal
};

// The best test found of a column: ranks up to `cut` go left, `next` is the least that does not.
struct Found {
  double excess = -std::numeric_limits<double>::infinity();
  std::uint32_t cut = 0, next = 0;
  double theta = std::numeric_limits<double>::quiet_NaN();  // where it is not halfway between these two
  bool exists() const { return excess > -std::numeric_limits<double>::infinity(); }
};

// What the load of a cell says of its row. Where all weights are numbers of draws, it holds class and draws.
struct CountReader {
  static constexpr bool kHasCounts = true;
  int bits;
  std::uint32_t mask;
  std::uint32_t label(std::uint32_t load) const { return load >> bits; }
  std::int64_t whole(std::uint32_t load) const { return load & mask; }
  double weight(std::uint32_t load) const { return static_cast<double>(load & mask); }
};
// Else it is the place of the row among the node's.
struct PlaceReader {
  static constexpr bool kHasCounts = false;
  const std::uint32_t* labels;
  const std::int64_t* wholes;
  const double* weights;
  std::uint32_t label(std::uint32_t place) const { return labels[place]; }
  std::int64_t whole(std::uint32_t place) const { return wholes[place]; }
  double weight(std::uint32_t place) const { return weights[place]; }
};

struct KernelBase {
  const ForestTask& task;
  const NodeSums& node;
  Found& found;
  std::int64_t nl = 0;

  bool has_room() const { return nl >= task.min_rows && node.rows - nl >= task.min_rows; }
  void record(double excess, std::uint32_t cut, std::uint32_t next) {
    found.excess = excess;
    found.cut = cut;
    found.next = next;
  }
};

// Gini of two classes: `WeightedTwo` of tree/weighted.hpp.
template <class Reader>
struct GiniTwo : KernelBase {
  Reader reader;
  std::int64_t w, t1, wl = 0, l1 = 0;
  double bar, rounding;

  GiniTwo(const ForestTask& t, const NodeSums& s, Found& f, double floor, Reader r)
      : KernelBase{t, s, f}, reader(r), w(s.whole_weight), t1(s.whole[1]) {
    bar = std::max(-1.0, floor / s.unit * static_cast<double>(w) / 2);
    rounding = tree::kRoundingOfProducts * static_cast<double>(w) * static_cast<double>(w);
  }
  MARGROVE_INLINE void add(std::uint32_t load) {
    const std::int64_t x = reader.whole(load);
    wl += x;
    l1 += reader.label(load) ? x : 0;
    ++nl;
  }
  MARGROVE_INLINE void consider(std::uint32_t cut, std::uint32_t next) {
    const double all = w, l = wl, r = w - wl;
    const double d = std::abs(static_cast<double>(l1) * all - l * static_cast<double>(t1)) + rounding;
    if (d * d > bar * tree::kNearly * l * r) judge(cut, next);
  }
  void judge(std::uint32_t cut, std::uint32_t next) {
    const std::int64_t wr = w - wl;
    // D from the lighter side and the lighter class (of both its size is the same), where it loses no digits.
    const bool is_left = wl <= wr, is_one = t1 <= w - t1;
    const std::int64_t side = is_left ? wl : wr, ones = is_left ? l1 : t1 - l1;
    const std::int64_t few = is_one ? ones : side - ones, all_few = is_one ? t1 : w - t1;
    const double d =
        static_cast<double>(few) * static_cast<double>(w) - static_cast<double>(side) * static_cast<double>(all_few);
    const double here = tree::rounded_score(d * d / (static_cast<double>(wl) * static_cast<double>(wr)));
    if (!(here > bar) || !has_room() || static_cast<double>(std::min(wl, wr)) * node.unit < node.min_weight) return;
    bar = here;
    record(2 * bar / static_cast<double>(w) * node.unit, cut, next);
  }
};

// Gini of more classes: `WeightedMany` of tree/weighted.hpp. With L2 = Σ l_k² and M = Σ t_k l_k a score is also
// (L2 w + (T2 − 2 M) w_l) / (w_l w_r) − T2 / w, by which it is told which need a closer look.
template <class Reader>
struct GiniMany : KernelBase {
  Reader reader;
  std::vector<std::int64_t>& left;
  const std::int64_t w;
  std::int64_t wl = 0;
  double squares = 0, products = 0, t2 = 0, bar, rounding;

  GiniMany(const ForestTask& t, const NodeSums& s, Found& f, double floor, Reader r, std::vector<std::int64_t>& space)
      : KernelBase{t, s, f}, reader(r), left(space), w(s.whole_weight), bar(std::max(-1.0, floor / s.unit)) {
    left.assign(s.whole.size(), 0);
    for (const std::int64_t total : s.whole) t2 += static_cast<double>(total) * static_cast<double>(total);
    const double all = static_cast<double>(w);
    rounding = 4 * static_cast<double>(s.rows) * std::numeric_limits<double>::epsilon() * all * all * all;
  }
  MARGROVE_INLINE void add(std::uint32_t load) {
    const std::uint32_t k = reader.label(load);
    const std::int64_t x = reader.whole(load);
    const double l = left[k], more = x;
    left[k] += x;
    squares += more * (2 * l + more);
    products += more * static_cast<double>(node.whole[k]);
    wl += x;
    ++nl;
  }
  MARGROVE_INLINE void consider(std::uint32_t cut, std::uint32_t next) {
    constexpr double kNear = 1 - 1e-9;
    const double all = w, l = wl, r = w - wl;
    if (squares * all + (t2 - 2 * products) * l + rounding > (bar + t2 / all) * kNear * l * r) judge(cut, next);
  }
  void judge(std::uint32_t cut, std::uint32_t next) {
    const double here =
        tree::rounded_score(tree::gini_score(left.data(), node.whole.data(), node.whole.size(), wl, w, node.heaviest));
    if (!(here > bar) || !has_room() || static_cast<double>(std::min(wl, w - wl)) * node.unit < node.min_weight) return;
    bar = here;
    record(bar * node.unit, cut, next);
  }
};

// Everything else of classes: `Sums` of tree/scan.cpp.
template <class Reader>
struct ClassSums : KernelBase {
  Reader reader;
  std::vector<double>& left;  // (2 K): its upper half is the right branch
  double wl = 0, floor;

  ClassSums(const ForestTask& t, const NodeSums& s, Found& f, double at_least, Reader r, std::vector<double>& space)
      : KernelBase{t, s, f}, reader(r), left(space), floor(at_least - 2 * s.tolerance) {
    left.assign(2 * s.sum.size(), 0.0);
  }
  MARGROVE_INLINE void add(std::uint32_t load) {
    const double x = reader.weight(load);
    left[reader.label(load)] += x;
    wl += x;
    ++nl;
  }
  double purity(const double* sum, double weight) const {
    if (!Reader::kHasCounts || task.x_log_x.empty()) return task.measure.purity(sum, weight);
    if (weight <= 0) return 0;
    double u = 0;
    for (std::size_t k = 0; k < node.sum.size(); ++k) u += task.x_log_x[static_cast<std::size_t>(sum[k])];
    return u - task.x_log_x[static_cast<std::size_t>(weight)];
  }
  void consider(std::uint32_t cut, std::uint32_t next) {
    const double wr = std::max(0.0, node.weight - wl);
    if (!has_room() || wl < node.min_weight || wr < node.min_weight) return;
    const std::size_t width = node.sum.size();
    double* right = left.data() + width;
    for (std::size_t k = 0; k < width; ++k) right[k] = node.sum[k] - left[k];
    const double score = purity(left.data(), wl) + purity(right, wr) - node.purity;
    if (score > floor && (!found.exists() || score > found.excess + node.tolerance)) record(score, cut, next);
  }
};

// Squared error: `SquaredError` of tree/scan.cpp.
struct NumberKernel : KernelBase {
  const NumberRow* rows;  // by place
  double wl = 0, s = 0, bar;

  NumberKernel(const ForestTask& t, const NodeSums& sums, Found& f, double floor, const NumberRow* of)
      : KernelBase{t, sums, f}, rows(of), bar(floor - 2 * sums.tolerance + sums.purity) {}
  MARGROVE_INLINE void add(std::uint32_t place) {
    s += rows[place].term;
    wl += rows[place].weight;
    ++nl;
  }
  static double purity(double sum, double weight) {
    return tree::number_purity(tree::Criterion::squared_error, sum, 0, weight, 0);
  }
  MARGROVE_INLINE void consider(std::uint32_t cut, std::uint32_t next) {
    const double wr = std::max(0.0, node.weight - wl), right = node.sum[0] - s;
    if (s * s * wr + right * right * wl < bar * tree::kAlmost * wl * wr) return;
    if (!has_room() || wl < node.min_weight || wr < node.min_weight) return;
    const double score = purity(s, wl) + purity(right, wr) - node.purity;
    if (found.exists() && !(score > found.excess + node.tolerance)) return;
    bar = score + node.tolerance + node.purity;
    record(score, cut, next);
  }
};

}  // namespace margrove::forest
