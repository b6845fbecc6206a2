#include "tree/coded.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "index.hpp"
#include "parallel.hpp"
#include "tree/weighted.hpp"

namespace margrove::tree {
namespace {

// More values are walked as a list. Chosen, not measured: so many sums of two classes are 4 KiB.
constexpr std::uint32_t kMostKeys = 256;
// Rows for each value, on the average: with fewer, the sums take longer than the rows. Chosen on spambase.
constexpr std::int64_t kRowsOfKey = 24;
// Slots of a row, and as a share of the columns: with fewer, lists are faster. Where most columns have one, rows are
// alike and so many are not needed. Measured on bank_marketing, w8a and reuters.
constexpr double kLeastPerRow = 8, kLeastShare = 0.09, kMostHaveOne = 0.5;
// Of the sums of a block: they stay in L2 while rows are added.
constexpr std::size_t kMostSums = std::size_t{1} << 16;

// How many keys a column has, 0 if its list is kept.
std::uint32_t keys_of(const List& list, const Column& column, std::int64_t n, std::size_t n_classes) {
  if (column.test != Test::threshold || column.monotone != 0 || list.mode == kMissing) return 0;
  std::uint32_t n_keys = list.mode == kNoMode ? 0 : list.mode + 1;
  if (list.size > 0) {
    const std::uint32_t last = list.key[list.size - 1];
    if (last >= kMostKeys) return 0;  // a missing cell is the largest of all
    n_keys = std::max(n_keys, last + 1);
  }
  return n_keys <= kMostKeys && n_keys <= n / kRowsOfKey && n_keys * n_classes <= kMostSums ? n_keys : 0;
}

// Adds rows to the sums of their slots.
template <bool NeedsRows>
void add_rows(const CodedBlock& block, const ScanRules& rules, std::span<const std::uint32_t> tags,
              std::size_t n_classes, CodedSums& sums) {
  const std::uint32_t *begin = block.begin.data(), *slot = block.slot.data();
  for (const std::uint32_t tag : tags) {
    const std::uint32_t row = rules.tags.row(tag), end = begin[row + 1];
    const std::int64_t w = rules.whole_weight[row];
    std::int64_t* weight = sums.weight.data() + rules.tags.label_of(tag);
    for (std::uint32_t i = begin[row]; i < end; ++i) {
      weight[slot[i] * n_classes] += w;
      if constexpr (NeedsRows) ++sums.rows[slot[i]];
    }
  }
}

// The sums up to each key, and for each test a limit of w Σ d_k² / (w_l w_r), d_k = l_k − w_l t_k / w: each d_k may be
// off by the rounding of a product.
MARGROVE_CLONES void add_up_keys(const std::int64_t* sum, std::size_t n_keys, std::size_t n_classes,
                                 const std::int64_t* all, std::int64_t weight, std::int64_t* left,
                                 std::int64_t* left_weight, double* limit) {
  const double w = static_cast<double>(weight), rounding = kRoundingOfProducts * w;
  const std::int64_t* before = nullptr;
  for (std::size_t key = 0; key < n_keys; ++key, sum += n_classes, left += n_classes) {
    std::int64_t wl = 0;
    for (std::size_t k = 0; k < n_classes; ++k) {
      left[k] = sum[k] + (before ? before[k] : 0);
      wl += left[k];
    }
    before = left;
    const double part = static_cast<double>(wl) / w;
    double squares = 0;
    MARGROVE_SUMS(squares)
    for (std::size_t k = 0; k < n_classes; ++k) {
      const double d = static_cast<double>(left[k]) - part * static_cast<double>(all[k]);
      const double most = std::abs(d) + rounding;
      squares += most * most;
    }
    left_weight[key] = wl;
    limit[key] = squares * w / (static_cast<double>(wl) * static_cast<double>(weight - wl));
  }
}

}  // namespace

Coded::Coded(const Lists& lists, std::int64_t n, std::size_t n_classes, int threads)
    : lists_(lists), n_classes_(n_classes), block_of_(lists.lists().size(), -1) {
  std::uint64_t listed = 0;  // elements of the lists of the last block
  const auto drop_poor_block = [&] {
    if (blocks_.empty()) return;
    const double per_row = static_cast<double>(listed) / static_cast<double>(n);
    const double share = per_row / static_cast<double>(blocks_.back().members.size());
    if (share < (per_row < kLeastPerRow ? kMostHaveOne : kLeastShare)) blocks_.pop_back();
  };
  bool is_open = false;
  for (std::uint32_t j = 0; j < block_of_.size(); ++j) {
    const List& list = lists.lists()[j];
    const std::uint32_t n_keys = keys_of(list, lists.columns()[j], n, n_classes);
    is_open = is_open && n_keys > 0 && (blocks_.back().n_slots + n_keys) * n_classes <= kMostSums &&
              listed + list.size <= std::numeric_limits<std::uint32_t>::max();
    if (n_keys == 0) continue;
    if (!is_open) {
      drop_poor_block();
      blocks_.emplace_back();
      listed = 0;
    }
    is_open = true;
    CodedBlock& block = blocks_.back();
    block.members.push_back({j, block.n_slots, n_keys, list.mode, {}});
    block.n_slots += n_keys;
    listed += list.size;
  }
  drop_poor_block();
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    for (const CodedBlock::Member& member : blocks_[b].members) block_of_[member.column] = static_cast<std::int32_t>(b);
  parallel_for(length(blocks_), threads, [&](std::int64_t b) { add_columns(blocks_[b], n); });
}

void Coded::add_columns(CodedBlock& block, std::int64_t n) {
  block.begin.assign(n + 2, 0);
  const Tags tags = lists_.tags();
  for (const CodedBlock::Member& member : block.members) {
    const List& list = lists_.lists()[member.column];
    for (std::uint32_t i = 0; i < list.size; ++i) ++block.begin[tags.row(list.tag[i]) + 2];
  }
  for (std::size_t i = 2; i < block.begin.size(); ++i) block.begin[i] += block.begin[i - 1];
  block.slot.resize(block.begin.back());
  for (CodedBlock::Member& member : block.members) {
    const List& list = lists_.lists()[member.column];
    member.row.assign(member.n_keys, kModeRow);
    for (std::uint32_t i = 0; i < list.size; ++i) {
      const std::uint32_t row = tags.row(list.tag[i]);
      block.slot[block.begin[row + 1]++] = member.first + list.key[i];
      member.row[list.key[i]] = row;
    }
  }
  block.begin.pop_back();
}

void Coded::add_up(const CodedBlock& block, const ScanRules& rules, const NodeSums& node,
                   std::span<const std::uint32_t> tags, CodedSums& sums) const {
  // To look at a sum takes about as long as to sort a twentieth of a slot. Chosen, not measured.
  const double entries = block.per_row() * static_cast<double>(node.rows);
  sums.is_listed = entries * 20 < static_cast<double>(block.n_slots * n_classes_);
  if (sums.is_listed) {
    sums.pairs.clear();
    for (const std::uint32_t tag : tags) {
      const std::uint32_t row = rules.tags.row(tag);
      for (std::uint32_t i = block.begin[row]; i < block.begin[row + 1]; ++i)
        sums.pairs.push_back(std::uint64_t{block.slot[i]} << 32 | tag);
    }
    std::sort(sums.pairs.begin(), sums.pairs.end());
    return;
  }
  sums.weight.assign(block.n_slots * n_classes_, 0);
  if (rules.min_rows > 1) {
    sums.rows.assign(block.n_slots, 0);
    add_rows<true>(block, rules, tags, n_classes_, sums);
  } else {
    add_rows<false>(block, rules, tags, n_classes_, sums);
  }
  for (const CodedBlock::Member& member : block.members) {
    if (member.mode == kNoMode) continue;
    std::int64_t* own = sums.weight.data() + member.first * n_classes_;
    std::int64_t* rest = own + member.mode * n_classes_;
    std::vector<std::int64_t> listed(n_classes_);
    for (std::size_t i = 0; i < member.n_keys * n_classes_;)
      for (std::size_t k = 0; k < n_classes_; ++k) listed[k] += own[i++];
    for (std::size_t k = 0; k < n_classes_; ++k) rest[k] = node.whole_sum[k] - listed[k];
    if (rules.min_rows <= 1) continue;
    std::uint32_t* rows = sums.rows.data() + member.first;
    std::uint32_t others = 0;
    for (std::uint32_t key = 0; key < member.n_keys; ++key) others += rows[key];
    rows[member.mode] = static_cast<std::uint32_t>(node.rows) - others;
  }
}

void Coded::search(const CodedBlock::Member& member, const ScanRules& rules, const NodeSums& node, double floor,
                   CodedSums& sums, ScanSpace& space, Candidate& found) const {
  if (sums.is_listed) {
    const auto first = std::lower_bound(sums.pairs.begin(), sums.pairs.end(), std::uint64_t{member.first} << 32);
    const auto last = std::lower_bound(first, sums.pairs.end(), std::uint64_t{member.first + member.n_keys} << 32);
    const auto size = static_cast<std::uint32_t>(last - first);
    sums.key.resize(size + 16);
    sums.tag.resize(size + 16);
    for (std::uint32_t i = 0; i < size; ++i) {
      sums.key[i] = static_cast<std::uint32_t>(first[i] >> 32) - member.first;
      sums.tag[i] = static_cast<std::uint32_t>(first[i]);
    }
    const Mode mode{member.mode, lists_.mode_value(member.column)};
    return scan(rules, lists_.columns()[member.column], mode, {sums.key.data(), sums.tag.data(), size}, node, floor,
                space, found);
  }
  found = Candidate{};
  const std::size_t n_keys = member.n_keys, n_classes = n_classes_;
  sums.left.resize(n_keys * n_classes);
  sums.left_weight.resize(n_keys);
  sums.limit.resize(n_keys);
  add_up_keys(sums.weight.data() + member.first * n_classes, n_keys, n_classes, node.whole_sum.data(),
              node.whole_weight, sums.left.data(), sums.left_weight.data(), sums.limit.data());
  const auto go = [&](auto&& kernel, double scale, auto set) {
    std::uint32_t before = kNoMode;  // the last key that occurs
    std::int64_t rows = 0;
    for (std::uint32_t key = 0; key < n_keys; ++key) {
      if (sums.left_weight[key] == (key ? sums.left_weight[key - 1] : 0)) continue;
      if (before != kNoMode && sums.limit[before] * scale < kernel.bar * kNearly) {
        ++kernel.boundaries;
      } else if (before != kNoMode) {
        kernel.nl = rules.min_rows > 1 ? rows : 1;
        kernel.wl = sums.left_weight[before];
        set(kernel, sums.left.data() + before * n_classes);
        kernel.consider(before, member.row[before], key, member.row[key]);
      }
      if (rules.min_rows > 1) rows += sums.rows[member.first + key];
      before = key;
    }
    found.is_constant = kernel.boundaries == 0;
    keep(kernel, Parts{static_cast<std::uint32_t>(node.rows)}, found);
  };
  if (n_classes == 2) {
    // Its score is that of many classes times w / 2.
    go(WeightedTwo<true>(rules, node, space, floor), static_cast<double>(node.whole_weight) / 2,
       [](auto& kernel, const std::int64_t* left) { kernel.l1 = left[1]; });
  } else {
    go(WeightedMany<true>(rules, node, space, floor), 1.0,
       [&](auto&, const std::int64_t* left) { space.whole_left.assign(left, left + n_classes); });
  }
}

}  // namespace margrove::tree
