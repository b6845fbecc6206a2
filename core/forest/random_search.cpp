#include "forest/random_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "dispatch.hpp"
#include "index.hpp"
#include "rounded_down.hpp"
#include "simd.hpp"
#include "tree/sixteen.hpp"

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

// The same for numbers.
template <class T>
MARGROVE_INLINE void add_up_left(const T* cells, const NumberRow* row, std::uint32_t size, const T* cut,
                                 double* weights, double* terms, std::int64_t* rows) {
  using Wholes = Simd<std::int64_t, kLanes>;
  using Doubles = Simd<double, kLanes>;
  const auto most = load<Simd<T, kLanes>>(cut);
  Doubles w{}, s{};
  Wholes n{};
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto is_left = converted<Wholes>(load<Simd<T, kLanes>>(cells + i * kLanes) <= most);
    w += is_left ? Doubles{} + row[i].weight : Doubles{};
    s += is_left ? Doubles{} + row[i].term : Doubles{};
    n -= is_left;
  }
  store(weights, w);
  store(terms, s);
  store(rows, n);
}
MARGROVE_CLONES void left_sums(const float* cells, const NumberRow* row, std::uint32_t size, const float* cut,
                               double* weights, double* terms, std::int64_t* rows) {
  add_up_left(cells, row, size, cut, weights, terms, rows);
}
MARGROVE_CLONES void left_sums(const double* cells, const NumberRow* row, std::uint32_t size, const double* cut,
                               double* weights, double* terms, std::int64_t* rows) {
  add_up_left(cells, row, size, cut, weights, terms, rows);
}

// The same for classes that have weights: of each class and of all, (classes + 1, lanes).
template <class T>
MARGROVE_INLINE void add_up_left(const T* cells, const std::uint32_t* label, const double* weight, std::uint32_t size,
                                 const T* cut, std::size_t n_classes, double* weights, std::int64_t* rows) {
  using Wholes = Simd<std::int64_t, kLanes>;
  using Doubles = Simd<double, kLanes>;
  const auto most = load<Simd<T, kLanes>>(cut);
  Doubles all{};
  Wholes n{};
  std::fill_n(weights, n_classes * kLanes, 0.0);
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto is_left = converted<Wholes>(load<Simd<T, kLanes>>(cells + i * kLanes) <= most);
    const Doubles own = is_left ? Doubles{} + weight[i] : Doubles{};
    double* of_class = weights + label[i] * kLanes;
    store(of_class, load<Doubles>(of_class) + own);
    all += own;
    n -= is_left;
  }
  store(weights + n_classes * kLanes, all);
  store(rows, n);
}
MARGROVE_CLONES void left_sums(const float* cells, const std::uint32_t* label, const double* weight, std::uint32_t size,
                               const float* cut, std::size_t n_classes, double* weights, std::int64_t* rows) {
  add_up_left(cells, label, weight, size, cut, n_classes, weights, rows);
}
MARGROVE_CLONES void left_sums(const double* cells, const std::uint32_t* label, const double* weight,
                               std::uint32_t size, const double* cut, std::size_t n_classes, double* weights,
                               std::int64_t* rows) {
  add_up_left(cells, label, weight, size, cut, n_classes, weights, rows);
}

// A node's cells of up to kLanes columns, those of a row side by side: from whole rows of `d` cells to `to`. What lies
// in the lanes behind the columns does not matter.
template <class T>
struct Fetch {
  const T* cells;
  std::int64_t stride, d;
  const std::uint32_t* row;
  std::uint32_t size;
  std::span<const std::uint32_t> columns;
  T* to;
};

template <class T>
void fetch_one_by_one(const Fetch<T>& of, T* low, T* high) {
  std::uint32_t column[kLanes] = {};
  std::copy(of.columns.begin(), of.columns.end(), column);
  const std::size_t n = of.columns.size();
  for (std::uint32_t i = 0; i < of.size; ++i) {
    const T* own = of.cells + of.row[i] * of.stride;
    for (std::size_t c = 0; c < n; ++c) of.to[i * kLanes + c] = own[column[c]];
  }
  ends_of(of.to, of.size, low, high);
}

#ifdef MARGROVE_HAS_SIXTEEN
constexpr std::int64_t kVector = 16, kMostVectors = 4;

// The same from rows of so many vectors, which are held in registers; the last may be in part behind the row.
template <int vectors>
MARGROVE_SIXTEEN void fetch_by_sixteen(const Fetch<float>& of, float* low, float* high) {
  alignas(64) std::uint32_t column[kVector] = {};
  std::copy(of.columns.begin(), of.columns.end(), column);
  const __m512i place = _mm512_load_si512(column);
  const __mmask16 is_behind = _mm512_cmpge_epu32_mask(place, _mm512_set1_epi32(2 * kVector));
  __mmask16 lanes[kMostVectors];
  for (int v = 0; v < vectors; ++v)
    lanes[v] = static_cast<__mmask16>((1u << std::clamp<std::int64_t>(of.d - v * kVector, 0, kVector)) - 1);
  __m256 least = _mm256_set1_ps(std::numeric_limits<float>::infinity()), most = -least;
  for (std::uint32_t i = 0; i < of.size; ++i) {
    const float* row = of.cells + of.row[i] * of.stride;
    const auto part = [&](int v) __attribute__((target("avx512f"))) {
      return _mm512_maskz_loadu_ps(lanes[v], row + v * kVector);
    };
    __m512 own;
    if constexpr (vectors == 1)
      own = _mm512_permutexvar_ps(place, part(0));
    else
      own = _mm512_permutex2var_ps(part(0), place, part(1));
    if constexpr (vectors == kMostVectors)
      own = _mm512_mask_mov_ps(own, is_behind, _mm512_permutex2var_ps(part(2), place, part(3)));
    const __m256 eight = _mm512_castps512_ps256(own);
    _mm256_storeu_ps(of.to + i * kLanes, eight);
    least = _mm256_min_ps(eight, least);
    most = _mm256_max_ps(eight, most);
  }
  _mm256_storeu_ps(low, least);
  _mm256_storeu_ps(high, most);
}
#endif

void fetch(const Fetch<double>& of, double* low, double* high) { fetch_one_by_one(of, low, high); }
void fetch(const Fetch<float>& of, float* low, float* high) {
#ifdef MARGROVE_HAS_SIXTEEN
  if (of.d <= kMostVectors * kVector && tree::has_sixteen()) {
    if (of.d <= kVector) return fetch_by_sixteen<1>(of, low, high);
    if (of.d <= 2 * kVector) return fetch_by_sixteen<2>(of, low, high);
    return fetch_by_sixteen<kMostVectors>(of, low, high);
  }
#endif
  fetch_one_by_one(of, low, high);
}

// Of the lanes: gini's purity of both branches, from the draws on the left, (classes, lanes), and on both sides.
template <class Whole>
MARGROVE_INLINE void add_up_purity(const Whole* left, std::span<const Segment> segments, double weight,
                                   double* purity) {
  using Lanes = Simd<double, kLanes>;
  Lanes of_left{}, of_right{}, in_left{};
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const auto l = converted<Lanes>(load<Simd<Whole, kLanes>>(left + s * kLanes));
    const Lanes r = static_cast<double>(segments[s].weight) - l;
    of_left += l * l;
    of_right += r * r;
    in_left += l;
  }
  store(purity, of_left / in_left + of_right / (weight - in_left));
}
MARGROVE_CLONES void purities(const std::int64_t* left, std::span<const Segment> segments, double weight,
                              double* purity) {
  add_up_purity(left, segments, weight, purity);
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

RandomSearch::RandomSearch(const ForestTask& task, const CellRows& cells)
    : task_(task), cells_(cells), is_constant_(task.columns.size()) {}

bool RandomSearch::search(const NodeRows& node, const NodeSums& sums, std::uint32_t& column, Found& best) {
  for (const std::uint32_t j : constant_) is_constant_[j] = false;
  constant_.clear();
  const auto most = static_cast<std::size_t>(task_.max_columns);
  n_alive_ = node.alive.size();
  cells_.flags().list_varying({node.row, node.size}, node.alive, varying_, drawn_);
  // Of two rows all tests are equal, so the first column that tells them apart has the best.
  const std::size_t wanted = node.size == 2 ? 1 : most ? std::min(most, drawn_.size()) : drawn_.size();
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
  fetched_.resize(std::max<std::size_t>(fetched_.size(), kLanes * node.size));
  T* fetched = reinterpret_cast<T*>(fetched_.data());
  T low[kLanes], high[kLanes], bound[kLanes] = {};
  Lanes lanes;
  fetch({cells, stride, length(task_.columns), node.row, node.size, waiting_, fetched}, low, high);
  std::size_t found = 0;
  for (std::size_t c = 0; c < waiting_.size(); ++c) {
    lanes.is_test[c] = low[c] < high[c];
    if (!lanes.is_test[c]) {
      is_constant_[waiting_[c]] = true;
      constant_.push_back(waiting_[c]);
      continue;
    }
    ++found;
    lanes.cut[c] = tree::random_cut(tree::mixed(node.path ^ task_.column_key[waiting_[c]]), low[c], high[c]);
    bound[c] = rounded_down<T>(lanes.cut[c]);
  }
  if (!found) return 0;
  if (!task_.has_classes())
    choose_of_numbers(node, sums, fetched, bound, lanes, column, best);
  else if (task_.has_counts())
    choose_of_counts(node, sums, fetched, bound, lanes, column, best);
  else
    choose_of_weights(node, sums, fetched, bound, lanes, column, best);
  return found;
}

// Makes the test of a lane the best if it is.
void RandomSearch::offer(const NodeSums& sums, const Lanes& lanes, std::size_t lane, const Found& found,
                         std::uint32_t& column, Found& best) const {
  if (!found.exists() || (best.exists() && !(found.excess > best.excess + sums.tolerance))) return;
  best = found;
  best.theta = lanes.cut[lane];
  column = waiting_[lane];
}

template <class T>
void RandomSearch::choose_of_numbers(const NodeRows& node, const NodeSums& sums, const T* fetched, const T* bound,
                                     const Lanes& lanes, std::uint32_t& column, Found& best) {
  double weights[kLanes], terms[kLanes];
  std::int64_t rows[kLanes];
  left_sums(fetched, node.number, node.size, bound, weights, terms, rows);
  for (std::size_t c = 0; c < waiting_.size(); ++c) {
    if (!lanes.is_test[c]) continue;
    Found found;
    NumberKernel kernel(task_, sums, found, tree::kNoFloor, nullptr);
    kernel.nl = rows[c];
    kernel.wl = weights[c];
    kernel.s = terms[c];
    kernel.consider(0, 0);
    offer(sums, lanes, c, found, column, best);
  }
}

template <class T>
void RandomSearch::choose_of_weights(const NodeRows& node, const NodeSums& sums, const T* fetched, const T* bound,
                                     const Lanes& lanes, std::uint32_t& column, Found& best) {
  const std::size_t n_classes = sums.sum.size();
  weights_.resize((n_classes + 1) * kLanes);
  std::int64_t rows[kLanes];
  left_sums(fetched, node.load, node.weight, node.size, bound, n_classes, weights_.data(), rows);
  for (std::size_t c = 0; c < waiting_.size(); ++c) {
    if (!lanes.is_test[c]) continue;
    Found found;
    ClassSums<PlaceReader> kernel(task_, sums, found, tree::kNoFloor, {}, left_);
    kernel.nl = rows[c];
    kernel.wl = weights_[n_classes * kLanes + c];
    for (std::size_t k = 0; k < n_classes; ++k) kernel.left[k] = weights_[k * kLanes + c];
    kernel.consider(0, 0);
    offer(sums, lanes, c, found, column, best);
  }
}

template <class T>
void RandomSearch::choose_of_counts(const NodeRows& node, const NodeSums& sums, const T* fetched, const T* bound,
                                    const Lanes& lanes, std::uint32_t& column, Found& best) {
  using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  const std::size_t n_segments = sums.segments.size();
  draws_.resize(std::max(draws_.size(), n_segments * kLanes));
  Whole rows[kLanes] = {}, draws[kLanes];
  for (std::size_t s = 0; s < n_segments; ++s) {
    const auto& [label, begin, end, weight] = sums.segments[s];
    left_sums(fetched + begin * kLanes, node.load + begin, end - begin, (1u << count_bits_) - 1, bound, draws, rows);
    std::copy_n(draws, kLanes, draws_.begin() + static_cast<std::ptrdiff_t>(s * kLanes));
  }
  double purity[kLanes];
  const double least = least_purity(sums, best, lanes.is_test, purity);
  for (std::size_t c = 0; c < waiting_.size(); ++c)
    if (lanes.is_test[c] && purity[c] >= least) offer(sums, lanes, c, judged(sums, c, rows[c]), column, best);
}

// The purity that the test of a lane must have if it can be the best, and that of each; -inf where all must be judged.
double RandomSearch::least_purity(const NodeSums& sums, const Found& best, const bool* is_test, double* purity) const {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::fill_n(purity, kLanes, 0.0);
  if (task_.measure.criterion != tree::Criterion::gini || task_.min_rows > 1 || sums.min_weight > 0) return kNone;
  purities(draws_.data(), sums.segments, sums.weight, purity);
  double most = best.exists() ? best.excess + sums.purity : kNone;
  for (std::size_t c = 0; c < waiting_.size(); ++c)
    if (is_test[c]) most = std::max(most, purity[c]);
  // Each test that is chosen before a better one may be a tolerance below it.
  constexpr double kTolerances = 64, kRounding = 1e-12;
  return most - kTolerances * sums.tolerance - kRounding * sums.weight;
}

// The test of a lane, if it is allowed.
Found RandomSearch::judged(const NodeSums& sums, std::size_t lane, std::int64_t rows) {
  Found found;
  ClassSums<CountReader> kernel(task_, sums, found, tree::kNoFloor, {count_bits_, (1u << count_bits_) - 1}, left_);
  kernel.nl = rows;
  for (std::size_t s = 0; s < sums.segments.size(); ++s) {
    const auto draws = static_cast<double>(draws_[s * kLanes + lane]);
    kernel.left[sums.segments[s].label] = draws;
    kernel.wl += draws;
  }
  kernel.consider(0, 0);
  return found;
}

}  // namespace margrove::forest
