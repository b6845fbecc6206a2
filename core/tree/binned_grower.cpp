#include "tree/binned_grower.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "parallel.hpp"
#include "tree/sorting.hpp"

namespace margrove::tree {
namespace {

constexpr std::size_t kTogether = 8;       // tracks whose bytes are one word
constexpr std::size_t kReadTogether = 16;  // columns that are read in one go: a line of floats
constexpr std::size_t kRare = 4;           // a value of less than this part of all rows is rare
constexpr int kMostBins = 255;             // and one more for missing cells
constexpr double kSharedWork = 200000;     // cells of a node; with fewer, threads cost more than they bring
constexpr std::size_t kKeptBytes = std::size_t{64} << 20;  // of counts that wait to be subtracted from

}  // namespace

struct BinnedGrower::Open : OpenNode {
  std::uint32_t begin = 0, size = 0;  // in `rows_`
  std::unique_ptr<Counts> counts;     // kept where there is room
};

bool BinnedGrower::can_grow(std::span<const Column> columns, const ScanRules& rules, const GrowthRules& growth) {
  return growth.n_bins > 0 && growth.n_bins <= kMostBins && is_of_classes(rules.measure.criterion) &&
         rules.weight.empty() && std::all_of(columns.begin(), columns.end(), [](const Column& column) {
           return column.test == Test::threshold && column.monotone == 0 && !is_sparse(column.cells);
         });
}

BinnedGrower::BinnedGrower(std::vector<Column> columns, std::int64_t n, std::span<const std::int32_t> label,
                           int n_classes, ScanRules rules, GrowthRules growth, int threads)
    : columns_(std::move(columns)),
      n_(n),
      label_(label),
      n_classes_(static_cast<std::size_t>(n_classes)),
      rules_(std::move(rules)),
      growth_(growth),
      threads_(std::max(threads, 1)),
      cuts_(columns_.size()) {}

BinnedGrower::~BinnedGrower() = default;

bool BinnedGrower::can_share(std::int64_t rows) const {
  return threads_ > 1 && static_cast<double>(rows) * static_cast<double>(columns_.size()) >= kSharedWork;
}

// One column's bins, by row. Of a column of two values, one of them rare, only the rows of that one are kept: in
// `rare_rows_`.
std::vector<std::uint8_t> BinnedGrower::bin_column(std::size_t j, std::span<const std::uint32_t> bits,
                                                   SortSpace& space) {
  const Column& column = columns_[j];
  const auto n = static_cast<std::size_t>(n_);
  std::vector<std::uint8_t> bins;
  Binning binning;
  const auto bin_of = [&](std::uint32_t rank) {
    return static_cast<std::uint8_t>(rank == kMissing ? binning.cuts().size() + 1 : binning.bin(rank));
  };
  if (!bits.empty() && space.few.find(bits)) {
    const FewValues& few = space.few;
    for (std::uint32_t r = 0; r < few.n_ranks(); ++r) binning.add(few.a_row(r), few.rows(r));
    binning.finish(column, growth_.n_bins);
    cuts_[j] = binning.cuts();
    const std::uint32_t rare = few.n_ranks() == 2 && few.rows(1) <= few.rows(0) ? 1 : 0;
    if (few.n_ranks() == 2 && few.missing() == 0 && few.rows(rare) <= n / kRare) {
      place_[j].rare_bin = rare;
      for (std::size_t i = 0; i < n; ++i)
        if (few.rank(i) == rare) rare_rows_[j].push_back(static_cast<std::uint32_t>(i));
      return bins;
    }
    bins.resize(n);
    for (std::size_t i = 0; i < n; ++i) bins[i] = bin_of(few.rank(i));
    return bins;
  }
  const std::uint64_t* ranked = ranked_rows(column, n, bits, space);
  const auto rank = [&](std::size_t i) { return static_cast<std::uint32_t>(ranked[i] >> 32); };
  for (std::size_t i = 0, begin = 0; i < n && rank(i) != kMissing; ++i) {
    if (i + 1 < n && rank(i + 1) == rank(i)) continue;
    binning.add(static_cast<std::uint32_t>(ranked[i]), static_cast<std::uint32_t>(i + 1 - begin));
    begin = i + 1;
  }
  binning.finish(column, growth_.n_bins);
  cuts_[j] = binning.cuts();
  bins.resize(n);
  for (std::size_t i = 0; i < n; ++i) bins[static_cast<std::uint32_t>(ranked[i])] = bin_of(rank(i));
  return bins;
}

void BinnedGrower::bin_columns() {
  const auto n = static_cast<std::size_t>(n_);
  std::vector<std::vector<std::uint8_t>> tracks(columns_.size());
  place_.resize(columns_.size());
  rare_rows_.resize(columns_.size());
  const std::size_t pieces = (columns_.size() + kReadTogether - 1) / kReadTogether;
  SortSpaces spaces(n, threads_);
  parallel_for(static_cast<std::int64_t>(pieces), can_share(n_) ? threads_ : 1, [&](std::int64_t piece) {
    SortSpace& space = spaces.own();
    const std::size_t from = static_cast<std::size_t>(piece) * kReadTogether;
    const std::size_t count = std::min(kReadTogether, columns_.size() - from);
    const auto bits = space.fetch(std::span<const Column>(columns_).subspan(from, count), n);
    for (std::size_t j = 0; j < count; ++j) tracks[from + j] = bin_column(from + j, bits[j], space);
  });
  bundle(tracks);
  n_tracks_ = tracks.size();
  const std::size_t groups = (n_tracks_ + kTogether - 1) / kTogether;
  codes_ = large_memory<std::uint64_t>(groups * n);
  for (std::size_t g = 0; g < groups; ++g) {
    std::uint64_t* words = codes_.get() + g * n;
    std::memset(words, 0, n * sizeof(std::uint64_t));
    for (std::size_t t = g * kTogether; t < std::min(n_tracks_, (g + 1) * kTogether); ++t) {
      for (std::size_t i = 0; i < n; ++i) words[i] |= std::uint64_t{tracks[t][i]} << (8 * (t % kTogether));
      tracks[t] = {};
    }
  }
}

// Columns with bytes of their own become tracks; columns that are but a list of rows are put into tracks together, as
// long as their rows do not meet.
void BinnedGrower::bundle(std::vector<std::vector<std::uint8_t>>& tracks) {
  const auto n = static_cast<std::size_t>(n_);
  std::vector<std::vector<std::uint8_t>> kept, bundles;
  std::vector<std::uint32_t> values;  // in each bundle
  first_.assign(1, 0);
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    if (tracks[j].empty()) continue;
    place_[j] = {kept.size(), 0, 0};
    kept.push_back(std::move(tracks[j]));
    first_.push_back(first_.back() + (cuts_[j].size() + 2) * n_classes_);
  }
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const std::vector<std::uint32_t>& rows = rare_rows_[j];
    if (rows.empty()) continue;
    std::size_t b = 0;
    for (; b < bundles.size(); ++b)
      if (values[b] < kMostBins &&
          std::all_of(rows.begin(), rows.end(), [&](std::uint32_t row) { return bundles[b][row] == 0; }))
        break;
    if (b == bundles.size()) {
      bundles.emplace_back(n, std::uint8_t{0});
      values.push_back(0);
    }
    place_[j].track = kept.size() + b;
    place_[j].value = ++values[b];
    for (const std::uint32_t row : rows) bundles[b][row] = static_cast<std::uint8_t>(values[b]);
  }
  rare_rows_.clear();
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    kept.push_back(std::move(bundles[b]));
    first_.push_back(first_.back() + (values[b] + 1) * n_classes_);
  }
  tracks = std::move(kept);
}

void BinnedGrower::start() {
  bin_columns();
  rules_.tags = tags_for(label_, n_, static_cast<int>(n_classes_));
  rules_.prepare(n_);
  most_kept_ = std::max<std::size_t>(8, kKeptBytes / (first_.back() * sizeof(std::uint32_t)));
  rows_.resize(static_cast<std::size_t>(n_));
  spare_.resize(static_cast<std::size_t>(n_));
  Open root;
  root.size = static_cast<std::uint32_t>(n_);
  root.path = mixed(growth_.seed);
  root.sums.rows = n_;
  root.sums.weight = static_cast<double>(n_);
  root.sums.seen.assign(n_classes_, 0);
  for (std::uint32_t i = 0; i < root.size; ++i) {
    const auto k = static_cast<std::uint32_t>(label_[i]);
    rows_[i] = rules_.tags.label ? i : i << rules_.tags.shift | k;
    ++root.sums.seen[k];
  }
  root.sums.sum.assign(root.sums.seen.begin(), root.sums.seen.end());
  summarise_classes(rules_, root.sums);
  if (!is_closed(root.sums, 0, rules_, growth_)) {
    root.counts = fresh_counts();
    ++kept_;
    count(root, *root.counts);
    search(root, *root.counts);
  }
  stack_.push_back(std::move(root));
}

std::unique_ptr<BinnedGrower::Counts> BinnedGrower::fresh_counts() {
  if (free_.empty()) return std::make_unique<Counts>(first_.back());
  std::unique_ptr<Counts> counts = std::move(free_.back());
  free_.pop_back();
  return counts;
}

void BinnedGrower::give_back(std::unique_ptr<Counts> counts) {
  if (counts) free_.push_back(std::move(counts));
}

// How many rows of each class are in each bin of each column.
void BinnedGrower::count(const Open& node, Counts& counts) const {
  std::fill(counts.begin(), counts.end(), 0u);
  const std::size_t groups = (n_tracks_ + kTogether - 1) / kTogether;
  const std::uint32_t* tag = rows_.data() + node.begin;
  const Tags tags = rules_.tags;
  parallel_for(static_cast<std::int64_t>(groups), can_share(node.size) ? threads_ : 1, [&](std::int64_t g) {
    const std::size_t from = static_cast<std::size_t>(g) * kTogether, to = std::min(from + kTogether, n_tracks_);
    const std::uint64_t* words = codes_.get() + static_cast<std::size_t>(g) * static_cast<std::size_t>(n_);
    std::uint32_t* table[kTogether];
    for (std::size_t f = 0; f < kTogether; ++f) table[f] = counts.data() + first_[std::min(from + f, to - 1)];
    const auto k_all = static_cast<std::uint32_t>(n_classes_);
    if (to - from == kTogether) {
      for (std::uint32_t i = 0; i < node.size; ++i) {
        const std::uint64_t word = words[tags.row(tag[i])];
        const std::uint32_t k = tags.label_of(tag[i]);
        for (std::size_t f = 0; f < kTogether; ++f) ++table[f][(word >> (8 * f) & 0xFF) * k_all + k];
      }
    } else {
      for (std::uint32_t i = 0; i < node.size; ++i) {
        const std::uint64_t word = words[tags.row(tag[i])];
        const std::uint32_t k = tags.label_of(tag[i]);
        for (std::size_t f = 0; f < to - from; ++f) ++table[f][(word >> (8 * f) & 0xFF) * k_all + k];
      }
    }
  });
}

// w · gain of sending these rows left.
double BinnedGrower::excess_of(const NodeSums& node, const std::uint32_t* left, std::int64_t left_rows) const {
  const auto nl = static_cast<double>(left_rows), nr = static_cast<double>(node.rows - left_rows);
  switch (rules_.measure.criterion) {
    case Criterion::gini: {
      if (n_classes_ == 2) {  // 2 D² / (n n_l n_r), D = l_1 n − n_l t_1
        const auto n = static_cast<double>(node.rows);
        const double d = static_cast<double>(left[1]) * n - nl * static_cast<double>(node.seen[1]);
        return 2 * d * d / (n * nl * nr);
      }
      double l2 = 0, r2 = 0;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        const auto l = static_cast<double>(left[k]), r = static_cast<double>(node.seen[k] - left[k]);
        l2 += l * l;
        r2 += r * r;
      }
      return l2 / nl + r2 / nr - node.purity;
    }
    case Criterion::entropy: {
      const std::int64_t* f = rules_.x_log_x.data();
      std::int64_t sum = f[node.rows] - node.whole - f[left_rows] - f[node.rows - left_rows];
      for (std::size_t k = 0; k < n_classes_; ++k) sum += f[left[k]] + f[node.seen[k] - left[k]];
      return static_cast<double>(sum) * rules_.x_log_x_unit;
    }
    default: {
      std::uint32_t most_left = 0, most_right = 0;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        most_left = std::max(most_left, left[k]);
        most_right = std::max(most_right, node.seen[k] - left[k]);
      }
      return static_cast<double>(most_left) + static_cast<double>(most_right) - node.purity;
    }
  }
}

void BinnedGrower::scan_column(std::uint32_t column, const NodeSums& node, const Counts& counts, double floor,
                               Candidate& found) const {
  found.excess = kNoFloor;
  found.n_tests = 0;
  found.has_missing = false;
  const Place& place = place_[column];
  const std::uint32_t* table = counts.data() + first_[place.track];
  std::vector<std::uint32_t> of_two;
  if (place.value) {  // the counts of the other bin are what is left of the node
    of_two.assign(3 * n_classes_, 0);
    for (std::size_t k = 0; k < n_classes_; ++k) {
      const std::uint32_t rare = table[place.value * n_classes_ + k];
      of_two[place.rare_bin * n_classes_ + k] = rare;
      of_two[(1 - place.rare_bin) * n_classes_ + k] = node.seen[k] - rare;
    }
    table = of_two.data();
  }
  const std::size_t bins = cuts_[column].size() + 1;
  const std::uint32_t* missing = table + bins * n_classes_;
  std::int64_t missing_rows = 0;
  for (std::size_t k = 0; k < n_classes_; ++k) missing_rows += missing[k];
  found.has_missing = missing_rows > 0;
  const std::int64_t present = node.rows - missing_rows;
  std::vector<std::uint32_t> left(n_classes_);
  double best = floor;
  std::int64_t best_left = 0;
  for (int route = 0; route < (missing_rows ? 2 : 1); ++route) {  // missing cells right, then left
    const bool is_missing_left = route == 1;
    std::int64_t left_present = 0;
    if (is_missing_left)
      std::copy_n(missing, n_classes_, left.begin());
    else
      std::fill(left.begin(), left.end(), 0u);
    for (std::size_t b = 0; b < bins && left_present < present; ++b) {
      std::int64_t here = 0;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        left[k] += table[b * n_classes_ + k];
        here += table[b * n_classes_ + k];
      }
      if (here == 0) continue;
      left_present += here;
      const bool is_last = left_present == present;
      if (is_last && (is_missing_left || !missing_rows)) break;
      if (route == 0) ++found.n_tests;
      const std::int64_t left_rows = left_present + (is_missing_left ? missing_rows : 0);
      if (left_rows < rules_.min_rows || node.rows - left_rows < rules_.min_rows) continue;
      const double excess = excess_of(node, left.data(), left_rows);
      if (found.found() ? excess <= best + node.tolerance : excess <= best) continue;
      best = found.excess = excess;
      best_left = left_rows;
      found.cut_key = static_cast<std::uint32_t>(b);
      found.is_present_test = is_last;
      found.is_missing_left = is_missing_left;
    }
  }
  if (rules_.needs_split_information && found.found())
    found.split_information =
        split_information(static_cast<double>(best_left), static_cast<double>(node.rows - best_left));
}

void BinnedGrower::search(Open& node, const Counts& counts) const {
  Chooser chooser(growth_, node.sums, columns_.size());
  Candidate candidate;
  std::int64_t looked_at = 0;
  for (const std::uint32_t column : column_order(growth_, node.path, columns_.size())) {
    if (growth_.max_columns && looked_at >= growth_.max_columns && chooser.has_any()) break;
    scan_column(column, node.sums, counts, chooser.floor(), candidate);
    looked_at += candidate.n_tests > 0;
    chooser.add(column, candidate);
  }
  node.settle(chooser, static_cast<double>(n_));
}

// The node's rows, those of the left branch first. Returns how many they are.
std::uint32_t BinnedGrower::partition(const Open& node) {
  const Place& place = place_[node.column];
  const std::size_t shift = 8 * (place.track % kTogether);
  const std::uint64_t* words = codes_.get() + place.track / kTogether * static_cast<std::size_t>(n_);
  const std::uint64_t missing = cuts_[node.column].size() + 1;
  std::uint32_t* tag = rows_.data() + node.begin;
  std::uint32_t left = 0, right = 0;
  for (std::uint32_t i = 0; i < node.size; ++i) {
    std::uint64_t bin = words[rules_.tags.row(tag[i])] >> shift & 0xFF;
    if (place.value) bin = (bin == place.value) == (place.rare_bin == 1);
    const bool is_left = bin == missing ? node.test.is_missing_left : bin <= node.test.cut_key;
    spare_[right] = tag[i];
    tag[left] = tag[i];
    left += is_left;
    right += !is_left;
  }
  std::copy_n(spare_.begin(), right, tag + left);
  return left;
}

void BinnedGrower::split(Open& node, std::vector<Open>& children) {
  const std::uint32_t left = partition(node);
  const auto id = static_cast<std::int64_t>(output_.size());
  children.clear();
  children.resize(2);
  const std::uint32_t sizes[2] = {left, node.size - left};
  for (std::uint32_t b = 0; b < 2; ++b) {
    Open& child = children[b];
    child.begin = node.begin + (b ? left : 0);
    child.size = sizes[b];
    child.depth = node.depth + 1;
    child.parent = id;
    child.branch = b;
    child.path = mixed(node.path + b + 1);
    child.sums.rows = child.size;
    child.sums.weight = child.size;
    child.sums.seen.assign(n_classes_, 0);
  }
  const std::uint32_t small = left <= node.size - left ? 0 : 1;
  for (std::uint32_t i = 0; i < children[small].size; ++i)
    ++children[small].sums.seen[rules_.tags.label_of(rows_[children[small].begin + i])];
  for (std::size_t k = 0; k < n_classes_; ++k)
    children[1 - small].sums.seen[k] = node.sums.seen[k] - children[small].sums.seen[k];
  for (Open& child : children) {
    child.sums.sum.assign(child.sums.seen.begin(), child.sums.seen.end());
    summarise_classes(rules_, child.sums);
    child.is_open = !is_closed(child.sums, child.depth, rules_, growth_);
  }
  const double weights[] = {children[0].sums.weight, children[1].sums.weight};
  const double threshold =
      node.test.is_present_test ? std::numeric_limits<double>::infinity() : cuts_[node.column][node.test.cut_key];
  output_.push_back(node.as_inner(weights, 0, threshold));

  std::unique_ptr<Counts> whole = std::move(node.counts);
  if (whole) --kept_;
  std::unique_ptr<Counts> few;
  const bool is_large_open = children[1 - small].is_open;
  if (children[small].is_open || (is_large_open && whole)) {
    few = fresh_counts();
    count(children[small], *few);
    if (children[small].is_open) search(children[small], *few);
  }
  if (is_large_open) {
    if (whole) {
      for (std::size_t i = 0; i < whole->size(); ++i) (*whole)[i] -= (*few)[i];
    } else {
      whole = fresh_counts();
      count(children[1 - small], *whole);
    }
    search(children[1 - small], *whole);
  }
  const auto keep = [&](Open& child, std::unique_ptr<Counts> counts) {
    if (!child.is_leaf && kept_ < most_kept_) {
      child.counts = std::move(counts);
      ++kept_;
    } else {
      give_back(std::move(counts));
    }
  };
  keep(children[small], std::move(few));
  keep(children[1 - small], std::move(whole));
}

void BinnedGrower::leave(const Open& node) {
  output_.push_back(node.as_leaf());
  settled_ += node.sums.rows;
}

bool BinnedGrower::run(double seconds) {
  const auto until = in_seconds(seconds);
  if (!is_started_) start();
  is_started_ = true;
  const bool is_best_first = growth_.max_leaves > 0;
  std::vector<Open> children;
  while (!stack_.empty()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    if (is_best_first) std::pop_heap(stack_.begin(), stack_.end(), is_less_urgent);
    Open node = std::move(stack_.back());
    stack_.pop_back();
    if (node.is_leaf || (is_best_first && leaves_ >= growth_.max_leaves)) {
      if (node.counts) --kept_;
      give_back(std::move(node.counts));
      leave(node);
      continue;
    }
    ++leaves_;
    split(node, children);
    for (std::size_t b = 2; b-- > 0;) {  // the left one comes last, and is taken first
      children[b].order = opened_ + static_cast<std::int64_t>(b) + 1;
      stack_.push_back(std::move(children[b]));
      if (is_best_first) std::push_heap(stack_.begin(), stack_.end(), is_less_urgent);
    }
    opened_ += 2;
  }
  return true;
}

std::vector<Node> BinnedGrower::take() {
  for (const Open& node : stack_) leave(node);
  stack_.clear();
  return depth_first(std::move(output_));
}

}  // namespace margrove::tree
