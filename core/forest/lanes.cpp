#include "forest/lanes.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "dispatch.hpp"
#include "simd.hpp"

namespace margrove::forest {
namespace {

struct Exchange {
  std::uint8_t low, high;
};

// Batcher's odd-even merge sort: exchanges that sort `size` numbers, whatever they are.
std::vector<Exchange> network_for(std::uint32_t size) {
  std::vector<Exchange> found;
  for (std::uint32_t p = 1; p < size; p *= 2)
    for (std::uint32_t k = p; k >= 1; k /= 2)
      for (std::uint32_t j = k % p; j + k < size; j += 2 * k)
        for (std::uint32_t i = j; i < std::min(j + k, size - k); ++i)
          if (i / (2 * p) == (i + k) / (2 * p))
            found.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i + k)});
  return found;
}

// Rows that are sorted for so many of a node: the networks of more than kFewLaneRows would fill a megabyte.
std::uint32_t sorted_rows(std::uint32_t size) {
  constexpr std::uint32_t kStep = 8;
  return size <= kFewLaneRows ? size : (size + kStep - 1) / kStep * kStep;
}

// The network for a node of so many rows; cells behind them are set to be the largest.
std::span<const Exchange> network(std::uint32_t* cells, std::uint32_t size, std::uint32_t lanes) {
  static const auto all = [] {
    std::array<std::vector<Exchange>, kMostLaneRows + 1> networks;
    for (std::uint32_t m = 0; m < networks.size(); m = sorted_rows(m + 1)) networks[m] = network_for(m);
    return networks;
  }();
  const std::uint32_t sorted = sorted_rows(size);
  std::fill(cells + size * lanes, cells + sorted * lanes, ~0u);
  return all[sorted];
}

template <std::uint32_t kLanes>
MARGROVE_INLINE void sort_cells_of_lanes(std::uint32_t* cell, std::span<const Exchange> exchanges) {
  using Lanes = Simd<std::uint32_t, kLanes>;
  for (const auto& [low, high] : exchanges) {
    const auto a = load<Lanes>(cell + low * kLanes), b = load<Lanes>(cell + high * kLanes);
    store(cell + low * kLanes, smaller(a, b));
    store(cell + high * kLanes, larger(a, b));
  }
}

// Walks through a node's rows in the order of each lane. `add` takes a row's lanes, `score_of` sets the fractions of
// the tests behind it.
template <std::uint32_t kLanes, class Add, class ScoreOf>
MARGROVE_INLINE void walk_lanes(const std::uint32_t* cell, const LaneNode& node, LaneScores& scores, Add add,
                                ScoreOf score_of) {
  using Lanes = Simd<std::uint32_t, kLanes>;
  using Signed = Simd<std::int32_t, kLanes>;
  using Float = Simd<float, kLanes>;
  const auto size = static_cast<std::int32_t>(node.size);
  Float num = Float{} - 1.0f, den = Float{} + 1.0f;
  Signed at{};
  auto own = load<Lanes>(cell);
  for (std::int32_t i = 0; i + 1 < size; ++i) {
    const auto next = load<Lanes>(cell + (i + 1) * kLanes);
    const auto is_boundary = (own >> node.load_bits) != (next >> node.load_bits);
    add(own);
    own = next;
    if (std::min(i + 1, size - i - 1) < node.min_rows) continue;
    Float own_num, own_den;
    score_of(own_num, own_den);
    const auto is_better = (own_num * den > num * own_den) & is_boundary;
    num = is_better ? own_num : num;
    den = is_better ? own_den : den;
    at = is_better ? Signed{} + i : at;
  }
  store(scores.num, num);
  store(scores.den, den);
  store(scores.at, at);
}

// Two classes: D = l_1 w − w_l t_1.
template <std::uint32_t kLanes>
MARGROVE_INLINE void score_two(std::uint32_t* cell, std::span<const Exchange> exchanges, const LaneNode& node,
                               LaneScores& scores) {
  using Lanes = Simd<std::uint32_t, kLanes>;
  using Signed = Simd<std::int32_t, kLanes>;
  using Float = Simd<float, kLanes>;
  sort_cells_of_lanes<kLanes>(cell, exchanges);
  const std::uint32_t count_mask = (1u << node.count_bits) - 1, load_mask = (1u << node.load_bits) - 1;
  const std::uint32_t second = node.labels[1] << node.count_bits;
  const std::int32_t w = node.weight, t1 = node.totals[1];
  Signed left{}, ones{};
  walk_lanes<kLanes>(
      cell, node, scores,
      [&](const Lanes& own) MARGROVE_INLINE_LAMBDA {
        const Signed draws = converted<Signed>(own & count_mask);
        left += draws;
        ones += (own & load_mask) >= second ? draws : Signed{};
      },
      [&](Float& num, Float& den) MARGROVE_INLINE_LAMBDA {
        const auto d = converted<Float>(ones * w - left * t1);
        num = d * d;
        den = converted<Float>(left * (w - left));
      });
}

// More classes: with L2 = Σ l_k² and M = Σ t_k l_k the score is (L2 w + (T2 − 2 M) w_l) / (w_l w_r).
template <std::uint32_t kLanes>
MARGROVE_INLINE void score_many(std::uint32_t* cell, std::span<const Exchange> exchanges, const LaneNode& node,
                                LaneScores& scores) {
  using Lanes = Simd<std::uint32_t, kLanes>;
  using Float = Simd<float, kLanes>;
  sort_cells_of_lanes<kLanes>(cell, exchanges);
  const std::uint32_t count_mask = (1u << node.count_bits) - 1;
  const std::uint32_t label_mask = ((1u << node.load_bits) - 1) ^ count_mask;
  const std::size_t n_classes = node.labels.size();
  const auto w = static_cast<float>(node.weight);
  Float of_class[kMostLaneClasses];  // 2 l_k
  float t2 = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    t2 += static_cast<float>(node.totals[k]) * static_cast<float>(node.totals[k]);
    of_class[k] = Float{};
  }
  Float left{}, squares{}, products{};
  walk_lanes<kLanes>(
      cell, node, scores,
      [&](const Lanes& own) MARGROVE_INLINE_LAMBDA {
        const auto draws = converted<Float>(converted<Simd<std::int32_t, kLanes>>(own & count_mask));
        left += draws;
        const Lanes label = own & label_mask;
        for (std::size_t k = 0; k < n_classes; ++k) {
          const Float more = label == Lanes{} + (node.labels[k] << node.count_bits) ? draws : Float{};
          squares += more * (of_class[k] + more);
          products += more * static_cast<float>(node.totals[k]);
          of_class[k] += more + more;
        }
      },
      [&](Float& num, Float& den) MARGROVE_INLINE_LAMBDA {
        num = squares * w + (t2 - 2 * products) * left;
        den = left * (w - left);
      });
}

MARGROVE_CLONES void score_two_of_8(std::uint32_t* cell, std::span<const Exchange> exchanges, const LaneNode& node,
                                    LaneScores& scores) {
  score_two<8>(cell, exchanges, node, scores);
}
MARGROVE_CLONES void score_two_of_16(std::uint32_t* cell, std::span<const Exchange> exchanges, const LaneNode& node,
                                     LaneScores& scores) {
  score_two<16>(cell, exchanges, node, scores);
}
MARGROVE_CLONES void score_many_of_8(std::uint32_t* cell, std::span<const Exchange> exchanges, const LaneNode& node,
                                     LaneScores& scores) {
  score_many<8>(cell, exchanges, node, scores);
}
MARGROVE_CLONES void score_many_of_16(std::uint32_t* cell, std::span<const Exchange> exchanges, const LaneNode& node,
                                      LaneScores& scores) {
  score_many<16>(cell, exchanges, node, scores);
}
MARGROVE_CLONES void sort_8(std::uint32_t* cell, std::span<const Exchange> exchanges) {
  sort_cells_of_lanes<8>(cell, exchanges);
}
MARGROVE_CLONES void sort_16(std::uint32_t* cell, std::span<const Exchange> exchanges) {
  sort_cells_of_lanes<16>(cell, exchanges);
}

}  // namespace

void sort_and_score(std::uint32_t* cells, const LaneNode& node, LaneScores& scores) {
  const std::span<const Exchange> exchanges = network(cells, node.size, node.lanes);
  if (node.labels.size() == 2)
    node.lanes == 8 ? score_two_of_8(cells, exchanges, node, scores) : score_two_of_16(cells, exchanges, node, scores);
  else
    node.lanes == 8 ? score_many_of_8(cells, exchanges, node, scores)
                    : score_many_of_16(cells, exchanges, node, scores);
}

void sort_lanes(std::uint32_t* cells, std::uint32_t size, std::uint32_t lanes) {
  const std::span<const Exchange> exchanges = network(cells, size, lanes);
  lanes == 8 ? sort_8(cells, exchanges) : sort_16(cells, exchanges);
}

}  // namespace margrove::forest
