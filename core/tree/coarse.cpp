#include "tree/coarse.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "parallel.hpp"
#include "tree/weighted.hpp"

namespace margrove::tree {

Coarse::Coarse(const Lists& lists, const Coded* coded, std::int64_t n, std::span<const std::int32_t> label,
               std::size_t n_classes, int threads)
    : n_(n),
      label_(label),
      n_classes_(n_classes),
      length_((n + kRuns - 1) / kRuns),
      place_(lists.lists().size(), kNone) {
  const std::size_t rows = n;
  std::vector<std::size_t> covered;
  for (std::size_t j = 0; j < place_.size(); ++j) {
    const List& list = lists.lists()[j];
    const Column& column = lists.columns()[j];
    if (coded && coded->block_of(j)) continue;
    if (column.test != Test::threshold || column.monotone != 0 || list.size != rows || list.key[rows - 1] == kMissing)
      continue;
    place_[j] = n_covered_++;
    covered.push_back(j);
  }
  const std::size_t groups = (n_covered_ + kTogether - 1) / kTogether;
  n_tests_.resize(n_covered_);
  runs_ = large_memory<std::uint64_t>(groups * rows);
  weights_.resize(groups * kTogether * kRuns * n_classes_);
  parallel_for(groups, threads, [&](std::int64_t g) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(runs_.get() + g * rows);
    std::memset(bytes, 0, rows * kTogether);
    const std::size_t first = g * kTogether;
    for (std::size_t c = first; c < std::min(first + kTogether, n_covered_); ++c) {
      const List& list = lists.lists()[covered[c]];
      std::uint32_t boundaries = 0;
      for (std::size_t run = 0, i = 0; i < rows; ++run)
        for (const std::size_t end = std::min(i + length_, rows); i < end; ++i) {
          bytes[lists.tags().row(list.tag[i]) * kTogether + (c - first)] = run;
          boundaries += i > 0 && list.key[i] != list.key[i - 1];
        }
      n_tests_[c] = boundaries;
    }
  });
}

namespace {

// One word of runs for each row: the weight of the row is added to its run in each of `Columns` columns.
template <std::size_t Columns>
void add_rows(const std::uint64_t* runs, const std::int64_t* weight, std::span<const std::int32_t> label,
              std::size_t n_classes, std::size_t size, std::int64_t* table) {
  for (std::size_t i = 0; i < label.size(); ++i) {
    const std::uint64_t word = runs[i];
    const std::int64_t w = weight[i];
    std::int64_t* of_class = table + label[i];
    for (std::size_t c = 0; c < Columns; ++c) of_class[c * size + (word >> (8 * c) & 0xFF) * n_classes] += w;
  }
}

}  // namespace

void Coarse::add_up(const std::int64_t* weight, int threads) {
  static constexpr decltype(&add_rows<1>) kAdd[] = {add_rows<1>, add_rows<2>, add_rows<3>, add_rows<4>,
                                                    add_rows<5>, add_rows<6>, add_rows<7>, add_rows<8>};
  const std::size_t size = kRuns * n_classes_;
  std::fill(weights_.begin(), weights_.end(), 0);
  parallel_for((n_covered_ + kTogether - 1) / kTogether, threads, [&](std::int64_t g) {
    const std::size_t first = g * kTogether, count = std::min(kTogether, n_covered_ - first);
    kAdd[count - 1](runs_.get() + static_cast<std::size_t>(g * n_), weight, label_, n_classes_, size,
                    weights_.data() + first * size);
  });
}

template <class Kernel>
void Coarse::find(Kernel&& kernel, std::size_t column, const Piece& piece, Candidate& found) const {
  const std::size_t rows = n_;
  const std::int64_t* of_run = weights_.data() + place_[column] * kRuns * n_classes_;
  const std::size_t runs = (rows + length_ - 1) / length_;
  std::vector<std::int64_t> left((runs + 1) * n_classes_);  // at the beginning of each run
  for (std::size_t i = 0; i < runs * n_classes_; ++i) left[i + n_classes_] = left[i] + of_run[i];
  const auto at = [&](std::size_t run) { return left.data() + run * n_classes_; };
  const auto end_of = [&](std::size_t run) { return std::min((run + 1) * length_, rows); };
  const auto is_boundary = [&](std::size_t i) { return i < rows && piece.key[i - 1] != piece.key[i]; };
  // The best of the tests between runs is a first bar, which one as good passes.
  double between = -1;
  for (std::size_t run = 0; run + 1 < runs; ++run) {
    if (!is_boundary(end_of(run))) continue;
    kernel.begin(at(run + 1), end_of(run));
    if (kernel.is_allowed()) between = std::max(between, kernel.score());
  }
  if (between > 0) kernel.bar = std::max(kernel.bar, std::nextafter(between, 0.0));
  const Tags& tags = kernel.rules.tags;
  for (std::size_t run = 0; run < runs; ++run) {
    const std::size_t begin = run * length_, end = end_of(run);
    if (kernel.limit(at(run), at(run + 1)) > kernel.bar * kNearly) {
      kernel.begin(at(run), begin);
      walk_through(kernel, tags, piece, begin, std::min(end, rows - 1));
    } else {
      kernel.begin(at(run + 1), end);
      if (is_boundary(end))
        kernel.consider(piece.key[end - 1], tags.row(piece.tag[end - 1]), piece.key[end], tags.row(piece.tag[end]));
    }
  }
  Parts parts{piece.size};
  keep(kernel, parts, found);
  found.n_tests = n_tests_[place_[column]];
}

void Coarse::search(const ScanRules& rules, std::size_t column, const Piece& piece, const NodeSums& node, double floor,
                    ScanSpace& space, Candidate& found) const {
  found = Candidate{};
  found.is_constant = false;
  const bool is_packed = !rules.tags.label;
  if (n_classes_ == 2)
    is_packed ? find(WeightedTwo<true>(rules, node, space, floor), column, piece, found)
              : find(WeightedTwo<false>(rules, node, space, floor), column, piece, found);
  else
    is_packed ? find(WeightedMany<true>(rules, node, space, floor), column, piece, found)
              : find(WeightedMany<false>(rules, node, space, floor), column, piece, found);
}

}  // namespace margrove::tree
