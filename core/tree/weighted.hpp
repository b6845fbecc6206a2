// Gini where rows have weights. At each node the weights are whole numbers, as multiples of `unit`, a 2^-61st or so of
// the node's weight: their sums are exact, whatever the order, and what is left of a sum is exact too.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tree/walk.hpp"

namespace margrove::tree {

// Tests whose excesses agree in all but the last 12 bits gain the same: the first of them is taken, by every path to
// it. Rounded to the nearest, so that numbers with few bits, which equal gains often are, do not fall apart.
inline double rounded_score(double score) {
  constexpr std::uint64_t kUnit = std::uint64_t{1} << 12;
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(score) + kUnit / 2) & ~(kUnit - 1));
}
// Of D, of w²: a difference of two products may be off by four roundings.
constexpr double kRoundingOfProducts = 0x1p-51;
// A chunk with a score this near to the best is looked at one by one: 1e-10 covers the rounding of its sums.
constexpr double kNearly = 1 - 1e-10;

// ---- Two classes.
// With weights l_1 of class 1 on the left, t_1 in all:  excess = 2 D² / (w w_l w_r),  D = l_1 w − w_l t_1.

// Adds the weights of some rows to `all`, and of those of class 1 to `ones`. Where tags hold the class.
void add_weights(const Tags& tags, const std::int64_t* weight, const std::uint32_t* tag, std::uint32_t size,
                 std::int64_t& all, std::int64_t& ones);

Sight look_at_weighted_two(const Tags& tags, const std::int64_t* weight, const std::uint32_t* key,
                           const std::uint32_t* tag, std::uint32_t size, std::int64_t w, std::int64_t t1, double bar,
                           std::int64_t& left, std::int64_t& left_ones);

template <bool IsPacked>
struct WeightedTwo : Walk {
  static constexpr bool kLooksAreCheap = true;
  const std::int64_t* weight;
  std::int64_t w, t1, wl = 0, l1 = 0, nl = 0;
  double bar;  // D² / (w_l w_r) of the best so far, or what must be surpassed

  WeightedTwo(const ScanRules& r, const NodeSums& s, ScanSpace&, double floor)
      : Walk(r, s), weight(r.whole_weight), w(s.whole_weight), t1(s.whole_sum[1]) {
    bar = std::max(-1.0, floor / s.unit * static_cast<double>(w) / 2);
  }
  void begin(const std::int64_t* left, std::int64_t rows) {
    wl = l1 = nl = 0;
    if (left) add_block(left, rows);
  }
  void add_block(const std::int64_t* sum, std::int64_t rows) {
    wl += sum[0] + sum[1];
    l1 += sum[1];
    nl += rows;
  }
  void add(std::uint32_t tag) {
    const std::int64_t x = weight[rules.tags.row(tag)];
    wl += x;
    l1 += label_of<IsPacked>(rules.tags, tag) ? x : 0;
    ++nl;
  }
  bool is_allowed() const {
    return has_room(nl) && static_cast<double>(std::min(wl, w - wl)) * node.unit >= rules.min_weight;
  }
  double score() const {
    const std::int64_t wr = w - wl;
    // D from the lighter side and the lighter class (of both its size is the same), where it loses no digits.
    const bool is_left = wl <= wr, is_one = t1 <= w - t1;
    const std::int64_t side = is_left ? wl : wr, ones = is_left ? l1 : t1 - l1;
    const std::int64_t few = is_one ? ones : side - ones, all_few = is_one ? t1 : w - t1;
    const double d =
        static_cast<double>(few) * static_cast<double>(w) - static_cast<double>(side) * static_cast<double>(all_few);
    return rounded_score(d * d / (static_cast<double>(wl) * static_cast<double>(wr)));
  }
  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    ++boundaries;
    const double here = score();
    if (here > bar && is_allowed()) {
      bar = here;
      record(key, left_row, next_key, right_row, nl, static_cast<double>(wl) * node.unit);
    }
  }
  // What no test can surpass that sends between `less` and `more` of each class to the left: the score is convex in
  // these, so it is largest at a corner.
  double limit(const std::int64_t* less, const std::int64_t* more) const {
    double most = 0;
    for (const std::int64_t zeros : {less[0], more[0]})
      for (const std::int64_t ones : {less[1], more[1]}) {
        const double l = zeros + ones, r = w - zeros - ones;
        const double d = static_cast<double>(ones) * static_cast<double>(w) - l * static_cast<double>(t1);
        const double high = std::abs(d) + kRoundingOfProducts * static_cast<double>(w) * static_cast<double>(w);
        if (l > 0 && r > 0) most = std::max(most, high * high / (l * r));
      }
    return rounded_score(most);
  }
  bool skip(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    if (!IsPacked || bar < 0) return false;
    if (boundaries_among(key, size) == 0) {
      add_weights(rules.tags, weight, tag, size, wl, l1);
      nl += size;
      return true;
    }
    std::int64_t left = wl, left_ones = l1;
    const Sight sight = look_at_weighted_two(rules.tags, weight, key, tag, size, w, t1, bar * kNearly, left, left_ones);
    if (sight.may_win) return false;
    wl = left;
    l1 = left_ones;
    nl += size;
    boundaries += sight.boundaries;
    return true;
  }
  double excess() const { return 2 * bar / static_cast<double>(w) * node.unit; }
};

// ---- K classes.
// The score is  w Σ d_k² / (w_l w_r),  d_k = l_k − w_l t_k / w.  With L2 = Σ l_k² and M = Σ t_k l_k it is also
// L2/w_l + (T2 − 2 M + L2)/w_r − T2/w, by which chunks are looked at: what is left of these sums in a node that is
// almost pure is rounding, so what may win is added up from the d_k.

// The score of a test that sends `left`, `left_weight` in all, of the node's `all` to the left, from the lighter side,
// and the d_k of the heaviest class from the others (the d_k sum to zero): no digits are lost.
inline double gini_score(const std::int64_t* left, const std::int64_t* all, std::size_t n_classes,
                         std::int64_t left_weight, std::int64_t weight, std::size_t heaviest) {
  const bool is_left = left_weight <= weight - left_weight;
  const double side = is_left ? left_weight : weight - left_weight;
  const double w = weight, part = side / w;
  double sum = 0, others = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    if (k == heaviest) continue;
    const std::int64_t here = is_left ? left[k] : all[k] - left[k];
    const double d = static_cast<double>(here) - part * all[k];
    sum += d * d;
    others += d;
  }
  return (sum + others * others) / side * (w / static_cast<double>(is_left ? weight - left_weight : left_weight));
}

Sight look_at_weighted_gini(const std::uint32_t* key, const double* squares, const double* products,
                            const std::int64_t* left, std::uint32_t size, double w, double t2, double bar,
                            double rounding);

template <bool IsPacked>
struct WeightedMany : Walk {
  ScanSpace& space;
  const std::int64_t* weight;
  std::int64_t w, wl = 0, nl = 0;
  std::size_t heaviest;  // class
  double t2 = 0, squares = 0, products = 0, bar;

  WeightedMany(const ScanRules& r, const NodeSums& s, ScanSpace& own, double floor)
      : Walk(r, s), space(own), weight(r.whole_weight), w(s.whole_weight) {
    heaviest = std::max_element(s.whole_sum.begin(), s.whole_sum.end()) - s.whole_sum.begin();
    space.totals.assign(s.whole_sum.begin(), s.whole_sum.end());
    for (const double t : space.totals) t2 += t * t;
    bar = std::max(-1.0, floor / s.unit);
    space.squares.resize(kChunk);
    space.products.resize(kChunk);
    space.first.resize(kChunk);
  }
  void begin(const std::int64_t* left, std::int64_t rows) {
    space.whole_left.assign(node.whole_sum.size(), 0);
    squares = products = 0;
    wl = nl = 0;
    if (left) add_block(left, rows);
  }
  void add_block(const std::int64_t* sum, std::int64_t rows) {
    for (std::size_t k = 0; k < node.whole_sum.size(); ++k) {
      wl += sum[k];
      space.whole_left[k] += sum[k];
    }
    add_squares();
    nl += rows;
  }
  void add_squares() {
    squares = products = 0;
    for (std::size_t k = 0; k < node.whole_sum.size(); ++k) {
      const double l = space.whole_left[k];
      squares += l * l;
      products += l * static_cast<double>(node.whole_sum[k]);
    }
  }
  MARGROVE_INLINE void put(std::uint32_t k, std::int64_t x) {
    const double l = space.whole_left[k], more = x;
    space.whole_left[k] += x;
    squares += more * (2 * l + more);
    products += more * space.totals[k];
    wl += x;
  }
  void add(std::uint32_t tag) {
    put(label_of<IsPacked>(rules.tags, tag), weight[rules.tags.row(tag)]);
    ++nl;
  }
  bool is_allowed() const {
    return has_room(nl) && static_cast<double>(std::min(wl, w - wl)) * node.unit >= rules.min_weight;
  }
  double score() const {
    return rounded_score(
        gini_score(space.whole_left.data(), node.whole_sum.data(), node.whole_sum.size(), wl, w, heaviest));
  }
  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    ++boundaries;
    const double here = score();
    if (here > bar && is_allowed()) {
      bar = here;
      record(key, left_row, next_key, right_row, nl, static_cast<double>(wl) * node.unit);
    }
  }
  // What no test can surpass that sends between `less` and `more` of each class to the left. The score is
  // w Σ d_k² / (w_l w_r) with d_k = l_k − w_l t_k / w; each d_k lies between two ends, and w_l w_r is least at one.
  double limit(const std::int64_t* less, const std::int64_t* more) const {
    const double all = w;
    double least = 0, most = 0, sum = 0;
    for (std::size_t k = 0; k < node.whole_sum.size(); ++k) {
      least += less[k];
      most += more[k];
    }
    for (std::size_t k = 0; k < node.whole_sum.size(); ++k) {
      const double l = less[k], step = static_cast<double>(more[k]) - l;
      const double share = static_cast<double>(node.whole_sum[k]) / all, d = l - least * share;
      const double up = d + step * (1 - share), down = d - (most - least - step) * share;
      const double high = std::max(std::abs(up), std::abs(down)) + kRoundingOfProducts * all;
      sum += high * high;
    }
    const double product = std::min(least * (all - least), most * (all - most));
    return product > 0 ? rounded_score(all * sum / product) : std::numeric_limits<double>::infinity();
  }
  // Adds rows, and writes the sums up to each. These are kept in registers on the way.
  void add_chunk(const std::uint32_t* tag, std::uint32_t size) {
    std::int64_t *left = space.whole_left.data(), *sums = space.first.data(), all = wl;
    double *to_squares = space.squares.data(), *to_products = space.products.data(), l2 = squares, m = products;
    const double* total = space.totals.data();
    const Tags tags = rules.tags;
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t k = label_of<IsPacked>(tags, tag[i]);
      const std::int64_t x = weight[tags.row(tag[i])];
      const double l = left[k], more = x;
      left[k] += x;
      to_squares[i] = l2 += more * (2 * l + more);
      to_products[i] = m += more * total[k];
      sums[i] = all += x;
    }
    squares = l2;
    products = m;
    wl = all;
  }
  // By runs of equal keys: nothing is skipped, every test is considered.
  void pass_runs(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    std::int64_t* left = space.whole_left.data();
    const Tags tags = rules.tags;
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::int64_t x = weight[tags.row(tag[i])];
      left[label_of<IsPacked>(tags, tag[i])] += x;
      wl += x;
      ++nl;
      if (key[i] != key[i + 1]) consider(key[i], tags.row(tag[i]), key[i + 1], tags.row(tag[i + 1]));
    }
    add_squares();
  }
  bool skip(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    if (has_long_runs(boundaries_among(key, size), size, node.whole_sum.size())) {
      pass_runs(key, tag, size);
      return true;
    }
    const double squares_before = squares, products_before = products;
    const std::int64_t left_before = wl;
    add_chunk(tag, size);
    const double all = w;
    const double rounding = 4 * static_cast<double>(node.rows) * std::numeric_limits<double>::epsilon();
    const Sight sight = look_at_weighted_gini(key, space.squares.data(), space.products.data(), space.first.data(),
                                              size, all, t2, bar * kNearly + t2 / all, rounding * all * all * all);
    if (sight.may_win) {  // back, and one by one
      for (std::uint32_t i = 0; i < size; ++i)
        space.whole_left[label_of<IsPacked>(rules.tags, tag[i])] -= weight[rules.tags.row(tag[i])];
      squares = squares_before;
      products = products_before;
      wl = left_before;
      return false;
    }
    nl += size;
    boundaries += sight.boundaries;
    return true;
  }
  double excess() const { return bar * node.unit; }
};

}  // namespace margrove::tree
