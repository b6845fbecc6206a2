#include "forest/random_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "dispatch.hpp"
#include "index.hpp"
#include "simd.hpp"

namespace margrove::forest {
namespace {

constexpr std::uint32_t kLanes = RandomSearch::kLanes;

// The least and the largest cell of each lane.
template <class T>
MARGROVE_INLINE void find_ends(const T* cells, std::uint32_t size, T* low, T* high) {
  using Lanes = Simd<T, kLanes>;
  Lanes least = load<Lanes>(cells), most = least;
  for (std::uint32_t i = 1; i < size; ++i) {
    const auto own = load<Lanes>(cells + i * kLanes);
    least = own < least ? own : least;
    most = own > most ? own : most;
  }
  store(low, least);
  store(high, most);
}
MARGROVE_CLONES void ends_of(const float* cells, std::uint32_t size, float* low, float* high) {
  find_ends(cells, size, low, high);
}
MARGROVE_CLONES void ends_of(const double* cells, std::uint32_t size, double* low, double* high) {
  find_ends(cells, size, low, high);
}

// Of the rows whose cell in a lane is at most `cut`: their draws, and their number is added to `rows`.
template <class T, class Whole>
MARGROVE_INLINE void add_up_left(const T* cells, const std::uint32_t* load_of, std::uint32_t size,
                                 std::uint32_t count_mask, const T* cut, Whole* draws, Whole* rows) {
  using Lanes = Simd<T, kLanes>;
  using Wholes = Simd<Whole, kLanes>;
  const auto most = load<Lanes>(cut);
  Wholes sum{}, n{};
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto is_left = load<Lanes>(cells + i * kLanes) <= most;  // all bits of a lane, or none
    sum += reinterpret_cast<const Wholes&>(is_left) & static_cast<Whole>(load_of[i] & count_mask);
    n -= reinterpret_cast<const Wholes&>(is_left);
  }
  store(draws, sum);
  store(rows, load<Wholes>(rows) + n);
}
MARGROVE_CLONES void left_sums(const float* cells, const std::uint32_t* load_of, std::uint32_t size,
                               std::uint32_t count_mask, const float* cut, std::int32_t* draws, std::int32_t* rows) {
  add_up_left(cells, load_of, size, count_mask, cut, draws, rows);
}
MARGROVE_CLONES void left_sums(const double* cells, const std::uint32_t* load_of, std::uint32_t size,
                               std::uint32_t count_mask, const double* cut, std::int64_t* draws, std::int64_t* rows) {
  add_up_left(cells, load_of, size, count_mask, cut, draws, rows);
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
  if (is_side_by_side) return find_flags(first, task);
  const std::size_t d = columns.size();
  copy_ = large_memory<std::byte>(static_cast<std::size_t>(task.n) * d * sizeof(T));
  T* copy = reinterpret_cast<T*>(copy_.get());
  for (std::size_t j = 0; j < d; ++j)
    for (std::int64_t i = 0; i < task.n; ++i)
      copy[static_cast<std::size_t>(i) * d + j] = static_cast<const T*>(columns[j].data)[i * columns[j].stride];
  cells_ = copy;
  stride_ = static_cast<std::int64_t>(d);
  find_flags(copy, task);
}

template <class T>
void CellRows::find_flags(const T* cells, const ForestTask& task) {
  const auto d = static_cast<std::int64_t>(task.columns.size());
  std::vector<T> one(cells, cells + d), other(one);
  std::vector<std::uint8_t> is_flag(task.columns.size(), 1);
  for (std::int64_t i = 0; i < task.n; ++i) {
    const T* own = cells + i * stride_;
    for (std::int64_t j = 0; j < d; ++j) {
      if (one[j] == other[j]) other[j] = own[j];
      is_flag[j] &= own[j] == one[j] || own[j] == other[j];
    }
  }
  flags_.begin(task.columns.size(), task.n);
  for (std::uint32_t j = 0; j < d; ++j) {
    const T larger = std::max(one[j], other[j]);
    if (is_flag[j]) flags_.add(j, [&](std::int64_t i) { return cells[i * stride_ + j] == larger; });
  }
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
  n_alive_ = node.alive.size();
  cells_.flags().list_varying({node.row, node.size}, node.alive, varying_, drawn_);
  const std::size_t wanted = most ? std::min(most, drawn_.size()) : drawn_.size();
  draw_.begin(node.path, drawn_, task_.column_key, wanted);
  for (std::size_t looked_at = 0; draw_.has_next() && (looked_at < wanted || !best.exists());) {
    const std::size_t more = looked_at < wanted ? std::min<std::size_t>(wanted - looked_at, kLanes) : 1;
    waiting_.clear();
    while (waiting_.size() < more && draw_.has_next()) waiting_.push_back(draw_.next());
    looked_at += cells_.visit(
        [&](const auto* cells, std::int64_t stride) { return look_at(node, sums, cells, stride, column, best); });
  }
  return best.exists();
}

bool RandomSearch::list_alive(std::vector<std::uint32_t>& alive) const {
  if (constant_.empty() && drawn_.size() == n_alive_) return false;
  for (const std::uint32_t j : drawn_)
    if (!is_constant_[j]) alive.push_back(j);
  return true;
}

// The columns that wait, side by side in lanes. Returns how many of them offer a test.
template <class T>
std::size_t RandomSearch::look_at(const NodeRows& node, const NodeSums& sums, const T* cells, std::int64_t stride,
                                  std::uint32_t& column, Found& best) {
  using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  fetched_.resize(std::max<std::size_t>(fetched_.size(), kLanes * node.size));
  T* fetched = reinterpret_cast<T*>(fetched_.data());
  std::uint32_t place[kLanes];  // lanes that are not used repeat the first
  for (std::size_t c = 0; c < kLanes; ++c) place[c] = waiting_[c < waiting_.size() ? c : 0];
  for (std::uint32_t i = 0; i < node.size; ++i) {
    const T* own = cells + node.row[i] * stride;
    for (std::size_t c = 0; c < kLanes; ++c) fetched[i * kLanes + c] = own[place[c]];
  }
  T low[kLanes], high[kLanes], bound[kLanes] = {};
  double cut[kLanes] = {};
  ends_of(fetched, node.size, low, high);
  std::size_t found = 0;
  for (std::size_t c = 0; c < waiting_.size(); ++c) {
    if (!(low[c] < high[c])) {
      is_constant_[place[c]] = true;
      constant_.push_back(place[c]);
      continue;
    }
    ++found;
    cut[c] = random_cut(tree::mixed(node.path ^ task_.column_key[place[c]]), low[c], high[c]);
    bound[c] = at_most<T>(cut[c]);
  }
  if (!found) return 0;
  const std::size_t n_segments = sums.segments.size();
  draws_.resize(std::max(draws_.size(), n_segments * kLanes));
  Whole rows[kLanes] = {}, draws[kLanes];
  for (std::size_t s = 0; s < n_segments; ++s) {
    const auto& [label, begin, end, weight] = sums.segments[s];
    left_sums(fetched + begin * kLanes, node.load + begin, end - begin, (1u << count_bits_) - 1, bound, draws, rows);
    std::copy_n(draws, kLanes, draws_.begin() + static_cast<std::ptrdiff_t>(s * kLanes));
  }
  for (std::size_t c = 0; c < waiting_.size(); ++c)
    if (low[c] < high[c] && judge(sums, c, rows[c], best)) {
      best.theta = cut[c];
      column = place[c];
    }
  return found;
}

// Whether the test of a lane is better than the best, which it then is.
bool RandomSearch::judge(const NodeSums& sums, std::size_t lane, std::int64_t rows, Found& best) {
  Found found;
  ClassSums<CountReader> kernel(task_, sums, found, tree::kNoFloor, {count_bits_, (1u << count_bits_) - 1}, left_);
  kernel.nl = rows;
  for (std::size_t s = 0; s < sums.segments.size(); ++s) {
    const auto draws = static_cast<double>(draws_[s * kLanes + lane]);
    kernel.left[sums.segments[s].label] = draws;
    kernel.wl += draws;
  }
  kernel.consider(0, 0);
  if (!found.exists() || (best.exists() && !(found.excess > best.excess + sums.tolerance))) return false;
  best = found;
  return true;
}

}  // namespace margrove::forest
