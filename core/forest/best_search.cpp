#include "forest/best_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "dispatch.hpp"
#include "forest/sorting.hpp"
#include "index.hpp"
#include "simd.hpp"

namespace margrove::forest {
namespace {

constexpr std::uint32_t kFlagLanes = 8;
using FlagLanes = Simd<std::uint64_t, kFlagLanes>;

// Of the rows begin .. end − 1, those with each of these flags: their number << 32 | their draws.
MARGROVE_CLONES void add_flags(const std::uint64_t* word, const std::uint32_t* row, const std::uint32_t* load,
                               std::uint32_t begin, std::uint32_t end, std::uint32_t count_mask,
                               const std::uint64_t* flags, std::uint64_t* sums) {
  const auto flag = margrove::load<FlagLanes>(flags);
  FlagLanes sum{};
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::uint64_t own = (std::uint64_t{1} << 32) + (load[i] & count_mask);
    const auto has = ((FlagLanes{} + word[row[i]]) & flag) != 0;
    sum += has ? FlagLanes{} + own : FlagLanes{};
  }
  store(sums, sum);
}

MARGROVE_CLONES void find_ends(const std::uint32_t* key, std::uint32_t size, std::uint32_t& least,
                               std::uint32_t& most) {
  std::uint32_t low = ~0u, high = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    low = std::min(low, key[i]);
    high = std::max(high, key[i]);
  }
  least = low;
  most = high;
}

// Excesses that are nearer to the best than this, in tolerances, may be equal to it: each column that is chosen before
// a better one may be a tolerance below.
constexpr double kNearTolerances = 8;

}  // namespace

BestSearch::BestSearch(const ForestTask& task, const RankTable& table)
    : task_(task), table_(table), is_constant_(task.columns.size()), order_(task.columns.size()) {}

bool BestSearch::begin_tree(std::int64_t weight, int count_bits, int load_bits) {
  most_rank_bits_ = std::bit_width(table_.most_ranks());
  count_bits_ = count_bits;
  load_bits_ = has_numbers() ? kLanePlaceBits : load_bits;
  return task_.has_counts() && !task_.is_random && task_.measure.criterion == tree::Criterion::gini &&
         task_.min_weight <= 0 && task_.min_weight_share <= 0 && weight <= kMostPacked &&
         most_rank_bits_ + load_bits <= 32;
}

bool BestSearch::begin_node(const NodeRows& node, const NodeSums& sums) {
  if (task_.is_random || task_.min_weight > 0 || task_.min_weight_share > 0) return false;
  suits_lanes_ = node.size > 2 && prepare_lanes(node, sums);  // a pair needs none
  return true;
}

// Single precision must tell the tests of the node apart: not where weights are of very different size.
bool BestSearch::prepare_lanes(const NodeRows& node, const NodeSums& sums) {
  constexpr std::size_t kWorthLanes = 6;  // columns
  const std::size_t columns = task_.max_columns ? static_cast<std::size_t>(task_.max_columns) : node.alive.size();
  if (columns < kWorthLanes || node.size > kMostNumberRows || most_rank_bits_ + kLanePlaceBits > 32) return false;
  constexpr double kSingle = 0x1p-24, kLeastTerm = 1e-150, kMostTerm = 1e150, kMostError = 0.01;
  double least = node.number[0].weight, most = least, most_term = 0, terms = 0;
  for (std::uint32_t i = 0; i < node.size; ++i) {
    const auto [weight, term] = node.number[i];
    least = std::min(least, weight);
    most = std::max(most, weight);
    most_term = std::max(most_term, std::abs(term));
    terms += std::abs(term);
  }
  if (!(most_term > kLeastTerm && most_term < kMostTerm)) return false;
  const double size = node.size, scale = task_.weight.empty() ? 1 : most;  // numbers of draws are exact as they are
  share_error_ = 1e-6 + (task_.weight.empty() ? 0 : 8 * size * kSingle * sums.weight / least);
  if (share_error_ > kMostError) return false;
  for (std::uint32_t i = 0; i < node.size; ++i) {
    number_rows_.weight[i] = static_cast<float>(node.number[i].weight / scale);
    number_rows_.term[i] = static_cast<float>(node.number[i].term / most_term);
  }
  number_rows_.all = static_cast<float>(sums.weight / scale);
  number_unit_ = sums.weight / scale * most_term / scale * most_term;
  root_error_ = 2 * size * kSingle * terms / most_term / std::sqrt(least / scale * ((sums.weight - least) / scale));
  return true;
}

// ---- which columns are looked at

bool BestSearch::search(const NodeRows& node, const NodeSums& sums, std::uint32_t& column, Found& best) {
  begin(node, sums);
  if (node.size == 2) return search_pair(column, best);
  const bool takes_all = task_.max_columns == 0 || static_cast<std::size_t>(task_.max_columns) >= drawn_.size();
  if (takes_all) {
    for (const std::uint32_t j : drawn_) take(j);
    take_waiting();
    evaluate();
  } else {
    const auto wanted = static_cast<std::size_t>(task_.max_columns);
    draw_.begin(node.path, drawn_, task_.column_key, wanted);
    for (std::size_t looked_at = 0; draw_.has_next() && (looked_at < wanted || candidates_.empty());) {
      const std::size_t more = looked_at < wanted ? wanted - looked_at : 1;
      for (std::size_t i = 0; i < more && draw_.has_next(); ++i) looked_at += take(draw_.next());
      looked_at += take_waiting();
      if (looked_at >= wanted || !draw_.has_next()) evaluate();
    }
  }
  if (candidates_.empty()) return false;
  choose(takes_all, column, best);
  return true;
}

// Of two rows: all tests are equal, so the first column that tells them apart has the best.
bool BestSearch::search_pair(std::uint32_t& column, Found& best) {
  const auto ends_of = [&](std::uint32_t j) {
    return table_.visit(j, [&](const auto& rank) {
      return std::pair<std::uint32_t, std::uint32_t>{rank[node_.row[0]], rank[node_.row[1]]};
    });
  };
  std::uint64_t least = ~std::uint64_t{0};
  std::pair<std::uint32_t, std::uint32_t> ends{};
  const bool takes_all = task_.max_columns == 0;
  if (!takes_all) draw_.begin(node_.path, drawn_, task_.column_key, 1);
  for (std::size_t i = 0; takes_all ? i < drawn_.size() : draw_.has_next(); ++i) {
    const std::uint32_t j = takes_all ? drawn_[i] : draw_.next();
    const std::uint64_t place = takes_all ? tree::mixed(node_.path ^ task_.column_key[j]) : 0;
    if (place > least) continue;
    const auto own = ends_of(j);
    if (own.first == own.second) continue;
    least = place;
    column = j;
    ends = own;
    if (!takes_all) break;
  }
  if (ends.first == ends.second) return false;
  const std::uint32_t left = ends.first < ends.second ? 0 : 1;
  const auto judge = [&](auto&& kernel) {
    kernel.add(has_numbers() ? left : node_.load[left]);
    kernel.consider(std::min(ends.first, ends.second), std::max(ends.first, ends.second));
  };
  if (has_numbers())
    judge(NumberKernel(task_, *sums_, best, tree::kNoFloor, node_.number));
  else
    with_kernel(best, judge);
  return best.exists();
}

void BestSearch::begin(const NodeRows& node, const NodeSums& sums) {
  node_ = node;
  sums_ = &sums;
  labels_.clear();
  totals_.clear();
  if (!has_numbers())
    for (const Segment& segment : sums.segments) {
      labels_.push_back(segment.label);
      totals_.push_back(static_cast<std::int32_t>(segment.weight));
    }
  candidates_.clear();
  n_taken_ = 0;
  for (const std::uint32_t j : constant_) is_constant_[j] = false;
  constant_.clear();
  flags_.clear();
  numbers_.clear();
  waiting_.clear();
  fetched_.clear();
  table_.flags().list_varying({node.row, node.size}, node.alive, varying_, drawn_);
}

bool BestSearch::list_alive(std::vector<std::uint32_t>& alive) const {
  if (constant_.empty() && drawn_.size() == node_.alive.size()) return false;
  for (const std::uint32_t j : drawn_)
    if (!is_constant_[j]) alive.push_back(j);
  return true;
}

// Takes a column up. Returns 1 if it offers a test, 0 if it is constant in the node, or if that will be known once
// columns are evaluated together.
std::size_t BestSearch::take(std::uint32_t column) {
  order_[column] = n_taken_++;
  if (table_.flags().place(column).group >= 0 && !has_numbers()) {
    flags_.push_back(column);
    return 1;
  }
  waiting_.push_back(column);
  return 0;
}

// Evaluates the columns that wait, or puts them into lanes. Returns how many offer a test.
std::size_t BestSearch::take_waiting() {
  std::size_t found = 0;
  if (numbers_.empty()) has_lanes_ = is_worth_lanes();
  if (!has_lanes_) {
    found = evaluate_large();
  } else {
    if (numbers_.empty()) {
      lanes_ = waiting_.size() <= 8 && !has_numbers() ? 8 : kMostLanes;
      cells_.resize(std::max(cells_.size(), std::size_t{node_.size} * lanes_));
    }
    for (const std::uint32_t j : waiting_) {
      if (fill_lane(j))
        ++found;
      else
        drop(j);
    }
  }
  waiting_.clear();
  return found;
}

// Whether the columns that wait are put into lanes. Nodes of more than few rows are worth lanes that are nearly full.
// Where all columns are looked at, those that cannot win are sooner told from intervals, unless many classes occur; and
// then, too, in the larger nodes, unless columns are very many.
bool BestSearch::is_worth_lanes() const {
  if (has_numbers()) return suits_lanes_;
  constexpr std::size_t kNearlyFull = 6, kFull = 12, kVeryMany = 128, kManyClasses = 4;
  constexpr std::uint32_t kFewRows = 64, kSomeRows = 256;
  const std::size_t columns = waiting_.size();
  if (columns < kNearlyFull) return node_.size <= kFewRows;
  const bool takes_all = task_.max_columns == 0;
  if (labels_.size() > kManyClasses && labels_.size() <= kMostLaneClasses)
    return node_.size <= (columns >= (takes_all ? kVeryMany : kFull) ? kMostLaneRows : kSomeRows);
  return node_.size <= (takes_all ? kFewRows : kSomeRows);
}

void BestSearch::drop(std::uint32_t column) {
  is_constant_[column] = true;
  constant_.push_back(column);
}

bool BestSearch::fill_lane(std::uint32_t column) {
  const std::uint32_t lanes = lanes_;
  std::uint32_t* cell = cells_.data() + numbers_.size();
  const bool is_varying = table_.visit(column, [&](const auto& rank) {
    const std::uint32_t first = rank[node_.row[0]];
    std::uint32_t differs = 0;
    for (std::uint32_t i = 0; i < node_.size; ++i) {
      const std::uint32_t own = rank[node_.row[i]];
      differs |= own ^ first;
      cell[i * lanes] = own << load_bits_ | (has_numbers() ? i : node_.load[i]);
    }
    return differs != 0;
  });
  if (!is_varying) return false;
  numbers_.push_back(column);
  if (numbers_.size() == lanes) evaluate_lanes();
  return true;
}

void BestSearch::evaluate() {
  if (!flags_.empty()) evaluate_flags();
  if (!numbers_.empty()) evaluate_lanes();
}

void BestSearch::offer(std::uint32_t column, const Found& found) {
  if (!found.exists()) return;
  if (candidates_.empty() || found.excess > best_excess_) best_excess_ = found.excess;
  candidates_.push_back({column, found.cut, found.excess});
}

// What a test must surpass to be of interest.
double BestSearch::floor() const {
  return candidates_.empty() ? tree::kNoFloor : best_excess_ - kNearTolerances * sums_->tolerance;
}

// The first that none after it surpasses by more than the tolerance, in the order in which the columns are looked at.
void BestSearch::choose(bool takes_all, std::uint32_t& column, Found& best) {
  const double least = floor();
  std::erase_if(candidates_, [&](const Candidate& c) { return c.excess < least; });
  if (candidates_.size() > 1) {
    const auto place = [&](std::uint32_t j) {
      return takes_all ? tree::mixed(node_.path ^ task_.column_key[j]) : std::uint64_t{order_[j]};
    };
    std::sort(candidates_.begin(), candidates_.end(),
              [&](const Candidate& a, const Candidate& b) { return place(a.column) < place(b.column); });
  }
  for (const Candidate& c : candidates_) {
    if (best.exists() && !(c.excess > best.excess + sums_->tolerance)) continue;
    best.excess = c.excess;
    best.cut = c.cut;
    column = c.column;
  }
}

// use(the kernel that judges tests, for one column)
template <class Use>
void BestSearch::with_kernel(Found& found, Use use) {
  if (sums_->whole.size() == 2)
    use(GiniTwo<CountReader>(task_, *sums_, found, floor(), reader()));
  else
    use(GiniMany<CountReader>(task_, *sums_, found, floor(), reader(), left_));
}

// The sums of the left branch: weights of the classes that occur, and rows.
template <class Weights>
void BestSearch::put(GiniTwo<CountReader>& kernel, std::int64_t rows, Weights weight_of) const {
  kernel.wl = kernel.l1 = 0;
  kernel.nl = rows;
  for (std::size_t c = 0; c < labels_.size(); ++c) {
    const std::int64_t weight = weight_of(c);
    kernel.wl += weight;
    if (labels_[c] == 1) kernel.l1 = weight;
  }
}
template <class Weights>
void BestSearch::put(GiniMany<CountReader>& kernel, std::int64_t rows, Weights weight_of) const {
  kernel.wl = 0;
  kernel.nl = rows;
  kernel.squares = kernel.products = 0;
  for (std::size_t c = 0; c < labels_.size(); ++c) {
    const std::int64_t weight = weight_of(c);
    const auto l = static_cast<double>(weight);
    kernel.left[labels_[c]] = weight;
    kernel.wl += weight;
    kernel.squares += l * l;
    kernel.products += l * static_cast<double>(totals_[c]);
  }
}

const std::uint32_t* BestSearch::ranks_of(std::uint32_t column) const {
  const auto at = std::find(fetched_.begin(), fetched_.end(), column);
  return at == fetched_.end() ? nullptr : keys_.data() + (at - fetched_.begin()) * node_.size;
}

// ---- columns of two values

void BestSearch::evaluate_flags() {
  std::sort(flags_.begin(), flags_.end());  // those of a group follow each other
  for (std::size_t begin = 0, end; begin < flags_.size(); begin = end) {
    const std::int32_t g = table_.flags().place(flags_[begin]).group;
    std::uint64_t flag[kFlagLanes] = {};
    for (end = begin; end < flags_.size() && end < begin + kFlagLanes && table_.flags().place(flags_[end]).group == g;
         ++end)
      flag[end - begin] = std::uint64_t{1} << table_.flags().place(flags_[end]).bit;
    flag_sums_.resize(labels_.size() * kFlagLanes);
    for (std::size_t c = 0; c < labels_.size(); ++c)
      add_flags(table_.flags().words(g), node_.row, node_.load, sums_->segments[c].begin, sums_->segments[c].end,
                (1u << count_bits_) - 1, flag, flag_sums_.data() + c * kFlagLanes);
    for (std::size_t i = begin; i < end; ++i) offer_flag(flags_[i], flag_sums_.data() + (i - begin));
  }
  flags_.clear();
}

void BestSearch::offer_flag(std::uint32_t column, const std::uint64_t* set) {
  const auto weight_of = [&](std::size_t c) {  // on the left, where the flag is not set
    return totals_[c] - static_cast<std::int64_t>(set[c * kFlagLanes] & 0xFFFFFFFFu);
  };
  std::int64_t rows = node_.size, wl = 0;
  double squares = 0, others = 0, all = 0;
  for (std::size_t c = 0; c < labels_.size(); ++c) {
    rows -= static_cast<std::int64_t>(set[c * kFlagLanes] >> 32);
    const std::int64_t weight = weight_of(c);
    const double l = weight, t = totals_[c];
    wl += weight;
    squares += l * l;
    others += (t - l) * (t - l);
    all += t * t;
  }
  const double w = sums_->weight, left = wl;
  if (!candidates_.empty()) {  // not worth an exact look
    const double excess = squares / left + others / (w - left) - all / w;
    if (excess < floor() - 1e-9 * w) return;
  }
  Found found;
  with_kernel(found, [&](auto&& kernel) {
    put(kernel, rows, weight_of);
    kernel.judge(0, 1);
  });
  offer(column, found);
}

// ---- nodes of few rows

void BestSearch::evaluate_lanes() {
  if (has_numbers()) return evaluate_number_lanes();
  const auto weight = static_cast<std::int64_t>(sums_->whole_weight);
  const auto min_rows = static_cast<std::int32_t>(std::min<std::int64_t>(task_.min_rows, kMostLaneRows));
  const LaneNode node{node_.size, lanes_, min_rows, count_bits_, load_bits_, static_cast<std::int32_t>(weight),
                      labels_,    totals_};
  const auto used = static_cast<std::uint32_t>(numbers_.size());
  if (labels_.size() > kMostLaneClasses || weight > kMostLaneWeight) {
    sort_lanes(cells_.data(), node_.size, lanes_);
    for (std::uint32_t lane = 0; lane < used; ++lane) scan_lane(lane);
    numbers_.clear();
    return;
  }
  LaneScores scores;
  sort_and_score(cells_.data(), node, scores);
  double t2 = 0;
  for (const std::int32_t total : totals_) t2 += static_cast<double>(total) * static_cast<double>(total);
  const double w = sums_->weight;
  const auto excess_of = [&](std::uint32_t lane) {
    const double score = static_cast<double>(scores.num[lane]) / static_cast<double>(scores.den[lane]);
    return is_two() ? 2 * score / w : score - t2 / w;
  };
  if (weight <= kExactWeight) {
    for (std::uint32_t lane = 0; lane < used; ++lane) {
      if (scores.num[lane] < 0) continue;
      Found found;
      found.excess = excess_of(lane);
      found.cut = cells_[scores.at[lane] * lanes_ + lane] >> load_bits_;
      offer(numbers_[lane], found);
    }
  } else {
    constexpr double kSingle = 1e-5;  // relative, thirty times the rounding of a score in single precision
    double best = floor();
    for (std::uint32_t lane = 0; lane < used; ++lane)
      if (scores.num[lane] >= 0) best = std::max(best, excess_of(lane));
    const double rounding = kSingle * (is_two() ? best : best + t2 / w);
    for (std::uint32_t lane = 0; lane < used; ++lane)
      if (scores.num[lane] >= 0 && excess_of(lane) >= best - rounding) scan_lane(lane);
  }
  numbers_.clear();
}

// With the sum s of w (y − mean) on the left the excess of a test is  s² w / (w_l w_r). In single precision √excess may
// be wrong by `root_error_`, and that by a share; a lane that may hold the best test is looked at row by row.
void BestSearch::evaluate_number_lanes() {
  const auto min_rows = static_cast<std::int32_t>(std::min<std::int64_t>(task_.min_rows, kMostLaneRows));
  const LaneNode node{node_.size, lanes_, min_rows, 0, load_bits_, 0, {}, {}};
  LaneScores scores;
  sort_and_score_numbers(cells_.data(), node, number_rows_, scores);
  const auto used = static_cast<std::uint32_t>(numbers_.size());
  const auto excess_of = [&](std::uint32_t lane, double sign) {
    const double root = std::sqrt(static_cast<double>(scores.num[lane]) / static_cast<double>(scores.den[lane]));
    const double other = std::max(0.0, root + sign * root_error_);
    return other * other * (1 + sign * share_error_) * number_unit_;
  };
  double bar = floor();
  for (std::uint32_t lane = 0; lane < used; ++lane)
    if (scores.num[lane] >= 0) bar = std::max(bar, excess_of(lane, -1) - kNearTolerances * sums_->tolerance);
  for (std::uint32_t lane = 0; lane < used; ++lane)
    if (scores.num[lane] >= 0 && !(excess_of(lane, 1) < bar)) scan_lane(lane);
  numbers_.clear();
}

// The best test of a lane, row by row.
void BestSearch::scan_lane(std::uint32_t lane) {
  const std::uint32_t* cell = cells_.data() + lane;
  const std::uint32_t mask = (1u << load_bits_) - 1;
  Found found;
  const auto scan = [&](auto&& kernel) {
    for (std::uint32_t i = 0; i + 1 < node_.size; ++i) {
      const std::uint32_t own = cell[i * lanes_], next = cell[(i + 1) * lanes_];
      kernel.add(own & mask);
      if (own >> load_bits_ != next >> load_bits_) kernel.consider(own >> load_bits_, next >> load_bits_);
    }
  };
  if (has_numbers())
    scan(NumberKernel(task_, *sums_, found, floor(), node_.number));
  else
    with_kernel(found, scan);
  offer(numbers_[lane], found);
}

// ---- nodes of many rows

// Some columns at a time, whose ranks are fetched together. Returns how many offer a test.
std::size_t BestSearch::evaluate_large() {
  if (waiting_.empty()) return 0;
  std::size_t found = 0;
  keys_.resize(std::max<std::size_t>(keys_.size(), kTogether * node_.size));
  for (std::size_t first = 0; first < waiting_.size(); first += kTogether) {
    const std::size_t size = std::min(kTogether, waiting_.size() - first);
    fetched_.assign(waiting_.begin() + static_cast<std::ptrdiff_t>(first),
                    waiting_.begin() + static_cast<std::ptrdiff_t>(first + size));
    std::uint32_t least[kTogether], most[kTogether];
    fetch_ranks(size);
    std::size_t n_counted = 0;
    for (std::size_t c = 0; c < size; ++c) {
      own_ = &buckets_[n_counted];
      own_->key = keys_.data() + c * node_.size;
      find_ends(own_->key, node_.size, least[c], most[c]);
      if (least[c] == most[c]) {
        drop(waiting_[first + c]);
        continue;
      }
      if (has_numbers()) {
        ++found;
        scan_sorted(waiting_[first + c], least[c], most[c]);
        continue;
      }
      ++n_counted;
      own_->column = waiting_[first + c];
      choose_buckets(least[c], most[c]);
      is_two() ? count_two() : count_many();
      own_->best = *std::max_element(own_->scores.score.begin(), own_->scores.score.begin() + own_->n - 1);
    }
    // The most promising first: of the others then little need be looked at.
    std::sort(buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(n_counted),
              [](const Buckets& a, const Buckets& b) { return a.best > b.best; });
    for (std::size_t c = 0; c < n_counted; ++c) {
      own_ = &buckets_[c];
      is_two() ? judge_two() : judge_many();
    }
    found += n_counted;
  }
  return found;
}

// Of the columns in `fetched_`: the ranks of the rows.
void BestSearch::fetch_ranks(std::size_t size) {
  std::uint32_t place[kTogether];
  std::size_t column[kTogether], n = 0;
  for (std::size_t c = 0; c < size; ++c) {
    std::uint32_t* key = keys_.data() + c * node_.size;
    if (table_.flags().place(fetched_[c]).group < 0) {
      place[n] = table_.place(fetched_[c]);
      column[n++] = c * node_.size;
    } else {
      table_.visit(fetched_[c], [&](const auto& rank) {
        for (std::uint32_t i = 0; i < node_.size; ++i) key[i] = rank[node_.row[i]];
      });
    }
  }
  table_.visit_rows([&](const auto* rank, std::size_t stride) {
    for (std::uint32_t i = 0; i < node_.size; ++i) {
      const auto* own = rank + node_.row[i] * stride;
      for (std::size_t c = 0; c < n; ++c) keys_[column[c] + i] = own[place[c]];
    }
  });
}

// The best test of the column under way, where the target is a number: all rows in its order.
void BestSearch::scan_sorted(std::uint32_t column, std::uint32_t least, std::uint32_t most) {
  const int bits = std::max<int>(std::bit_width(node_.size - 1), 1);
  const auto scan = [&]<class Cell>(Cell) {
    const std::size_t room = (node_.size * sizeof(Cell) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
    sorted_.resize(std::max(sorted_.size(), room));
    spare_.resize(sorted_.size());
    Cell* cells = reinterpret_cast<Cell*>(sorted_.data());
    for (std::uint32_t i = 0; i < node_.size; ++i) cells[i] = static_cast<Cell>(own_->key[i]) << bits | i;
    const Cell mask = (Cell{1} << bits) - 1;
    const Cell* cell = sort_cells(cells, reinterpret_cast<Cell*>(spare_.data()), node_.size, bits,
                                  static_cast<Cell>(least) << bits, static_cast<Cell>(most) << bits | mask);
    Found found;
    NumberKernel kernel(task_, *sums_, found, floor(), node_.number);
    for (std::uint32_t i = 0; i + 1 < node_.size; ++i) {
      kernel.add(static_cast<std::uint32_t>(cell[i] & mask));
      const Cell key = cell[i] >> bits, next = cell[i + 1] >> bits;
      if (key != next) kernel.consider(static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(next));
    }
    offer(column, found);
  };
  std::bit_width(most) + bits <= 32 ? scan(std::uint32_t{}) : scan(std::uint64_t{});
}

// One bucket for each rank if they are few, else intervals of as many ranks each, with some rows on average.
void BestSearch::choose_buckets(std::uint32_t least, std::uint32_t most) {
  constexpr std::uint32_t kMostBuckets = 1024, kFewestBuckets = 32;
  const std::uint32_t rows_each = 8, range = most - least;
  const std::uint32_t wanted = std::clamp(node_.size / rows_each, kFewestBuckets, kMostBuckets);
  own_->low = least;
  own_->shift =
      range < node_.size / 2 && range < kMostBuckets
          ? 0
          : std::max(0, static_cast<int>(std::bit_width(range)) - static_cast<int>(std::bit_width(wanted - 1)));
  own_->n = (range >> own_->shift) + 1;
}

void BestSearch::count_two() {
  const std::uint32_t count_mask = (1u << count_bits_) - 1;
  own_->packed.assign(2 * (own_->n + 1), 0);
  std::uint64_t* sums = own_->packed.data() + 1;
  // Rows go in turns into two tables: where many follow each other into one bucket, each waits for the last.
  std::uint64_t* others = sums + own_->n;
  for (std::size_t c = 0; c < 2; ++c) {
    const auto [label, begin, end, weight] = sums_->segments[c];
    const std::uint64_t draw = 1 + (std::uint64_t{c} << kPackBits), row = std::uint64_t{1} << 2 * kPackBits;
    const auto add = [&](std::uint64_t* table, std::uint32_t i) {
      table[(own_->key[i] - own_->low) >> own_->shift] += draw * (node_.load[i] & count_mask) + row;
    };
    std::uint32_t i = begin;
    for (; i + 2 <= end; i += 2) {
      add(sums, i);
      add(others, i + 1);
    }
    if (i < end) add(sums, i);
  }
  std::uint64_t running = 0;
  for (std::uint32_t b = 0; b < own_->n; ++b) sums[b] = running += sums[b] + others[b];
  own_->scores.resize(own_->n);
  const BucketNode node{sums_->weight, static_cast<double>(totals_[1]), static_cast<std::int32_t>(node_.size),
                        static_cast<std::int32_t>(std::min<std::int64_t>(task_.min_rows, node_.size))};
  score_two_classes(own_->packed.data(), own_->n, node, own_->scores.score.data(), own_->scores.limit.data());
}

void BestSearch::judge_two() {
  // D² / (w_l w_r) to the excess, by which columns are compared.
  const double unit = 2 / sums_->weight;
  Found found;
  with_kernel(found, [&](auto&& kernel) {
    refine(kernel, unit, 0, [&](std::uint32_t b) {
      const std::uint64_t before = own_->packed[b];
      put(kernel, Packed::rows(before),
          [&](std::size_t c) { return c ? Packed::ones(before) : Packed::weight(before) - Packed::ones(before); });
    });
  });
  offer(own_->column, found);
}

void BestSearch::count_many() {
  const std::uint32_t count_mask = (1u << count_bits_) - 1, n = own_->n;
  const std::size_t width = labels_.size();
  own_->counts.assign((width + 1) * n, 0);
  for (std::size_t c = 0; c < width; ++c) {
    const auto [label, begin, end, weight] = sums_->segments[c];
    std::int32_t* own = own_->counts.data() + c * n;
    for (std::uint32_t i = begin; i < end; ++i)
      own[(own_->key[i] - own_->low) >> own_->shift] += static_cast<std::int32_t>(node_.load[i] & count_mask);
  }
  std::int32_t* rows = own_->counts.data() + width * n;  // where they count
  if (task_.min_rows > 1) {
    for (std::uint32_t i = 0; i < node_.size; ++i) ++rows[(own_->key[i] - own_->low) >> own_->shift];
    for (std::uint32_t b = 1; b < n; ++b) rows[b] += rows[b - 1];
  }
  own_->scores.resize(n);
  const BucketNode node{sums_->weight, 0, static_cast<std::int32_t>(node_.size),
                        static_cast<std::int32_t>(std::min<std::int64_t>(task_.min_rows, node_.size))};
  score_classes(own_->counts.data(), n, totals_, node, own_->scores);
  if (task_.min_rows > 1) allow_rows(rows, n, node, own_->scores);
}

void BestSearch::judge_many() {
  const std::uint32_t n = own_->n;
  const std::int32_t* rows = own_->counts.data() + labels_.size() * n;
  Found found;
  with_kernel(found, [&](auto&& kernel) {
    refine(kernel, 1, 1e-12 * sums_->weight, [&](std::uint32_t b) {
      const std::int64_t n_rows = task_.min_rows > 1 ? (b ? rows[b - 1] : 0) : 1;
      put(kernel, n_rows, [&](std::size_t c) { return b ? std::int64_t{own_->counts[c * n + b - 1]} : 0; });
    });
  });
  offer(own_->column, found);
}

// Judges the tests that may be the best: those behind buckets, and those inside of buckets whose limit is high enough.
// `unit` times a score is an excess, up to `rounding`; put(b) sets the kernel to the sums before bucket b.
template <class Kernel, class Put>
void BestSearch::refine(Kernel& kernel, double unit, double rounding, Put put) {
  constexpr double kNear = 1 - 1e-9;
  double bar = floor() / unit;
  for (std::uint32_t b = 0; b + 1 < own_->n; ++b) bar = std::max(bar, own_->scores.score[b]);
  if (bar > 0) bar = bar * kNear - rounding / unit;
  std::uint32_t n_picked = 0;
  if (own_->shift > 0) {
    is_picked_.resize(std::max<std::size_t>(is_picked_.size(), own_->n));
    for (std::uint32_t b = 0; b < own_->n; ++b) n_picked += is_picked_[b] = own_->scores.limit[b] >= bar;
  }
  const std::span<const std::uint32_t> picked = n_picked ? pick() : std::span<const std::uint32_t>{};
  const std::uint32_t *cell = picked.data(), *end = cell + picked.size();
  const std::uint32_t mask = (1u << load_bits_) - 1;
  const auto bucket_of = [&](std::uint32_t own) { return ((own >> load_bits_) - own_->low) >> own_->shift; };
  for (std::uint32_t b = 0; b < own_->n; ++b) {
    if (n_picked && is_picked_[b]) {
      put(b);
      for (; cell != end && bucket_of(*cell) == b; ++cell) {
        kernel.add(*cell & mask);
        if (cell + 1 == end) continue;
        const std::uint32_t key = *cell >> load_bits_, next = cell[1] >> load_bits_;
        if (key != next && bucket_of(cell[1]) == b) kernel.consider(key, next);
      }
    }
    if (b + 1 < own_->n && own_->scores.score[b] >= bar) {
      put(b + 1);
      const std::uint32_t next = own_->low + ((b + 1) << own_->shift);
      kernel.judge(next - 1, next);
    }
  }
}

// The cells of the picked buckets, sorted.
std::span<const std::uint32_t> BestSearch::pick() {
  picked_.resize(std::max<std::size_t>(picked_.size(), node_.size + 1));
  other_.resize(picked_.size());
  std::uint32_t n = 0, least = ~0u, most = 0;
  for (std::uint32_t i = 0; i < node_.size; ++i) {
    const std::uint32_t own = own_->key[i] << load_bits_ | node_.load[i];
    const bool is_picked = is_picked_[(own_->key[i] - own_->low) >> own_->shift];
    picked_[n] = own;
    n += is_picked;
    least = is_picked ? std::min(least, own) : least;
    most = is_picked ? std::max(most, own) : most;
  }
  return {sort_cells(picked_.data(), other_.data(), n, load_bits_, least, most), n};
}

}  // namespace margrove::forest
