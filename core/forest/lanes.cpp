#include "forest/lanes.hpp"

#include <algorithm>

#include "dispatch.hpp"
#include "simd.hpp"
#include "tree/network.hpp"
#include "tree/sixteen.hpp"

namespace margrove::forest {
namespace {

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
MARGROVE_INLINE void score_two(std::uint32_t* cell, const LaneNode& node, LaneScores& scores) {
  using Lanes = Simd<std::uint32_t, kLanes>;
  using Signed = Simd<std::int32_t, kLanes>;
  using Float = Simd<float, kLanes>;
  tree::sort_side_by_side<Lanes>(cell, node.size);
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

// More classes: with L2 = Σ l_k², M = Σ t_k l_k and R2 = Σ r_k² = (T2 − M) − (M − L2), whose terms a float holds
// exactly, the score is (L2 w_r + R2 w_l) / (w_l w_r).
template <std::uint32_t kLanes>
MARGROVE_INLINE void score_many(std::uint32_t* cell, const LaneNode& node, LaneScores& scores) {
  using Lanes = Simd<std::uint32_t, kLanes>;
  using Float = Simd<float, kLanes>;
  tree::sort_side_by_side<Lanes>(cell, node.size);
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
        const auto right = w - left;
        num = squares * right + ((t2 - products) - (products - squares)) * left;
        den = left * right;
      });
}

// Numbers: their sum s on the left, whose square over w_l w_r is the score.
template <class LookUp>
MARGROVE_INLINE void score_numbers(const std::uint32_t* cell, const LaneNode& node, const NumberRows& rows,
                                   LaneScores& scores, LookUp look_up) {
  using Lanes = Simd<std::uint32_t, kMostLanes>;
  using Float = Simd<float, kMostLanes>;
  Float left{}, sum{};
  walk_lanes<kMostLanes>(
      cell, node, scores,
      [&](const Lanes& own) MARGROVE_INLINE_LAMBDA {
        Float weight, term;
        look_up(own & ((1u << kLanePlaceBits) - 1), weight, term);
        left += weight;
        sum += term;
      },
      [&](Float& num, Float& den) MARGROVE_INLINE_LAMBDA {
        num = sum * sum;
        den = left * (rows.all - left);
      });
}

MARGROVE_CLONES void score_numbers_one_by_one(const std::uint32_t* cell, const LaneNode& node, const NumberRows& rows,
                                              LaneScores& scores) {
  score_numbers(cell, node, rows, scores, [&](const auto& place, auto& weight, auto& term) MARGROVE_INLINE_LAMBDA {
    for (std::uint32_t l = 0; l < kMostLanes; ++l) {
      weight[l] = rows.weight[place[l]];
      term[l] = rows.term[place[l]];
    }
  });
}

#ifdef MARGROVE_HAS_SIXTEEN
// Of so many rows the tables are held in registers: 32, or 64.
template <int rows_held>
MARGROVE_SIXTEEN inline __m512 held(const __m512* table, __m512i place) {
  const __m512 low = _mm512_permutex2var_ps(table[0], place, table[1]);
  if constexpr (rows_held == 32) return low;
  const __mmask16 is_high = _mm512_test_epi32_mask(place, _mm512_set1_epi32(32));
  return _mm512_mask_mov_ps(low, is_high, _mm512_permutex2var_ps(table[2], place, table[3]));
}

// As score_numbers; rows_held 0: the tables are gathered from.
template <int rows_held>
MARGROVE_SIXTEEN void score_numbers_by_sixteen(const std::uint32_t* cell, const LaneNode& node, const NumberRows& rows,
                                               LaneScores& scores) {
  __m512 weights[4], terms[4];
  for (int v = 0; v < rows_held / 16; ++v) {
    weights[v] = _mm512_load_ps(rows.weight + 16 * v);
    terms[v] = _mm512_load_ps(rows.term + 16 * v);
  }
  const __m512i place_mask = _mm512_set1_epi32((1 << kLanePlaceBits) - 1);
  const __m512 all = _mm512_set1_ps(rows.all);
  __m512 num = _mm512_set1_ps(-1), den = _mm512_set1_ps(1), left = _mm512_setzero_ps(), sum = left;
  __m512i at = _mm512_setzero_si512(), own = _mm512_loadu_si512(cell);
  const auto size = static_cast<std::int32_t>(node.size);
  for (std::int32_t i = 0; i + 1 < size; ++i) {
    const __m512i next = _mm512_loadu_si512(cell + (i + 1) * static_cast<std::int32_t>(kMostLanes));
    const __m512i place = _mm512_and_si512(own, place_mask);
    if constexpr (rows_held > 0) {
      left = _mm512_add_ps(left, held<rows_held>(weights, place));
      sum = _mm512_add_ps(sum, held<rows_held>(terms, place));
    } else {
      left = _mm512_add_ps(left, _mm512_i32gather_ps(place, rows.weight, sizeof(float)));
      sum = _mm512_add_ps(sum, _mm512_i32gather_ps(place, rows.term, sizeof(float)));
    }
    const __mmask16 is_boundary =
        _mm512_cmpge_epu32_mask(_mm512_xor_si512(own, next), _mm512_set1_epi32(1 << kLanePlaceBits));
    own = next;
    if (std::min(i + 1, size - i - 1) < node.min_rows) continue;
    const __m512 own_num = _mm512_mul_ps(sum, sum), own_den = _mm512_mul_ps(left, _mm512_sub_ps(all, left));
    const __mmask16 is_better =
        _mm512_mask_cmp_ps_mask(is_boundary, _mm512_mul_ps(own_num, den), _mm512_mul_ps(num, own_den), _CMP_GT_OQ);
    num = _mm512_mask_mov_ps(num, is_better, own_num);
    den = _mm512_mask_mov_ps(den, is_better, own_den);
    at = _mm512_mask_mov_epi32(at, is_better, _mm512_set1_epi32(i));
  }
  _mm512_store_ps(scores.num, num);
  _mm512_store_ps(scores.den, den);
  _mm512_store_si512(scores.at, at);
}
#endif

MARGROVE_CLONES void score_two_of_8(std::uint32_t* cell, const LaneNode& node, LaneScores& scores) {
  score_two<8>(cell, node, scores);
}
MARGROVE_CLONES void score_two_of_16(std::uint32_t* cell, const LaneNode& node, LaneScores& scores) {
  score_two<16>(cell, node, scores);
}
MARGROVE_CLONES void score_many_of_8(std::uint32_t* cell, const LaneNode& node, LaneScores& scores) {
  score_many<8>(cell, node, scores);
}
MARGROVE_CLONES void score_many_of_16(std::uint32_t* cell, const LaneNode& node, LaneScores& scores) {
  score_many<16>(cell, node, scores);
}
MARGROVE_CLONES void sort_8(std::uint32_t* cell, std::uint32_t size) {
  tree::sort_side_by_side<Simd<std::uint32_t, 8>>(cell, size);
}
MARGROVE_CLONES void sort_16(std::uint32_t* cell, std::uint32_t size) {
  tree::sort_side_by_side<Simd<std::uint32_t, 16>>(cell, size);
}

}  // namespace

void sort_and_score(std::uint32_t* cells, const LaneNode& node, LaneScores& scores) {
  if (node.labels.size() == 2)
    node.lanes == 8 ? score_two_of_8(cells, node, scores) : score_two_of_16(cells, node, scores);
  else
    node.lanes == 8 ? score_many_of_8(cells, node, scores) : score_many_of_16(cells, node, scores);
}

void sort_and_score_numbers(std::uint32_t* cells, const LaneNode& node, const NumberRows& rows, LaneScores& scores) {
  sort_lanes(cells, node.size, kMostLanes);
#ifdef MARGROVE_HAS_SIXTEEN
  if (tree::has_sixteen()) {
    if (node.size <= 32) return score_numbers_by_sixteen<32>(cells, node, rows, scores);
    if (node.size <= 64) return score_numbers_by_sixteen<64>(cells, node, rows, scores);
    return score_numbers_by_sixteen<0>(cells, node, rows, scores);
  }
#endif
  score_numbers_one_by_one(cells, node, rows, scores);
}

void sort_lanes(std::uint32_t* cells, std::uint32_t size, std::uint32_t lanes) {
  lanes == 8 ? sort_8(cells, size) : sort_16(cells, size);
}

}  // namespace margrove::forest
