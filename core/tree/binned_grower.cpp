#include "tree/binned_grower.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "index.hpp"
#include "parallel.hpp"
#include "tree/sorting.hpp"
#include "tree/weighted.hpp"

namespace margrove::tree {
namespace {

constexpr std::size_t kTogether = 8;       // tracks whose bytes are one word
constexpr std::size_t kReadTogether = 16;  // columns that are read in one go: a line of floats
// A value of at most this part of all rows is rare: 4 bytes for each need no more than a byte a row.
constexpr std::size_t kRare = 4;
constexpr int kMostBins = 255;  // a byte's values, but one for missing cells
// Cells of a node: with fewer, threads cost more than they bring. No measurement recorded.
constexpr double kSharedWork = 200000;
// Of all rows to the lightest, if weights are to be counted: at least 37 of 61 bits are left to it.
constexpr double kMostRelativeWeight = 1 << 24;
// Bytes of counts that wait to be subtracted from. Chosen, not measured.
constexpr std::size_t kKeptBytes = std::size_t{64} << 20;

}  // namespace

template <class Amount>
struct BinnedGrower<Amount>::Open : OpenNode {
  std::uint32_t begin = 0, size = 0;  // in `rows_`
  std::unique_ptr<Counts> counts;     // kept where there is room
};

bool can_grow_binned(std::span<const Column> columns, const ScanRules& rules, const GrowthRules& growth) {
  if (!rules.weight.empty()) {
    // Rows are not counted then, and weights must not vanish beside their sum.
    const double least = *std::min_element(rules.weight.begin(), rules.weight.end());
    const double all = std::accumulate(rules.weight.begin(), rules.weight.end(), 0.0);
    if (rules.min_rows > 1 || least * kMostRelativeWeight < all) return false;
  }
  return growth.n_bins > 0 && growth.n_bins <= kMostBins && is_of_classes(rules.measure.criterion) &&
         !rules.measure.has_several() && std::all_of(columns.begin(), columns.end(), [](const Column& column) {
           return column.test == Test::threshold && column.monotone == 0 && !is_sparse(column.cells);
         });
}

template <class Amount>
BinnedGrower<Amount>::BinnedGrower(std::vector<Column> columns, std::int64_t n, std::span<const std::int32_t> label,
                                   int n_classes, ScanRules rules, GrowthRules growth, int threads)
    : columns_(std::move(columns)),
      n_(n),
      label_(label),
      n_classes_(n_classes),
      rules_(std::move(rules)),
      growth_(growth),
      threads_(std::max(threads, 1)),
      cuts_(columns_.size()) {}

template <class Amount>
BinnedGrower<Amount>::~BinnedGrower() = default;

template <class Amount>
bool BinnedGrower<Amount>::can_share(std::int64_t rows) const {
  return threads_ > 1 && static_cast<double>(rows) * static_cast<double>(columns_.size()) >= kSharedWork;
}

// One column's bins, by row. Of a column of two values, one of them rare, only the rows of that one are kept: in
// `rare_rows_`.
template <class Amount>
std::vector<std::uint8_t> BinnedGrower<Amount>::bin_column(std::size_t j, const ColumnBits& bits, SortSpace& space) {
  const Column& column = columns_[j];
  const std::size_t n = n_;
  std::vector<std::uint8_t> bins;
  Binning binning;
  const auto bin_of = [&](std::uint32_t rank) {
    return static_cast<std::uint8_t>(rank == kMissing ? binning.cuts().size() + 1 : binning.bin(rank));
  };
  if (space.few.find(bits.narrow)) {
    const FewValues& few = space.few;
    for (std::uint32_t r = 0; r < few.n_ranks(); ++r) binning.add(few.a_row(r), few.rows(r));
    binning.finish(column, growth_.n_bins);
    cuts_[j] = binning.cuts();
    const std::uint32_t rare = few.n_ranks() == 2 && few.rows(1) <= few.rows(0) ? 1 : 0;
    if (few.n_ranks() == 2 && few.missing() == 0 && few.rows(rare) <= n / kRare) {
      place_[j].rare_bin = rare;
      for (std::size_t i = 0; i < n; ++i)
        if (few.rank(i) == rare) rare_rows_[j].push_back(i);
      return bins;
    }
    bins.resize(n);
    for (std::size_t i = 0; i < n; ++i) bins[i] = bin_of(few.rank(i));
    return bins;
  }
  const std::uint64_t* ranked = ranked_rows(bits, space);
  const auto rank = [&](std::size_t i) { return static_cast<std::uint32_t>(ranked[i] >> 32); };
  for (std::size_t i = 0, begin = 0; i < n && rank(i) != kMissing; ++i) {
    if (i + 1 < n && rank(i + 1) == rank(i)) continue;
    binning.add(ranked[i], i + 1 - begin);
    begin = i + 1;
  }
  binning.finish(column, growth_.n_bins);
  cuts_[j] = binning.cuts();
  bins.resize(n);
  for (std::size_t i = 0; i < n; ++i) bins[static_cast<std::uint32_t>(ranked[i])] = bin_of(rank(i));
  return bins;
}

// What is made while columns are binned.
template <class Amount>
struct BinnedGrower<Amount>::Binned {
  std::vector<std::vector<std::uint8_t>> tracks;
  SortSpaces spaces;
  std::atomic<std::int64_t> next{0};  // of the pieces of columns that are read in one go
  Binned(std::size_t columns, std::size_t n, int threads) : tracks(columns), spaces(n, threads) {}
};

// Bins as many columns as there is time for, and packs them when all are. True when it is done.
template <class Amount>
bool BinnedGrower<Amount>::bin_columns(std::chrono::steady_clock::time_point until) {
  const std::size_t n = n_;
  if (!binned_) {
    binned_ = std::make_unique<Binned>(columns_.size(), n, threads_);
    place_.resize(columns_.size());
    rare_rows_.resize(columns_.size());
  }
  const std::int64_t pieces = (columns_.size() + kReadTogether - 1) / kReadTogether;
  const auto bin = [&](std::int64_t piece) {
    SortSpace& space = binned_->spaces.own();
    const std::size_t from = piece * kReadTogether;
    const std::size_t count = std::min(kReadTogether, columns_.size() - from);
    const auto bits = space.fetch(std::span<const Column>(columns_).subspan(from, count), n);
    for (std::size_t j = 0; j < count; ++j) binned_->tracks[from + j] = bin_column(from + j, bits[j], space);
  };
  if (!go_on(binned_->next, pieces, can_share(n_) ? threads_ : 1, until, bin)) return false;
  std::vector<std::vector<std::uint8_t>> tracks = std::move(binned_->tracks);
  binned_.reset();
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
  return true;
}

// Columns with bytes of their own become tracks; columns that are but a list of rows are put into tracks together, as
// long as their rows do not meet.
template <class Amount>
void BinnedGrower<Amount>::bundle(std::vector<std::vector<std::uint8_t>>& tracks) {
  const std::size_t n = n_;
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
    for (const std::uint32_t row : rows) bundles[b][row] = values[b];
  }
  rare_rows_.clear();
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    kept.push_back(std::move(bundles[b]));
    first_.push_back(first_.back() + (values[b] + 1) * n_classes_);
  }
  tracks = std::move(kept);
}

template <class Amount>
void BinnedGrower<Amount>::prepare() {
  rules_.tags = tags_for(label_, n_, n_classes_);
  rules_.prepare(n_);
  rows_.resize(n_);
  spare_.resize(n_);
}

// The root as it is before any column is looked at: a leaf.
template <class Amount>
void BinnedGrower<Amount>::plant() {
  if constexpr (kIsWeighted) weigh();
  Open root;
  root.size = n_;
  root.path = mixed(growth_.seed);
  root.sums.rows = n_;
  root.sums.seen.assign(n_classes_, 0);
  root.sums.whole_sum.assign(kIsWeighted ? n_classes_ : 0, 0);
  for (std::uint32_t i = 0; i < root.size; ++i) {
    const std::uint32_t k = label_[i];
    rows_[i] = rules_.tags.label ? i : i << rules_.tags.shift | k;
    ++root.sums.seen[k];
    if constexpr (kIsWeighted) root.sums.whole_sum[k] += whole_weight_[i];
  }
  settle_sums(root.sums);
  weight_ = root.sums.weight;
  stack_.push_back(std::move(root));
}

// Bins the columns and finds the root's test. False where the time was over before.
template <class Amount>
bool BinnedGrower<Amount>::start(std::chrono::steady_clock::time_point until) {
  if (rows_.empty()) {
    prepare();
    plant();
  }
  if (is_closed(stack_.back().sums, 0, rules_, growth_)) return true;
  if (!bin_columns(until)) return false;
  most_kept_ = std::max<std::size_t>(8, kKeptBytes / (first_.back() * sizeof(Amount)));
  open_root();
  return true;
}

// The root's test.
template <class Amount>
void BinnedGrower<Amount>::open_root() {
  Open& root = stack_.back();
  if (is_closed(root.sums, 0, rules_, growth_)) return;
  root.counts = fresh_counts();
  ++kept_;
  count(root, *root.counts);
  search(root, *root.counts);
}

template <class Amount>
void BinnedGrower<Amount>::restart(std::span<const double> weight) {
  rules_.weight = weight;
  output_.clear();
  settled_ = 0;
  leaves_ = 1;
  opened_ = 0;
  if (rows_.empty()) return;
  plant();
  is_started_ = most_kept_ > 0;  // the columns are binned
  if (is_started_) open_root();
}

// The weights as whole numbers.
template <class Amount>
void BinnedGrower<Amount>::weigh() {
  const double all = std::accumulate(rules_.weight.begin(), rules_.weight.end(), 0.0);
  const int bits = 60 - std::ilogb(all);
  const double scale = std::ldexp(1.0, bits);
  unit_ = std::ldexp(1.0, -bits);
  whole_weight_.resize(n_);
  for (std::size_t i = 0; i < whole_weight_.size(); ++i)
    whole_weight_[i] = std::max(std::int64_t{1}, static_cast<std::int64_t>(rules_.weight[i] * scale + 0.5));
}

// Of each class: rows, or their weights in units.
template <class Amount>
std::span<const Amount> BinnedGrower<Amount>::amounts(const NodeSums& node) const {
  if constexpr (kIsWeighted)
    return node.whole_sum;
  else
    return node.seen;
}

template <class Amount>
void BinnedGrower<Amount>::settle_sums(NodeSums& sums) const {
  const std::span<const Amount> amount = amounts(sums);
  sums.sum.resize(n_classes_);
  sums.weight = 0;
  for (std::size_t k = 0; k < n_classes_; ++k) {
    sums.sum[k] = static_cast<double>(amount[k]) * unit_;
    sums.weight += sums.sum[k];
  }
  sums.whole_weight = std::accumulate(amount.begin(), amount.end(), std::int64_t{0});
  summarise_classes(rules_, sums);
}

template <class Amount>
std::unique_ptr<typename BinnedGrower<Amount>::Counts> BinnedGrower<Amount>::fresh_counts() {
  if (free_.empty()) return std::make_unique<Counts>(first_.back());
  std::unique_ptr<Counts> counts = std::move(free_.back());
  free_.pop_back();
  return counts;
}

template <class Amount>
void BinnedGrower<Amount>::give_back(std::unique_ptr<Counts> counts) {
  if (counts) free_.push_back(std::move(counts));
}

// How many rows of each class are in each bin of each column.
template <class Amount>
void BinnedGrower<Amount>::count(const Open& node, Counts& counts) const {
  std::fill(counts.begin(), counts.end(), Amount{0});
  const std::size_t groups = (n_tracks_ + kTogether - 1) / kTogether;
  const std::uint32_t* tag = rows_.data() + node.begin;
  const Tags tags = rules_.tags;
  parallel_for(groups, can_share(node.size) ? threads_ : 1, [&](std::int64_t g) {
    const std::size_t from = g * kTogether, to = std::min(from + kTogether, n_tracks_);
    const std::uint64_t* words = codes_.get() + g * n_;
    Amount* table[kTogether];
    for (std::size_t f = 0; f < kTogether; ++f) table[f] = counts.data() + first_[std::min(from + f, to - 1)];
    const std::uint32_t k_all = n_classes_;
    const std::int64_t* weight = whole_weight_.data();
    const auto amount_of = [&](std::uint32_t row) -> Amount {
      if constexpr (kIsWeighted) return weight[row];
      return (void)row, (void)weight, Amount{1};
    };
    if (to - from == kTogether) {
      for (std::uint32_t i = 0; i < node.size; ++i) {
        const std::uint32_t row = tags.row(tag[i]), k = tags.label_of(tag[i]);
        const std::uint64_t word = words[row];
        const Amount x = amount_of(row);
        for (std::size_t f = 0; f < kTogether; ++f) table[f][(word >> (8 * f) & 0xFF) * k_all + k] += x;
      }
    } else {
      for (std::uint32_t i = 0; i < node.size; ++i) {
        const std::uint32_t row = tags.row(tag[i]), k = tags.label_of(tag[i]);
        const std::uint64_t word = words[row];
        const Amount x = amount_of(row);
        for (std::size_t f = 0; f < to - from; ++f) table[f][(word >> (8 * f) & 0xFF) * k_all + k] += x;
      }
    }
  });
}

// w · gain of sending these left.
template <class Amount>
double BinnedGrower<Amount>::excess_of(const NodeSums& node, const Amount* left, std::int64_t all_left,
                                       std::size_t heaviest) const {
  const double l = all_left, r = node.whole_weight - all_left;
  const std::span<const Amount> all = amounts(node);
  switch (rules_.measure.criterion) {
    case Criterion::gini: {
      if (n_classes_ == 2) {  // 2 D² / (w w_l w_r), D = l_1 w − w_l t_1
        const double w = node.whole_weight;
        const double d = static_cast<double>(left[1]) * w - l * static_cast<double>(all[1]);
        return 2 * d * d / (w * l * r) * unit_;
      }
      if constexpr (kIsWeighted) {
        return gini_score(left, all.data(), n_classes_, all_left, node.whole_weight, heaviest) * unit_;
      } else {  // Σ D_k² / (w w_l w_r), and Σ D_k² = w² L2 − 2 w w_l M + w_l² T2 (scan.cpp) in whole numbers
        std::uint64_t l2 = 0, m = 0;
        for (std::size_t k = 0; k < n_classes_; ++k) {
          l2 += std::uint64_t{left[k]} * left[k];
          m += std::uint64_t{left[k]} * all[k];
        }
        const __int128 w = node.whole_weight, wl = all_left;
        const __int128 squares = w * (w * l2 - 2 * wl * m) + wl * wl * node.whole;
        return static_cast<double>(squares) / (static_cast<double>(w) * l * r);
      }
    }
    case Criterion::entropy: {
      if constexpr (kIsWeighted) {
        double sum = -margrove::tree::x_log_x(l * unit_) - margrove::tree::x_log_x(r * unit_) - node.purity;
        for (std::size_t k = 0; k < n_classes_; ++k)
          sum += margrove::tree::x_log_x(static_cast<double>(left[k]) * unit_) +
                 margrove::tree::x_log_x(static_cast<double>(all[k] - left[k]) * unit_);
        return sum;
      } else {
        const std::int64_t* f = rules_.x_log_x.data();
        std::int64_t sum = f[node.rows] - node.whole - f[all_left] - f[node.rows - all_left];
        for (std::size_t k = 0; k < n_classes_; ++k) sum += f[left[k]] + f[node.seen[k] - left[k]];
        return static_cast<double>(sum) * rules_.x_log_x_unit;
      }
    }
    default: {
      Amount most_left = 0, most_right = 0;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        most_left = std::max(most_left, left[k]);
        most_right = std::max(most_right, static_cast<Amount>(all[k] - left[k]));
      }
      return (static_cast<double>(most_left) + static_cast<double>(most_right)) * unit_ - node.purity;
    }
  }
}

template <class Amount>
void BinnedGrower<Amount>::scan_column(std::uint32_t column, const NodeSums& node, const Counts& counts, double floor,
                                       Candidate& found) const {
  found.excess = kNoFloor;
  found.n_tests = 0;
  found.has_missing = false;
  const Place& place = place_[column];
  const Amount* table = counts.data() + first_[place.track];
  std::vector<Amount> of_two;
  if (place.value) {  // what is in the other bin is what is left of the node
    of_two.assign(3 * n_classes_, 0);
    for (std::size_t k = 0; k < n_classes_; ++k) {
      const Amount rare = table[place.value * n_classes_ + k];
      of_two[place.rare_bin * n_classes_ + k] = rare;
      of_two[(1 - place.rare_bin) * n_classes_ + k] = amounts(node)[k] - rare;
    }
    table = of_two.data();
  }
  const std::size_t bins = cuts_[column].size() + 1;
  const Amount* missing = table + bins * n_classes_;
  std::int64_t all_missing = 0;
  for (std::size_t k = 0; k < n_classes_; ++k) all_missing += missing[k];
  found.has_missing = all_missing > 0;
  const std::int64_t present = node.whole_weight - all_missing;
  const double least = kIsWeighted ? rules_.min_weight / unit_ : static_cast<double>(rules_.min_rows);
  const std::span<const Amount> all = amounts(node);
  const std::size_t heaviest = std::max_element(all.begin(), all.end()) - all.begin();
  std::vector<Amount> left(n_classes_);
  double best = floor;
  std::int64_t best_left = 0;
  for (int route = 0; route < (all_missing ? 2 : 1); ++route) {  // missing cells right, then left
    const bool is_missing_left = route == 1;
    std::int64_t left_present = 0;
    if (is_missing_left)
      std::copy_n(missing, n_classes_, left.begin());
    else
      std::fill(left.begin(), left.end(), Amount{0});
    for (std::size_t b = 0; b < bins && left_present < present; ++b) {
      std::int64_t here = 0;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        left[k] += table[b * n_classes_ + k];
        here += table[b * n_classes_ + k];
      }
      if (here == 0) continue;
      left_present += here;
      const bool is_last = left_present == present;
      if (is_last && (is_missing_left || !all_missing)) break;
      if (route == 0) ++found.n_tests;
      const std::int64_t all_left = left_present + (is_missing_left ? all_missing : 0);
      if (static_cast<double>(std::min(all_left, node.whole_weight - all_left)) < least) continue;
      const double excess = excess_of(node, left.data(), all_left, heaviest);
      if (found.found() ? excess <= best + node.tolerance : excess <= best) continue;
      best = found.excess = excess;
      best_left = all_left;
      found.cut_key = b;
      found.is_present_test = is_last;
      found.is_missing_left = is_missing_left;
    }
  }
  if (rules_.needs_split_information && found.found())
    found.split_information =
        split_information(static_cast<double>(best_left), static_cast<double>(node.whole_weight - best_left));
}

template <class Amount>
void BinnedGrower<Amount>::search(Open& node, const Counts& counts) const {
  Chooser chooser(growth_, node.sums, columns_.size());
  Candidate candidate;
  std::int64_t looked_at = 0;
  for (const std::uint32_t column : column_order(growth_, node.path, columns_.size())) {
    if (growth_.max_columns && looked_at >= growth_.max_columns && chooser.has_any()) break;
    scan_column(column, node.sums, counts, chooser.floor(), candidate);
    looked_at += candidate.n_tests > 0;
    chooser.add(column, candidate);
  }
  node.settle(chooser, weight_);
}

// The node's rows, those of the left branch first. Returns how many they are.
template <class Amount>
std::uint32_t BinnedGrower<Amount>::partition(const Open& node) {
  const Place& place = place_[node.column];
  const std::size_t shift = 8 * (place.track % kTogether);
  const std::uint64_t* words = codes_.get() + place.track / kTogether * n_;
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

template <class Amount>
void BinnedGrower<Amount>::split(Open& node, std::vector<Open>& children) {
  const std::uint32_t left = partition(node);
  const auto id = length(output_);
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
    child.sums.seen.assign(n_classes_, 0);
    child.sums.whole_sum.assign(kIsWeighted ? n_classes_ : 0, 0);
  }
  const std::uint32_t small = left <= node.size - left ? 0 : 1;
  NodeSums &counted = children[small].sums, &rest = children[1 - small].sums;
  for (std::uint32_t i = 0; i < children[small].size; ++i) {
    const std::uint32_t tag = rows_[children[small].begin + i], k = rules_.tags.label_of(tag);
    ++counted.seen[k];
    if constexpr (kIsWeighted) counted.whole_sum[k] += whole_weight_[rules_.tags.row(tag)];
  }
  for (std::size_t k = 0; k < n_classes_; ++k) {
    rest.seen[k] = node.sums.seen[k] - counted.seen[k];
    if constexpr (kIsWeighted) rest.whole_sum[k] = node.sums.whole_sum[k] - counted.whole_sum[k];
  }
  for (Open& child : children) {
    settle_sums(child.sums);
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

template <class Amount>
void BinnedGrower<Amount>::leave(const Open& node) {
  output_.push_back(node.as_leaf());
  output_.back().first_row = node.begin;
  settled_ += node.sums.rows;
}

template <class Amount>
bool BinnedGrower<Amount>::run(double seconds) {
  const auto until = in_seconds(seconds);
  if (!is_started_ && !(is_started_ = start(until))) return false;
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

template <class Amount>
std::vector<Node> BinnedGrower<Amount>::take() {
  if (rows_.empty()) {  // the time was over before it began
    prepare();
    plant();
  }
  for (const Open& node : stack_) leave(node);
  stack_.clear();
  return depth_first(std::move(output_));
}

template class BinnedGrower<std::uint32_t>;
template class BinnedGrower<std::int64_t>;

}  // namespace margrove::tree
