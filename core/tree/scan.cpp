#include "tree/scan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "dispatch.hpp"
#include "tree/fitted.hpp"
#include "tree/squared.hpp"
#include "tree/walk.hpp"
#include "tree/weighted.hpp"
#include "tree/wide.hpp"

namespace margrove::tree {

MARGROVE_CLONES std::uint32_t boundaries_among(const std::uint32_t* key, std::uint32_t size) {
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < size; ++i) found += key[i] != key[i + 1];
  return found;
}

namespace {

constexpr std::int64_t kExactGroups = std::int64_t{1} << 25;   // rows: sums of sixteen fit 31 bits
constexpr std::int64_t kExactSquares = std::int64_t{1} << 26;  // rows: n² < 2^52 is exact in a double

// The lowest bits of some tags, added up.
MARGROVE_CLONES std::uint32_t add_lowest_bits(const std::uint32_t* tag, std::uint32_t size) {
  std::uint32_t ones = 0;
  for (std::uint32_t i = 0; i < size; ++i) ones += tag[i] & 1;
  return ones;
}

// ---- Two classes, gini, all weights one.
// With l_1 of the n_l rows on the left of class 1:  w · gain = 2 D² / (n n_l n_r),  D = l_1 n − n_l t_1, whole numbers.

MARGROVE_CLONES Sight look_at_two(const Tags& tags, const std::uint32_t* key, const std::uint32_t* tag,
                                  std::uint32_t size, double l1, double nl, double n, double t1, double best) {
  std::int32_t ones[kChunk], sum = 0, wins = 0, boundaries = 0;
  for (std::uint32_t i = 0; i < size; ++i) ones[i] = sum += static_cast<std::int32_t>(tag[i] & tags.mask);
  for (std::uint32_t i = 0; i < size; ++i) {
    const double left = nl + static_cast<double>(static_cast<std::int32_t>(i + 1));
    const double d = (l1 + static_cast<double>(ones[i])) * n - left * t1;
    const std::int32_t is_boundary = key[i] != key[i + 1];
    wins |= static_cast<std::int32_t>(d * d > best * left * (n - left)) & is_boundary;
    boundaries += is_boundary;
  }
  return {wins != 0, static_cast<std::uint32_t>(boundaries), static_cast<std::uint32_t>(sum)};
}

template <bool IsPacked>
struct TwoClasses : Walk {
  static constexpr bool kLooksAreCheap = true;
  double n, t1, best;
  std::int64_t l1 = 0, nl = 0;

  TwoClasses(const ScanRules& r, const NodeSums& s, ScanSpace&, double floor)
      : Walk(r, s), n(static_cast<double>(s.rows)), t1(s.sum[1]), best(std::max(-1.0, floor * n / 2)) {}

  void begin(const double* left, std::int64_t rows, double) {
    l1 = left ? static_cast<std::int64_t>(left[1]) : 0;
    nl = left ? rows : 0;
  }
  void add_block(const double* sum, std::int64_t rows, double) {
    l1 += static_cast<std::int64_t>(sum[1]);
    nl += rows;
  }
  void add(std::uint32_t tag) {
    l1 += label_of<IsPacked>(rules.tags, tag);
    ++nl;
  }
  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    ++boundaries;
    const double left = nl;
    const double d = static_cast<double>(l1) * n - left * t1, size = left * (n - left);
    if (d * d > best * size && has_room(nl)) {
      best = d * d / size;
      record(key, left_row, next_key, right_row, nl, left);
    }
  }
  bool skip(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    if (!IsPacked || best < 0) return false;
    if (key[0] == key[size]) {  // keys ascend: no test here
      l1 += add_lowest_bits(tag, size);
      nl += size;
      return true;
    }
    const auto l = static_cast<double>(l1), left = static_cast<double>(nl);
    const Sight sight = has_sixteen() ? look_by_sixteen(key, tag, size, l, left, n, t1, best * kAlmost)
                                      : look_at_two(rules.tags, key, tag, size, l, left, n, t1, best * kAlmost);
    if (sight.may_win) return false;
    l1 += sight.ones;
    nl += size;
    boundaries += sight.boundaries;
    return true;
  }
  double excess() const { return 2 * best / n; }
};

// ---- K classes, gini, all weights one.
// L2 = Σ l_k², M = Σ t_k l_k, R2 = Σ (t_k − l_k)² = T2 − 2 M + L2, whole numbers; the score is L2 / n_l + R2 / n_r.

MARGROVE_CLONES Sight look_at_gini(const std::uint32_t* key, const std::int64_t* l2, const std::int64_t* m,
                                   std::uint32_t size, double t2, double nl, double n, double best) {
  std::int32_t wins = 0, boundaries = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const double left = nl + static_cast<double>(static_cast<std::int32_t>(i + 1));
    const double score = static_cast<double>(l2[i]) * n + (t2 - 2 * static_cast<double>(m[i])) * left;
    const std::int32_t is_boundary = key[i] != key[i + 1];
    wins |= static_cast<std::int32_t>(score > best * left * (n - left)) & is_boundary;
    boundaries += is_boundary;
  }
  return {wins != 0, static_cast<std::uint32_t>(boundaries), 0};
}

// Σ l_k² and Σ t_k l_k.
MARGROVE_CLONES void add_classes(const std::uint32_t* left, const std::uint32_t* total, std::size_t n_classes,
                                 std::int64_t& squares, std::int64_t& products) {
  std::uint64_t l2 = 0, m = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    l2 += std::uint64_t{left[k]} * left[k];
    m += std::uint64_t{left[k]} * total[k];
  }
  squares = static_cast<std::int64_t>(l2);
  products = static_cast<std::int64_t>(m);
}

template <bool IsPacked>
struct ManyClasses : Walk {
  ScanSpace& space;
  double n, t2, best;
  std::int64_t l2 = 0, m = 0, nl = 0;

  ManyClasses(const ScanRules& r, const NodeSums& s, ScanSpace& w, double floor)
      : Walk(r, s),
        space(w),
        n(static_cast<double>(s.rows)),
        t2(static_cast<double>(s.whole)),
        best(std::max(0.0, floor + s.purity)) {
    space.first.resize(kChunk);
    space.second.resize(kChunk);
  }
  void begin(const double* left, std::int64_t rows, double weight) {
    space.left.assign(node.sum.size(), 0);
    l2 = m = nl = 0;
    if (left) add_block(left, rows, weight);
  }
  void add_block(const double* sum, std::int64_t rows, double) {
    l2 = m = 0;
    for (std::size_t k = 0; k < node.sum.size(); ++k) {
      const std::int64_t l = space.left[k] += static_cast<std::uint32_t>(sum[k]);
      l2 += l * l;
      m += l * node.seen[k];
    }
    nl += rows;
  }
  void add(std::uint32_t tag) {
    const std::uint32_t k = label_of<IsPacked>(rules.tags, tag);
    l2 += 2 * std::int64_t{space.left[k]++} + 1;
    m += node.seen[k];
    ++nl;
  }
  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    ++boundaries;
    const double left = nl;
    const double score =
        static_cast<double>(l2) / left + (t2 - 2 * static_cast<double>(m) + static_cast<double>(l2)) / (n - left);
    if (score > best && has_room(nl)) {
      best = score;
      record(key, left_row, next_key, right_row, nl, left);
    }
  }
  // The tests of a chunk whose running sums are known, one by one.
  void consider_all(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size, const std::int64_t* squares,
                    const std::int64_t* products) {
    for (std::uint32_t i = 0; i < size; ++i) {
      ++nl;
      if (key[i] == key[i + 1]) continue;
      l2 = squares[i];
      m = products[i];
      const double left = nl, score = static_cast<double>(l2) * n + (t2 - 2 * static_cast<double>(m)) * left;
      if (score > best * kAlmost * left * (n - left))
        consider(key[i], rules.tags.row(tag[i]), key[i + 1], rules.tags.row(tag[i + 1]));
      else
        ++boundaries;
    }
  }
  // By runs of equal keys: nothing is skipped, every test is considered.
  void pass_runs(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    std::uint32_t* left = space.left.data();
    const Tags tags = rules.tags;
    const auto settle = [&] { add_classes(left, node.seen.data(), node.seen.size(), l2, m); };
    for (std::uint32_t i = 0; i < size; ++i) {
      ++left[label_of<IsPacked>(tags, tag[i])];
      ++nl;
      if (key[i] == key[i + 1]) continue;
      settle();
      consider(key[i], tags.row(tag[i]), key[i + 1], tags.row(tag[i + 1]));
    }
    settle();
  }
  // Sixteen rows at a time.
  void pass_groups(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    ManySums sums{space.left.data(),
                  node.seen.data(),
                  static_cast<std::uint32_t>(node.seen.size()),
                  t2,
                  n,
                  static_cast<double>(l2),
                  static_cast<double>(m),
                  static_cast<double>(nl),
                  0,
                  {},
                  {}};
    for (std::uint32_t i = 0; i < size;) {
      i += pass_by_sixteen(key + i, tag + i, size - i, rules.tags.mask, best * kAlmost, sums);
      nl = static_cast<std::int64_t>(sums.nl);
      if (i == size) break;
      const std::uint32_t group = std::min(size - i, kPart);
      consider_all(key + i, tag + i, group, sums.squares, sums.products);
      sums.nl = static_cast<double>(nl);
      i += group;
    }
    l2 = static_cast<std::int64_t>(sums.l2);
    m = static_cast<std::int64_t>(sums.m);
    boundaries += sums.boundaries;
  }
  bool skip(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    if (IsPacked && node.seen.size() <= kMostWide && node.rows < kExactGroups && has_sixteen()) {
      pass_groups(key, tag, size);
      return true;
    }
    if (has_long_runs(boundaries_among(key, size), size, node.seen.size())) {
      pass_runs(key, tag, size);
      return true;
    }
    std::int64_t squares = l2, products = m;
    const Tags tags = rules.tags;
    std::uint32_t* left = space.left.data();
    const std::uint32_t* total = node.seen.data();
    std::int64_t *first = space.first.data(), *second = space.second.data();
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t k = label_of<IsPacked>(tags, tag[i]);
      first[i] = squares += 2 * std::int64_t{left[k]++} + 1;
      second[i] = products += total[k];
    }
    const Sight sight = look_at_gini(key, first, second, size, t2, static_cast<double>(nl), n, best * kAlmost);
    if (sight.may_win) {
      consider_all(key, tag, size, first, second);
    } else {
      nl += size;
      boundaries += sight.boundaries;
    }
    l2 = squares;
    m = products;
    return true;
  }
  double excess() const { return best - node.purity; }
};

// ---- Entropy, all weights one.
// With F(x) = x log2 x in fixed point the score Σ F(l_k) − F(n_l) + Σ F(r_k) − F(n_r) is a whole number.

MARGROVE_CLONES Sight look_at_entropy(const std::uint32_t* key, const std::int64_t* sum, const std::int64_t* f_left,
                                      const std::int64_t* f_right, std::uint32_t size, std::int64_t best) {
  std::int32_t boundaries = 0;
  std::int64_t wins = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::int64_t score = sum[i] - f_left[i] - f_right[-static_cast<std::int64_t>(i)];
    const std::int32_t is_boundary = key[i] != key[i + 1];
    wins |= static_cast<std::int64_t>(score > best) & is_boundary;
    boundaries += is_boundary;
  }
  return {wins != 0, static_cast<std::uint32_t>(boundaries), 0};
}

template <bool IsPacked>
struct Entropy : Walk {
  ScanSpace& space;
  const std::int64_t* f;
  std::int64_t sum = 0, nl = 0, best;

  Entropy(const ScanRules& r, const NodeSums& s, ScanSpace& w, double floor)
      : Walk(r, s), space(w), f(r.x_log_x.data()), best(std::numeric_limits<std::int64_t>::min()) {
    if (floor > 0) best = no_test() + static_cast<std::int64_t>(floor / r.x_log_x_unit);
    space.first.resize(kChunk);
  }
  std::int64_t no_test() const { return node.whole - f[node.rows]; }
  void begin(const double* left, std::int64_t rows, double weight) {
    space.left.assign(node.sum.size(), 0);
    sum = node.whole;
    nl = 0;
    if (left) add_block(left, rows, weight);
  }
  void add_block(const double* block, std::int64_t rows, double) {
    sum = 0;
    for (std::size_t k = 0; k < node.sum.size(); ++k) {
      space.left[k] += static_cast<std::uint32_t>(block[k]);
      sum += f[space.left[k]] + f[node.seen[k] - space.left[k]];
    }
    nl += rows;
  }
  void add(std::uint32_t tag) {
    const std::uint32_t k = label_of<IsPacked>(rules.tags, tag), l = space.left[k]++, r = node.seen[k] - l;
    sum += f[l + 1] - f[l] - f[r] + f[r - 1];
    ++nl;
  }
  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    ++boundaries;
    const std::int64_t score = sum - f[nl] - f[node.rows - nl];
    if (score > best && has_room(nl)) {
      best = score;
      record(key, left_row, next_key, right_row, nl, static_cast<double>(nl));
    }
  }
  bool skip(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size) {
    std::int64_t running = sum;
    const std::int64_t next = nl + 1;
    const Tags tags = rules.tags;
    std::uint32_t* left = space.left.data();
    const std::uint32_t* total = node.seen.data();
    std::int64_t* sums = space.first.data();
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t k = label_of<IsPacked>(tags, tag[i]), l = left[k]++, r = total[k] - l;
      sums[i] = running += f[l + 1] - f[l] - f[r] + f[r - 1];
    }
    const Sight sight = look_at_entropy(key, sums, f + next, f + (node.rows - next), size, best);
    if (sight.may_win) {
      for (std::uint32_t i = 0; i < size; ++i) {
        ++nl;
        sum = sums[i];
        if (key[i] != key[i + 1]) consider(key[i], tags.row(tag[i]), key[i + 1], tags.row(tag[i + 1]));
      }
    } else {
      nl += size;
      boundaries += sight.boundaries;
    }
    sum = running;
    return true;
  }
  double excess() const { return static_cast<double>(best - no_test()) * rules.x_log_x_unit; }
};

// ---- Everything else: weights, numbers, class error, monotone columns.

struct Sums : Walk {
  const Column& column;
  ScanSpace& space;
  const bool has_classes;
  double best = -std::numeric_limits<double>::infinity(), wl = 0;
  std::int64_t nl = 0;

  Sums(const ScanRules& r, const NodeSums& s, ScanSpace& w, const Column& c)
      : Walk(r, s), column(c), space(w), has_classes(is_of_classes(r.measure.criterion)) {}

  void begin(const double* left, std::int64_t rows, double weight) {
    space.left_sum.assign(node.sum.size(), 0.0);
    nl = 0;
    wl = 0;
    if (left) add_block(left, rows, weight);
  }
  void add_block(const double* sum, std::int64_t rows, double weight) {
    for (std::size_t k = 0; k < node.sum.size(); ++k) space.left_sum[k] += sum[k];
    nl += rows;
    wl += weight;
  }
  void add(std::uint32_t tag) {
    wl += add_row(rules, node, tag, space.left_sum.data());
    ++nl;
  }
  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    ++boundaries;
    const double wr = rest(wl);
    if (!has_room(nl) || wl < rules.min_weight || wr < rules.min_weight) return;
    const std::size_t width = node.sum.size();
    space.block_sum.resize(2 * width);  // its upper half is free for the right branch
    double* right = space.block_sum.data() + width;
    for (std::size_t k = 0; k < width; ++k) right[k] = node.sum[k] - space.left_sum[k];
    const Measure& measure = rules.measure;
    if (!measure.is_possible(space.left_sum.data(), node.sum.data()) || !measure.is_possible(right, node.sum.data()))
      return;
    const double score = measure.purity(space.left_sum.data(), wl) + measure.purity(right, wr) - node.purity;
    const bool is_better = place.left_rows == 0 || score > best + node.tolerance;
    if (is_better && (column.monotone == 0 || next_key == kMissing || is_allowed(right, wr))) {
      best = score;
      record(key, left_row, next_key, right_row, nl, wl);
    }
  }
  bool is_allowed(const double* right, double wr) const {
    if (wl <= 0 || wr <= 0) return false;  // the mean of a branch is lost to rounding
    const int at = has_classes ? 1 : 0;
    const double shift = has_classes ? 0.0 : node.shift;
    const double low = shift + space.left_sum[at] / wl, high = shift + right[at] / wr;
    return is_in_order(rules, column, node, low, high);
  }
  bool skip(const std::uint32_t*, const std::uint32_t*, std::uint32_t) const { return false; }
  double excess() const { return best; }
};

// `Sums`, but only where one of some thresholds lies.
struct SumsAtCuts : Sums {
  const std::vector<double>& cuts;
  const double mode_value;
  double theta = std::numeric_limits<double>::quiet_NaN();

  SumsAtCuts(const ScanRules& r, const NodeSums& s, ScanSpace& w, const Column& c, const std::vector<double>& at,
             double mode)
      : Sums(r, s, w, c), cuts(at), mode_value(mode) {}

  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    const auto value = [&](std::uint32_t row) { return row == kModeRow ? mode_value : column.cell(row); };
    double cut = std::numeric_limits<double>::quiet_NaN();
    if (next_key != kMissing) {  // a cut parts them if x ≤ θ holds on the left alone
      const auto at = std::lower_bound(cuts.begin(), cuts.end(), value(left_row));
      if (at == cuts.end() || *at >= value(right_row)) return;
      cut = *at;
    }
    const double before = best;
    Sums::consider(key, left_row, next_key, right_row);
    if (best != before) theta = cut;
  }
};

// A threshold drawn uniformly between the least and the largest value of the node's present cells. The rows of the
// least value are on its left, those of the largest on its right.
double random_cut(const ScanRules& rules, const Column& column, Mode left_out, const Piece& piece, const Parts& parts,
                  std::uint64_t draw) {
  double low = left_out.value, high = left_out.value;
  if (parts.present > 0) {
    const double first = column.cell(rules.tags.row(piece.tag[0]));
    const double last = column.cell(rules.tags.row(piece.tag[parts.present - 1]));
    low = parts.block_rows ? std::min(low, first) : first;
    high = parts.block_rows ? std::max(high, last) : last;
  }
  return tree::random_cut(draw, low, high);
}

// The sums of some elements.
void add_up(const ScanRules& rules, const NodeSums& node, const std::uint32_t* tag, std::uint32_t size,
            ScanSpace& space, double* sum, double& weight) {
  if (rules.measure.criterion == Criterion::squared_error && !rules.measure.has_several() && rules.weight.empty()) {
    double s = sum[0], squares = sum[1];  // in registers: deep trees have many such
    for (std::uint32_t i = 0; i < size; ++i) {
      const double y = rules.number[tag[i]] - node.shift;
      s += y;
      squares += y * y;
    }
    sum[0] = s;
    sum[1] = squares;
    weight += size;
    return;
  }
  if (!rules.weight.empty() || node.seen.empty()) {
    for (std::uint32_t i = 0; i < size; ++i) weight += add_row(rules, node, tag[i], sum);
    return;
  }
  weight += size;
  if (node.seen.size() == 2 && !rules.tags.label) {
    const std::uint32_t ones = add_lowest_bits(tag, size);
    sum[0] += size - ones;
    sum[1] += ones;
    return;
  }
  space.left.assign(node.seen.size(), 0);
  for (std::uint32_t i = 0; i < size; ++i) ++space.left[rules.tags.label_of(tag[i])];
  for (std::size_t k = 0; k < node.seen.size(); ++k) sum[k] += space.left[k];
}

// As a scan begins.
void reset(Candidate& found) {
  found.excess = -std::numeric_limits<double>::infinity();
  found.n_tests = 0;
  found.has_missing = false;
  found.levels = {};
  found.theta = std::numeric_limits<double>::quiet_NaN();
  found.keys.clear();
  found.branch.clear();
}

// Whether any threshold may be taken, and rows count the same.
bool is_plain_scan(const ScanRules& rules, const Column& column) {
  return rules.weight.empty() && column.monotone == 0 && rules.min_weight <= 0 && !rules.measure.has_several() &&
         rules.thresholds == Thresholds::every;
}

// A column of two values at the node: the listed rows have one, those that are left out the other. There is one test.
void scan_two_values(const ScanRules& rules, std::uint32_t mode, const Piece& piece, const Parts& parts,
                     const NodeSums& node, double floor, ScanSpace& space, Candidate& found) {
  const std::uint32_t key = piece.key[0], row = rules.tags.row(piece.tag[key < mode ? piece.size - 1 : 0]);
  const auto judge = [&](auto& kernel) {
    kernel.nl = key < mode ? piece.size : node.rows - piece.size;
    key < mode ? kernel.consider(key, row, mode, kModeRow) : kernel.consider(mode, kModeRow, key, row);
    keep(kernel, parts, found);
  };
  if (node.seen.size() == 2 && node.rows < kExactSquares && !rules.tags.label) {
    TwoClasses<true> kernel(rules, node, space, floor);
    const std::int64_t ones = add_lowest_bits(piece.tag, piece.size);
    kernel.l1 = key < mode ? ones : node.seen[1] - ones;
    return judge(kernel);
  }
  const std::size_t n_classes = node.seen.size();
  space.left.assign(n_classes, 0);
  for (std::uint32_t i = 0; i < piece.size; ++i) ++space.left[rules.tags.label_of(piece.tag[i])];
  for (std::size_t k = 0; key > mode && k < n_classes; ++k) space.left[k] = node.seen[k] - space.left[k];
  ManyClasses<true> kernel(rules, node, space, floor);
  add_classes(space.left.data(), node.seen.data(), n_classes, kernel.l2, kernel.m);
  judge(kernel);
}

// ---- Gini of weights: see weighted.hpp.

bool is_of_whole_weights(const ScanRules& rules, const Column& column) {
  return rules.whole_weight && column.monotone == 0 && rules.thresholds == Thresholds::every;
}

void add_up_whole(const ScanRules& rules, const std::uint32_t* tag, std::uint32_t size, std::span<std::int64_t> sum) {
  const Tags tags = rules.tags;
  if (sum.size() == 2 && !tags.label) {
    std::int64_t all = 0, ones = 0;
    add_weights(tags, rules.whole_weight, tag, size, all, ones);
    sum[0] += all - ones;
    sum[1] += ones;
    return;
  }
  for (std::uint32_t i = 0; i < size; ++i) sum[tags.label_of(tag[i])] += rules.whole_weight[tags.row(tag[i])];
}

void scan_weighted(const ScanRules& rules, std::uint32_t mode, const Piece& piece, Parts& parts, const NodeSums& node,
                   double floor, ScanSpace& space, Candidate& found) {
  const std::size_t width = node.whole_sum.size();
  const bool has_rest = node.rows > piece.size;
  if (has_rest || parts.missing_rows) {
    space.whole_missing.assign(width, 0);
    add_up_whole(rules, piece.tag + parts.present, piece.size - parts.present, space.whole_missing);
  }
  if (has_rest) {
    space.whole_block = space.whole_missing;
    add_up_whole(rules, piece.tag, parts.present, space.whole_block);
    for (std::size_t k = 0; k < width; ++k) space.whole_block[k] = node.whole_sum[k] - space.whole_block[k];
    if (mode == kMissing) space.whole_missing = space.whole_block;
    parts.before_block =
        static_cast<std::uint32_t>(std::lower_bound(piece.key, piece.key + parts.present, mode) - piece.key);
  }
  const auto go = [&](auto&& kernel) {
    walk(
        kernel, rules.tags, piece, parts, mode,
        [&](bool is_missing_left) {
          kernel.begin(is_missing_left ? space.whole_missing.data() : nullptr, parts.missing_rows);
        },
        [&] { kernel.add_block(space.whole_block.data(), parts.block_rows); });
    keep(kernel, parts, found);
  };
  const bool is_packed = !rules.tags.label;
  if (width == 2)
    is_packed ? go(WeightedTwo<true>(rules, node, space, floor)) : go(WeightedTwo<false>(rules, node, space, floor));
  else
    is_packed ? go(WeightedMany<true>(rules, node, space, floor)) : go(WeightedMany<false>(rules, node, space, floor));
}

}  // namespace

std::uint32_t branch_of(const Candidate& test, std::uint32_t key) {
  if (test.branch.empty()) return key == kMissing ? !test.is_missing_left : key > test.cut_key;
  const auto place = std::lower_bound(test.keys.begin(), test.keys.end(), key) - test.keys.begin();
  return test.branch[place];
}

std::uint32_t branches_of(const Candidate& test) {
  return test.branch.empty() ? 2 : *std::max_element(test.branch.begin(), test.branch.end()) + 1;
}

void ScanRules::prepare(std::int64_t n) {
  if (measure.criterion != Criterion::entropy || !weight.empty()) return;
  const double largest = margrove::tree::x_log_x(static_cast<double>(n));
  const int bits = 61 - std::ilogb(largest + 2);
  x_log_x_unit = std::ldexp(1.0, -bits);
  x_log_x.resize(n + 1);
  for (std::size_t x = 0; x < x_log_x.size(); ++x)
    x_log_x[x] = std::llround(std::ldexp(margrove::tree::x_log_x(static_cast<double>(x)), bits));
}

bool is_of_two_classes(const NodeSums& node) { return node.sum.size() == 2 && node.rows < kExactSquares; }

void scan_flags(const ScanRules& rules, const FlagGroup::Member& member, const FlagCounts& counts, const NodeSums& node,
                double floor, ScanSpace& space, Candidate& found) {
  reset(found);
  const std::uint32_t first = member.first, n_tests = member.n_tests(), n = node.rows;
  const auto judge = [&](auto&& kernel, auto may_win, auto set) {
    for (std::uint32_t t = 0, before = 0; t < n_tests; before = counts.left(first + t++)) {
      const std::uint32_t flag = first + t, left = counts.left(flag);
      if (left == before || left == n) continue;
      if (!may_win(kernel, counts.score(flag))) {
        ++kernel.boundaries;
        continue;
      }
      std::uint32_t next = t + 1;
      while (next < n_tests && counts.left(first + next) == left) ++next;
      kernel.nl = left;
      set(kernel, flag);
      kernel.consider(t, member.row[t], next, member.row[next]);
    }
    keep(kernel, Parts{n}, found);
  };
  const auto is_near = [](const auto& kernel, double score) { return !(score < kernel.best * kAlmost); };
  const std::span<const std::uint32_t> classes = counts.classes();
  if (rules.measure.criterion == Criterion::entropy) {
    judge(
        Entropy<true>(rules, node, space, floor), [](const auto&, double) { return true; },
        [&](auto& kernel, std::uint32_t flag) {
          kernel.sum = 0;
          for (std::size_t k = 0; k < classes.size(); ++k) {
            const std::uint32_t l = counts.count_of(k, flag);
            kernel.sum += kernel.f[l] + kernel.f[node.seen[classes[k]] - l];
          }
        });
  } else if (is_of_two_classes(node)) {
    judge(TwoClasses<true>(rules, node, space, floor), is_near,
          [&](auto& kernel, std::uint32_t flag) { kernel.l1 = counts.count_of(1, flag); });
  } else {
    const bool is_comparable = !counts.is_two();
    judge(
        ManyClasses<true>(rules, node, space, floor),
        [&](const auto& kernel, double score) { return !is_comparable || is_near(kernel, score); },
        [&](auto& kernel, std::uint32_t flag) {
          kernel.l2 = kernel.m = 0;
          for (std::size_t k = 0; k < classes.size(); ++k) {
            const std::int64_t l = counts.count_of(k, flag);
            kernel.l2 += l * l;
            kernel.m += l * node.seen[classes[k]];
          }
        });
  }
}

void scan(const ScanRules& rules, const Column& column, Mode left_out_rows, const Piece& piece, const NodeSums& node,
          double floor, ScanSpace& space, Candidate& found, std::uint64_t draw) {
  const std::uint32_t mode = left_out_rows.key;
  reset(found);
  Parts parts{piece.size};
  while (parts.present > 0 && piece.key[parts.present - 1] == kMissing) --parts.present;
  const std::int64_t left_out = node.rows - piece.size;
  parts.missing_rows = piece.size - parts.present;
  (mode == kMissing ? parts.missing_rows : parts.block_rows) += left_out;
  const bool is_one_key = parts.present == 0 || (!parts.block_rows && piece.key[0] == piece.key[parts.present - 1]);
  const bool has_present = parts.present > 0 || parts.block_rows > 0;
  found.has_missing = parts.missing_rows > 0;
  found.is_constant = parts.missing_rows ? !has_present : is_one_key;
  if (found.is_constant) return;
  if (column.test != Test::threshold) return scan_levels(rules, column, mode, piece, node, space, found);
  if (rules.measure.criterion == Criterion::absolute_error) {
    const bool is_drawn = rules.thresholds == Thresholds::random && parts.present > 0;
    const double cut = is_drawn ? random_cut(rules, column, left_out_rows, piece, parts, draw) : kNoCut;
    return scan_absolute(rules, column, piece, node, cut, space, found);
  }

  const std::size_t width = node.sum.size();
  const Criterion criterion = rules.measure.criterion;
  const bool is_plain = is_plain_scan(rules, column), is_plain_gini = is_plain && criterion == Criterion::gini;
  if (is_plain_gini && left_out && !parts.missing_rows && piece.key[0] == piece.key[piece.size - 1])
    return scan_two_values(rules, mode, piece, parts, node, floor, space, found);
  if (is_of_whole_weights(rules, column)) return scan_weighted(rules, mode, piece, parts, node, floor, space, found);
  if (parts.block_rows || parts.missing_rows) {
    space.missing_sum.assign(width, 0.0);
    add_up(rules, node, piece.tag + parts.present, piece.size - parts.present, space, space.missing_sum.data(),
           parts.missing_weight);
    if (left_out) {
      space.block_sum.assign(2 * width, 0.0);
      double listed = parts.missing_weight;
      std::copy(space.missing_sum.begin(), space.missing_sum.end(), space.block_sum.begin());
      add_up(rules, node, piece.tag, parts.present, space, space.block_sum.data(), listed);
      for (std::size_t k = 0; k < width; ++k) space.block_sum[k] = node.sum[k] - space.block_sum[k];
      (mode == kMissing ? parts.missing_weight : parts.block_weight) = std::max(0.0, node.weight - listed);
      if (mode == kMissing) std::copy_n(space.block_sum.begin(), width, space.missing_sum.begin());
      parts.before_block =
          static_cast<std::uint32_t>(std::lower_bound(piece.key, piece.key + parts.present, mode) - piece.key);
    }
  }
  const auto go = [&](auto&& kernel) {
    walk(
        kernel, rules.tags, piece, parts, mode,
        [&](bool is_missing_left) {
          kernel.begin(is_missing_left ? space.missing_sum.data() : nullptr, parts.missing_rows, parts.missing_weight);
        },
        [&] { kernel.add_block(space.block_sum.data(), parts.block_rows, parts.block_weight); });
    keep(kernel, parts, found);
  };
  if (rules.thresholds != Thresholds::every) {
    std::vector<double> cuts;
    if (rules.thresholds == Thresholds::random) {
      cuts = {random_cut(rules, column, left_out_rows, piece, parts, draw)};
    } else {
      std::vector<Dot> dots;
      for (std::uint32_t i = 0; i < parts.present; ++i) {
        const std::uint32_t row = rules.tags.row(piece.tag[i]);
        dots.push_back({column.cell(row), rules.tags.label_of(piece.tag[i]), rules.weight_of(row)});
      }
      for (std::uint32_t k = 0; parts.block_rows && k < width; ++k)
        if (space.block_sum[k] > 0) dots.push_back({left_out_rows.value, k, space.block_sum[k]});
      cuts = rules.thresholds == Thresholds::gaussian ? gaussian_cuts(std::move(dots), width)
                                                      : logistic_cuts(std::move(dots), width);
    }
    SumsAtCuts kernel(rules, node, space, column, cuts, left_out_rows.value);
    go(kernel);
    found.theta = kernel.theta;
    return;
  }
  const bool is_packed = !rules.tags.label;
  if (is_plain_gini && width == 2 && node.rows < kExactSquares) {
    is_packed ? go(TwoClasses<true>(rules, node, space, floor)) : go(TwoClasses<false>(rules, node, space, floor));
  } else if (is_plain_gini) {
    is_packed ? go(ManyClasses<true>(rules, node, space, floor)) : go(ManyClasses<false>(rules, node, space, floor));
  } else if (is_plain && criterion == Criterion::entropy) {
    is_packed ? go(Entropy<true>(rules, node, space, floor)) : go(Entropy<false>(rules, node, space, floor));
  } else if (criterion == Criterion::squared_error && column.monotone == 0 && !rules.measure.has_several()) {
    go(SquaredError(rules, node, floor));
  } else {
    go(Sums(rules, node, space, column));
  }
}

}  // namespace margrove::tree
