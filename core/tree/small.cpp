#include "tree/small.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "dispatch.hpp"
#include "index.hpp"
#include "simd.hpp"
#include "tree/network.hpp"

namespace margrove::tree {
namespace {

constexpr std::uint32_t kLanes = SmallTrees::kLanes;
// Relative error allowed to a score in single precision: 1e-5 is thirty times the rounding of its five operations.
constexpr float kAlmostSingle = 1 - 1e-5f;

// As `kAlmost` in walk.hpp.
constexpr double kAlmostDouble = 1 - 1e-12;

// What a test gains that leaves these numbers' sum, around the mean, to its left.
MARGROVE_INLINE double excess_of_numbers(const NodeSums& node, double sum, double rows) {
  return number_purity(Criterion::squared_error, sum, 0, rows, 0) +
         number_purity(Criterion::squared_error, node.sum[0] - sum, 0, node.weight - rows, 0) - node.purity;
}

// One number of each of the columns that lie side by side.
using Lanes16 = Simd<std::uint16_t, kLanes>;
using Lanes32 = Simd<std::uint32_t, kLanes>;
using SignedLanes = Simd<std::int32_t, kLanes>;
using FloatLanes = Simd<float, kLanes>;

// Input and output of scoring a block of columns.
struct Scoring {
  std::int32_t size, min_rows;
  std::span<const std::uint16_t> first;  // of the rows of each class that occurs, which lie side by side; and the end
  float* best;
  std::uint16_t* n_tests;
};

// Walks through a node's rows in the order of each lane. `add` takes a row's lanes; `score_of` returns the scores of
// the tests behind it.
template <class Lanes, int kShift, class Cell, class Add, class ScoreOf>
MARGROVE_INLINE void walk_lanes(const Cell* cell, const Scoring& score, Add add, ScoreOf score_of) {
  FloatLanes best = FloatLanes{} - 1.0f;
  Lanes n_tests{}, own = load<Lanes>(cell);
  for (std::int32_t i = 0; i + 1 < score.size; ++i) {
    const auto next = load<Lanes>(cell + (i + 1) * kLanes);
    const auto is_boundary = (own >> kShift) != (next >> kShift);  // all bits of a lane, or none
    n_tests -= reinterpret_cast<const Lanes&>(is_boundary);
    add(own);
    own = next;
    const std::int32_t n_left = i + 1;
    if (std::min(n_left, score.size - n_left) < score.min_rows) continue;
    const FloatLanes found = converted<SignedLanes>(is_boundary) ? score_of(n_left) : best;
    best = larger(best, found);
  }
  store(score.best, best);
  store(score.n_tests, converted<Lanes16>(n_tests));
}

// Two classes: with D = l_1 n − n_l t_1 the gain is in proportion to D² / (n_l n_r).
MARGROVE_CLONES void sort_and_score_two(std::uint16_t* cell, const Scoring& score) {
  sort_side_by_side<Lanes16>(cell, static_cast<std::uint32_t>(score.size));
  const std::int32_t n = score.size, zeros = score.first[1], ones = n - zeros;
  Lanes16 left{};
  walk_lanes<Lanes16, 8>(
      cell, score,
      [&](const Lanes16& own) {
        const auto is_one = (own & 0xFF) >= static_cast<std::uint16_t>(zeros);
        left -= reinterpret_cast<const Lanes16&>(is_one);
      },
      [&](std::int32_t n_left) -> FloatLanes {
        const SignedLanes d = converted<SignedLanes>(left) * n - n_left * ones;
        const auto f = converted<FloatLanes>(d);
        return f * f * (1.0f / static_cast<float>(n_left * (n - n_left)));
      });
}

// More classes: with L2 = Σ l_k² and M = Σ t_k l_k the score is L2 / n_l + (T2 − 2 M + L2) / n_r.
MARGROVE_CLONES void sort_and_score_many(std::uint16_t* cell, const Scoring& score) {
  sort_side_by_side<Lanes16>(cell, static_cast<std::uint32_t>(score.size));
  const std::size_t n_classes = score.first.size() - 1;
  Lanes16 left[SmallTrees::kMostRows];  // 2 l_k + 1
  std::int32_t t2 = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    const std::int32_t total = score.first[k + 1] - score.first[k];
    t2 += total * total;
    left[k] = Lanes16{} + 1;
  }
  Lanes16 squares{}, products{};
  walk_lanes<Lanes16, 8>(
      cell, score,
      [&](const Lanes16& own) {
        for (std::size_t k = 0; k < n_classes; ++k) {
          const auto total = static_cast<std::uint16_t>(score.first[k + 1] - score.first[k]);
          const auto is_there = (own & 0xFF) - score.first[k] < total;  // wraps around below the first
          const auto& is_own = reinterpret_cast<const Lanes16&>(is_there);
          squares += left[k] & is_own;
          products += total & is_own;
          left[k] += 2 & is_own;
        }
      },
      [&](std::int32_t n_left) -> FloatLanes {
        const auto l2 = converted<SignedLanes>(squares), m = converted<SignedLanes>(products);
        return converted<FloatLanes>(l2) * (1.0f / static_cast<float>(n_left)) +
               converted<FloatLanes>(t2 - 2 * m + l2) * (1.0f / static_cast<float>(score.size - n_left));
      });
}

// Numbers, of 16 bits: with D = n s_l − n_l s the gain is in proportion to D² / (n_l n_r).
MARGROVE_CLONES void sort_and_score_numbers(std::uint32_t* cell, const Scoring& score, std::int32_t sum) {
  sort_side_by_side<Lanes32>(cell, static_cast<std::uint32_t>(score.size));
  const std::int32_t n = score.size;
  SignedLanes left{};
  walk_lanes<Lanes32, 24>(
      cell, score, [&](const Lanes32& own) { left += converted<SignedLanes>(own & 0xFFFF); },
      [&](std::int32_t n_left) -> FloatLanes {
        const auto d = converted<FloatLanes>(left * n - n_left * sum);
        return d * d * (1.0f / static_cast<float>(n_left * (n - n_left)));
      });
}

}  // namespace

bool SmallTrees::can_grow(std::span<const Column> columns, std::span<const List> lists, const ScanRules& rules,
                          const GrowthRules& growth) {
  const auto has_missing = [](const List& l) {
    return l.mode == kMissing || (l.size > 0 && l.key[l.size - 1] == kMissing);
  };
  const Criterion criterion = rules.measure.criterion;
  return (criterion == Criterion::gini || criterion == Criterion::squared_error) && !rules.measure.has_several() &&
         rules.weight.empty() && rules.min_weight <= 0 && rules.thresholds == Thresholds::every &&
         growth.score == SplitScore::gain && growth.complexity <= 0 && growth.max_leaves == 0 && growth.n_bins == 0 &&
         !growth.is_shuffled && std::none_of(lists.begin(), lists.end(), has_missing) &&
         std::all_of(columns.begin(), columns.end(),
                     [](const Column& column) { return column.test == Test::threshold && column.monotone == 0; });
}

SmallTrees::SmallTrees(std::span<const Column> columns, const Lists& lists, const ScanRules& rules,
                       const GrowthRules& growth, std::int64_t n, double weight)
    : columns_(columns),
      lists_(lists),
      rules_(rules),
      growth_(growth),
      weight_(weight),
      has_classes_(rules.measure.criterion == Criterion::gini),
      place_of_row_(n),
      spare_(kMostRows),
      key_(kMostRows + 16),
      tag_(kMostRows + 16) {}

void SmallTrees::begin(std::span<const std::uint32_t> tags) {
  tags_.assign(tags.begin(), tags.end());
  if (has_classes_)
    std::stable_sort(tags_.begin(), tags_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return rules_.tags.label_of(a) < rules_.tags.label_of(b);
    });
  for (std::size_t i = 0; i < tags_.size(); ++i)
    place_of_row_[rules_.tags.row(tags_[i])] = static_cast<std::uint8_t>(i);
  if (!has_classes_) {
    numbers_.resize(tags_.size());
    for (std::size_t i = 0; i < tags_.size(); ++i) numbers_[i] = rules_.number[tags_[i]];
  }
  taken_.clear();
  groups_.clear();
  flags_.clear();
}

void SmallTrees::add(std::uint32_t column, const Piece& piece) {
  const std::size_t c = taken_.size(), size = tags_.size();
  if (c % kLanes == 0) ranks_.resize((c / kLanes + 1) * kLanes * size);
  std::uint8_t* rank = rank_of(c);
  const std::uint32_t mode = lists_.lists()[column].mode;
  std::uint8_t next = 0;
  std::uint32_t e = 0;
  const auto put = [&](std::uint32_t end) {
    for (; e < end; ++e) {
      rank[place_of_row_[rules_.tags.row(piece.tag[e])] * kLanes] = next;
      next += e + 1 < piece.size && piece.key[e] != piece.key[e + 1];
    }
  };
  if (piece.size < size) {
    const auto before =
        static_cast<std::uint32_t>(std::lower_bound(piece.key, piece.key + piece.size, mode) - piece.key);
    std::uint32_t below = before > 0;
    for (std::uint32_t i = 1; i < before; ++i) below += piece.key[i] != piece.key[i - 1];
    for (std::size_t i = 0; i < size; ++i) rank[i * kLanes] = static_cast<std::uint8_t>(below);
    put(before);
    next = static_cast<std::uint8_t>(below + 1);
  }
  put(piece.size);
  taken_.push_back(column);
}

void SmallTrees::add(const FlagGroup& group) {
  std::uint64_t in_some = 0, in_all = ~std::uint64_t{0};
  for (const std::uint32_t tag : tags_) {
    const std::uint64_t own = group.word[rules_.tags.row(tag)];
    flags_.push_back(own);
    in_some |= own;
    in_all &= own;
  }
  if (in_some == in_all)
    flags_.resize(flags_.size() - tags_.size());  // these columns are constant here
  else
    groups_.push_back(&group);
}

// Where the group of a column is among them; behind them all if it has none.
std::size_t SmallTrees::group_with(std::uint32_t column) const {
  return std::find(groups_.begin(), groups_.end(), lists_.group_of(column)) - groups_.begin();
}

void SmallTrees::grow(const OpenNode& root, std::uint32_t first_row, std::vector<Node>& output) {
  const auto size = static_cast<std::uint32_t>(tags_.size());
  places_.resize(size);
  std::iota(places_.begin(), places_.end(), std::uint8_t{0});
  const std::size_t blocks = (taken_.size() + kLanes - 1) / kLanes;
  has_classes_ ? cells_.resize(blocks * kLanes * size) : wide_cells_.resize(blocks * kLanes * size);
  score_.resize(blocks * kLanes);
  n_tests_.resize(blocks * kLanes);
  counts_.resize(std::max(counts_.size(), groups_.size()));
  cuts_.clear();
  waiting_.assign(1, {0, size, root.branch, root.depth, root.parent});
  while (!waiting_.empty()) {
    const Waiting at = waiting_.back();
    waiting_.pop_back();
    node_.parent = at.parent;
    node_.branch = at.branch;
    node_.is_leaf = true;
    if (at.size == size)
      node_.sums = root.sums;
    else
      sum_up(at);
    if (!is_closed(node_.sums, at.depth, rules_, growth_)) search(at);
    if (node_.is_leaf) {
      output.push_back(node_.as_leaf());
      output.back().first_row = first_row + at.begin;
      continue;
    }
    const std::uint32_t left = divide(at), right = at.size - left;
    const double weights[] = {static_cast<double>(left), static_cast<double>(right)};
    const auto id = length(output);
    cuts_.push_back({output.size(), node_.column, node_.test.left_row, node_.test.right_row});
    output.push_back(node_.as_inner(weights, 0, std::numeric_limits<double>::quiet_NaN()));
    waiting_.push_back({at.begin + left, right, 1, at.depth + 1, id});
    waiting_.push_back({at.begin, left, 0, at.depth + 1, id});
  }
  for (const Cut& cut : cuts_)
    output[cut.node].threshold = lists_.threshold(cut.column, 0, cut.left_row, cut.right_row);
  ordered_tags_.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) ordered_tags_[i] = tags_[places_[i]];
}

void SmallTrees::sum_up(const Waiting& node) {
  NodeSums& sums = node_.sums;
  if (!has_classes_ && node.size == 1) {  // half of all nodes of a tree to full depth
    sums.rows = 1;
    sums.weight = 1;
    sums.is_pure = true;
    return;
  }
  if (!has_classes_)
    return summarise_numbers([this, place = &places_[node.begin]](std::size_t i) { return numbers_[place[i]]; },
                             node.size, sums);
  sums.rows = node.size;
  sums.weight = node.size;
  std::fill(sums.seen.begin(), sums.seen.end(), 0u);
  for (std::uint32_t i = 0; i < node.size; ++i) ++sums.seen[rules_.tags.label_of(tags_[places_[node.begin + i]])];
  std::copy(sums.seen.begin(), sums.seen.end(), sums.sum.begin());
  summarise_classes(rules_, sums);
}

void SmallTrees::search(const Waiting& node) {
  const std::uint32_t m = node.size;
  if (m == 2) return search_pair(node);
  has_classes_ ? score_classes(node.begin, m) : score_numbers(node.begin, m);
  float best = -1;
  for (std::size_t c = 0; c < taken_.size(); ++c) best = std::max(best, score_[c]);
  const std::vector<std::uint32_t>& seen = node_.sums.seen;
  const bool is_two = has_classes_ && length(seen) - std::count(seen.begin(), seen.end(), 0u) == 2;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    count_flags(node, g, is_two);
    best = std::max(best, static_cast<float>(counts_[g].best()));
  }
  // The chooser treats columns within one tolerance as equal, so that the chosen one may be up to d tolerances below
  // the best.
  const auto d = static_cast<float>(columns_.size()), n = static_cast<float>(m);
  float enough;
  if (has_classes_) {
    enough = best * kAlmostSingle - static_cast<float>(kEqualGain) * d * n * n;
  } else {  // rounding to 16 bits moves √score by at most n / 2, up and down; tolerances are 0.07 n √d in all
    const float root = std::max(0.0f, std::sqrt(std::max(best, 0.0f)) * kAlmostSingle - n * (1 + 0.07f * std::sqrt(d)));
    enough = root * root;
  }
  Chooser chooser(growth_, node_.sums, columns_.size());
  std::size_t g = 0;
  const auto choose_groups = [&](std::uint32_t before) {
    for (; g < groups_.size() && groups_[g]->members[0].column < before; ++g)
      if (counts_[g].n_tests() > 0)
        choose_flags(rules_, *groups_[g], counts_[g], node_.sums, enough, scan_, candidate_, chooser);
  };
  for (std::size_t c = 0; c < taken_.size(); ++c) {
    if (n_tests_[c] == 0) continue;
    choose_groups(taken_[c]);
    if (score_[c] < enough) {
      candidate_.excess = kNoFloor;
      candidate_.n_tests = n_tests_[c];
    } else if (has_classes_) {
      scan_lane(c, node.begin, m, chooser.floor(), candidate_);
    } else {
      scan_numbers(c, node.begin, m, chooser.floor(), candidate_);
    }
    chooser.add(taken_[c], candidate_);
  }
  choose_groups(length(columns_));
  node_.settle(chooser, weight_);
}

void SmallTrees::count_flags(const Waiting& node, std::size_t g, bool is_two) {
  const std::uint64_t* flags = flags_of(g);
  std::uint64_t* words = counts_[g].words(node.size);
  for (std::uint32_t i = 0; i < node.size; ++i) words[i] = flags[places_[node.begin + i]];
  counts_[g].count(*groups_[g], node_.sums.seen, rules_.min_rows, true, is_two);
}

// Of two rows every column that tells them apart does so equally well: the first is taken.
void SmallTrees::search_pair(const Waiting& node) {
  const std::size_t first = places_[node.begin] * kLanes, second = places_[node.begin + 1] * kLanes;
  std::size_t chosen = taken_.size(), count = 0;
  for (std::size_t c = taken_.size(); c-- > 0;) {
    const std::uint8_t* rank = rank_of(c);
    if (rank[first] == rank[second]) continue;
    chosen = c;
    ++count;
  }
  Chooser chooser(growth_, node_.sums, columns_.size());
  std::size_t from = groups_.size();  // the group of the first, if it comes before the first of the others
  const FlagGroup::Member* member = nullptr;
  for (std::size_t g = groups_.size(); g-- > 0;) {
    const std::uint64_t* flags = flags_of(g);
    const std::uint64_t between = flags[places_[node.begin]] ^ flags[places_[node.begin + 1]];
    if (between == 0) continue;
    const auto is_told = [&](const FlagGroup::Member& m) { return (m.flags & between) != 0; };
    const auto& members = groups_[g]->members;
    count += std::count_if(members.begin(), members.end(), is_told);
    const auto first = std::find_if(members.begin(), members.end(), is_told);
    if (chosen < taken_.size() && taken_[chosen] < first->column) continue;
    from = g;
    member = &*first;
  }
  if (count == 0) return;
  if (member) {
    count_flags(node, from, true);
    scan_flags(rules_, *member, counts_[from], node_.sums, kNoFloor, scan_, candidate_);
    chooser.add(member->column, candidate_);
    node_.settle(chooser, weight_);
    node_.n_candidates = static_cast<double>(count);
    return;
  }
  const std::uint8_t* rank = rank_of(chosen);
  std::uint8_t left = places_[node.begin], right = places_[node.begin + 1];
  if (rank[first] > rank[second]) std::swap(left, right);
  candidate_ = {};
  candidate_.excess = has_classes_ ? 1.0 : excess_of_numbers(node_.sums, numbers_[left] - node_.sums.shift, 1.0);
  candidate_.n_tests = 1;
  candidate_.cut_key = rank[left * kLanes];
  candidate_.left_row = rules_.tags.row(tags_[left]);
  candidate_.right_row = rules_.tags.row(tags_[right]);
  chooser.add(taken_[chosen], candidate_);
  node_.settle(chooser, weight_);
  node_.n_candidates = static_cast<double>(count);
}

void SmallTrees::score_classes(std::uint32_t begin, std::uint32_t size) {
  std::uint16_t first[kMostRows + 1];
  std::size_t n_classes = 0;
  std::uint16_t before = 0;
  for (const std::uint32_t count : node_.sums.seen) {
    if (count == 0) continue;
    first[n_classes++] = before;
    before = static_cast<std::uint16_t>(before + count);
  }
  first[n_classes] = before;
  for (std::size_t c = 0; c < taken_.size(); c += kLanes) {
    const std::uint8_t* rank = rank_of(c);
    std::uint16_t* cell = cells_.data() + c * size;
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint8_t* own = rank + places_[begin + i] * kLanes;
      for (std::uint32_t l = 0; l < kLanes; ++l) cell[i * kLanes + l] = static_cast<std::uint16_t>(own[l] << 8 | i);
    }
    const Scoring score{static_cast<std::int32_t>(size),
                        static_cast<std::int32_t>(rules_.min_rows),
                        {first, n_classes + 1},
                        &score_[c],
                        &n_tests_[c]};
    if (n_classes == 2)
      sort_and_score_two(cell, score);
    else
      sort_and_score_many(cell, score);
  }
}

void SmallTrees::score_numbers(std::uint32_t begin, std::uint32_t size) {
  std::uint32_t number[kMostRows];
  double low = numbers_[places_[begin]], high = low;
  for (std::uint32_t i = 1; i < size; ++i) {
    const double y = numbers_[places_[begin + i]];
    low = std::min(low, y);
    high = std::max(high, y);
  }
  // Where the squares of numbers underflow, exact scores cannot tell columns apart, and these must not.
  constexpr double kLeastSpread = 1e-140;
  const double scale = high - low < kLeastSpread ? 0 : 65535 / (high - low);
  std::int32_t sum = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    number[i] = static_cast<std::uint32_t>((numbers_[places_[begin + i]] - low) * scale + 0.5);
    sum += static_cast<std::int32_t>(number[i]);
  }
  for (std::size_t c = 0; c < taken_.size(); c += kLanes) {
    const std::uint8_t* rank = rank_of(c);
    std::uint32_t* cell = wide_cells_.data() + c * size;
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint8_t* own = rank + places_[begin + i] * kLanes;
      const std::uint32_t low_bits = i << 16 | number[i];
      for (std::uint32_t l = 0; l < kLanes; ++l) cell[i * kLanes + l] = std::uint32_t{own[l]} << 24 | low_bits;
    }
    const Scoring score{
        static_cast<std::int32_t>(size), static_cast<std::int32_t>(rules_.min_rows), {}, &score_[c], &n_tests_[c]};
    sort_and_score_numbers(cell, score, sum);
  }
}

// The best test of column c of a node, whose cells are sorted already, where the target is a number: what `scan` finds.
void SmallTrees::scan_numbers(std::size_t c, std::uint32_t begin, std::uint32_t size, double floor, Candidate& found) {
  const NodeSums& sums = node_.sums;
  const std::uint32_t* cell = wide_cells_.data() + c / kLanes * kLanes * size + c % kLanes;
  const std::uint8_t* place = &places_[begin];
  const double total = sums.sum[0], all = sums.weight;
  const auto least = static_cast<std::uint32_t>(std::min<std::int64_t>(rules_.min_rows, size));
  double s = 0, bar = floor - 2 * sums.tolerance + sums.purity;
  found.excess = kNoFloor;
  found.n_tests = n_tests_[c];
  std::uint32_t own = *cell;
  for (std::uint32_t nl = 1; nl < size; ++nl) {
    cell += kLanes;
    const std::uint32_t next = *cell;
    const std::uint8_t left = place[own >> 16 & 0xFF];
    s += numbers_[left] - sums.shift;
    const std::uint32_t key = own >> 24;
    own = next;
    if (key == next >> 24 || std::min(nl, size - nl) < least) continue;
    const double wl = nl, wr = all - wl, rest = total - s;
    // Cross-multiplied, a test that cannot win needs no division.
    if (s * s * wr + rest * rest * wl < bar * kAlmostDouble * wl * wr) continue;
    const double excess = excess_of_numbers(sums, s, wl);
    if (found.found() && !(excess > found.excess + sums.tolerance)) continue;
    found.excess = excess;
    bar = excess + sums.tolerance + sums.purity;
    found.cut_key = key;
    found.left_row = tags_[left];
    found.right_row = tags_[place[next >> 16 & 0xFF]];
  }
}

// Scans column c of a node, whose cells are sorted already, where the target is a class.
void SmallTrees::scan_lane(std::size_t c, std::uint32_t begin, std::uint32_t size, double floor, Candidate& found) {
  const std::size_t first = c / kLanes * kLanes * size + c % kLanes;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t cell = cells_[first + i * kLanes];
    key_[i] = cell >> 8;
    tag_[i] = tags_[places_[begin + (cell & 0xFF)]];
  }
  scan(rules_, columns_[taken_[c]], {kNoMode, 0}, {key_.data(), tag_.data(), size}, node_.sums, floor, scan_, found);
}

// Puts the rows of the left branch before the others. Returns how many they are.
std::uint32_t SmallTrees::divide(const Waiting& node) {
  std::uint8_t* place = places_.data() + node.begin;
  std::uint32_t left = 0, right = 0;
  const auto put = [&](auto is_left_at) {
    for (std::uint32_t i = 0; i < node.size; ++i) {
      const std::uint8_t p = place[i];
      const bool is_left = is_left_at(p);
      place[left] = p;
      spare_[right] = p;
      left += is_left;
      right += !is_left;
    }
  };
  const std::uint32_t cut = node_.test.cut_key;
  if (const std::size_t g = group_with(node_.column); g < groups_.size()) {
    const std::uint32_t bit = FlagGroup::bit(groups_[g]->member(node_.column).first + cut);
    put([bit, flags = flags_of(g)](std::uint8_t p) { return (flags[p] >> bit & 1) != 0; });
  } else {
    const std::size_t c = std::lower_bound(taken_.begin(), taken_.end(), node_.column) - taken_.begin();
    put([cut, rank = rank_of(c)](std::uint8_t p) { return rank[p * kLanes] <= cut; });
  }
  std::copy_n(spare_.data(), right, place + left);
  return left;
}

}  // namespace margrove::tree
