#include "forest/random_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dispatch.hpp"
#include "index.hpp"

namespace margrove::forest {
namespace {

template <class T>
struct Ends {
  T low, high;
};

template <class T>
MARGROVE_INLINE Ends<T> ends_among(const T* x, std::uint32_t size) {
  T low = x[0], high = x[0];
  for (std::uint32_t i = 0; i < size; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  return {low, high};
}
MARGROVE_CLONES Ends<float> ends_of(const float* x, std::uint32_t size) { return ends_among(x, size); }
MARGROVE_CLONES Ends<double> ends_of(const double* x, std::uint32_t size) { return ends_among(x, size); }

// Of the rows whose cell is at most `cut`: their draws, and their number.
struct LeftSums {
  std::uint32_t draws, rows;
};
template <class T>
MARGROVE_INLINE LeftSums add_up_left(const T* x, const std::uint32_t* load, std::uint32_t size,
                                     std::uint32_t count_mask, T cut) {
  std::uint32_t draws = 0, rows = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    draws += x[i] <= cut ? load[i] & count_mask : 0;
    rows += x[i] <= cut ? 1 : 0;
  }
  return {draws, rows};
}
MARGROVE_CLONES LeftSums left_sums(const float* x, const std::uint32_t* load, std::uint32_t size,
                                   std::uint32_t count_mask, float cut) {
  return add_up_left(x, load, size, count_mask, cut);
}
MARGROVE_CLONES LeftSums left_sums(const double* x, const std::uint32_t* load, std::uint32_t size,
                                   std::uint32_t count_mask, double cut) {
  return add_up_left(x, load, size, count_mask, cut);
}

// The largest number of the type that is not above θ.
template <class T>
T at_most(double theta) {
  const T near = static_cast<T>(theta);
  return static_cast<double>(near) <= theta ? near : std::nextafter(near, -std::numeric_limits<T>::infinity());
}

}  // namespace

CellRows::CellRows(const ForestTask& task) : is_single_(task.columns[0].cells == tree::CellKind::f32) {
  if (!task.is_random) return;
  is_single_ ? lay_out<float>(task) : lay_out<double>(task);
}

template <class T>
void CellRows::lay_out(const ForestTask& task) {
  const std::vector<tree::Column>& columns = task.columns;
  const auto* first = static_cast<const T*>(columns[0].data);
  cells_ = first;
  stride_ = columns[0].stride;
  bool is_side_by_side = true;
  for (std::int64_t j = 0; j < length(columns); ++j) is_side_by_side &= columns[j].data == first + j;
  if (is_side_by_side) return;
  const std::size_t d = columns.size();
  copy_ = large_memory<std::byte>(static_cast<std::size_t>(task.n) * d * sizeof(T));
  T* copy = reinterpret_cast<T*>(copy_.get());
  for (std::size_t j = 0; j < d; ++j)
    for (std::int64_t i = 0; i < task.n; ++i)
      copy[static_cast<std::size_t>(i) * d + j] = static_cast<const T*>(columns[j].data)[i * columns[j].stride];
  cells_ = copy;
  stride_ = static_cast<std::int64_t>(d);
}

double random_cut(std::uint64_t draw, double low, double high) {
  const double share = static_cast<double>(tree::mixed(draw) >> 11) * 0x1p-53;  // 53 bits, in [0, 1)
  const double cut = (1 - share) * low + share * high;                          // their difference may overflow
  return cut < high ? std::max(cut, low) : low;
}

RandomSearch::RandomSearch(const ForestTask& task, const CellRows& cells)
    : task_(task), cells_(cells), is_constant_(task.columns.size()) {}

bool RandomSearch::search(const NodeRows& node, const NodeSums& sums, std::uint32_t& column, Found& best) {
  for (const std::uint32_t j : constant_) is_constant_[j] = false;
  constant_.clear();
  const auto most = static_cast<std::size_t>(task_.max_columns);
  const std::size_t wanted = most ? std::min(most, node.alive.size()) : node.alive.size();
  draw_.begin(node.path, node.alive, task_.column_key, wanted);
  for (std::size_t looked_at = 0; draw_.has_next() && (looked_at < wanted || !best.exists());) {
    const std::size_t more = looked_at < wanted ? std::min(wanted - looked_at, kTogether) : 1;
    waiting_.clear();
    while (waiting_.size() < more && draw_.has_next()) waiting_.push_back(draw_.next());
    looked_at += cells_.visit(
        [&](const auto* cells, std::int64_t stride) { return look_at(node, sums, cells, stride, column, best); });
  }
  return best.exists();
}

bool RandomSearch::list_alive(std::uint32_t begin, std::uint32_t end, std::vector<std::uint32_t>& alive) const {
  if (constant_.empty()) return false;
  for (std::uint32_t i = begin; i < end; ++i)
    if (!is_constant_[alive[i]]) alive.push_back(alive[i]);
  return true;
}

// The columns that wait. Returns how many of them offer a test.
template <class T>
std::size_t RandomSearch::look_at(const NodeRows& node, const NodeSums& sums, const T* cells, std::int64_t stride,
                                  std::uint32_t& column, Found& best) {
  const std::size_t size = waiting_.size();
  fetched_.resize(std::max<std::size_t>(fetched_.size(), kTogether * node.size));
  T* fetched = reinterpret_cast<T*>(fetched_.data());
  std::uint32_t place[kTogether] = {};
  std::copy(waiting_.begin(), waiting_.end(), place);
  for (std::uint32_t i = 0; i < node.size; ++i) {
    const T* own = cells + node.row[i] * stride;
    for (std::size_t c = 0; c < size; ++c) fetched[c * node.size + i] = own[place[c]];
  }
  std::size_t found = 0;
  for (std::size_t c = 0; c < size; ++c) {
    const T* x = fetched + c * node.size;
    const auto [low, high] = ends_of(x, node.size);
    if (!(low < high)) {
      is_constant_[place[c]] = true;
      constant_.push_back(place[c]);
      continue;
    }
    ++found;
    const double cut = random_cut(tree::mixed(node.path ^ task_.column_key[place[c]]), low, high);
    judge(node, sums, x, place[c], cut, column, best);
  }
  return found;
}

template <class T>
void RandomSearch::judge(const NodeRows& node, const NodeSums& sums, const T* x, std::uint32_t at, double cut,
                         std::uint32_t& column, Found& best) {
  Found found;
  const std::uint32_t count_mask = (1u << count_bits_) - 1;
  ClassSums<CountReader> kernel(task_, sums, found, tree::kNoFloor, {count_bits_, count_mask}, left_);
  const T bound = at_most<T>(cut);
  for (const auto& [label, begin, end, weight] : sums.segments) {
    const LeftSums left = left_sums(x + begin, node.load + begin, end - begin, count_mask, bound);
    kernel.left[label] = left.draws;
    kernel.wl += left.draws;
    kernel.nl += left.rows;
  }
  kernel.consider(0, 0);
  if (!found.exists() || (best.exists() && !(found.excess > best.excess + sums.tolerance))) return;
  best = found;
  best.theta = cut;
  column = at;
}

}  // namespace margrove::forest
