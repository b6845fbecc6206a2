#include "tree/wide.hpp"

#include <cstdlib>
#include <stdexcept>

#include "tree/sixteen.hpp"

namespace margrove::tree {

#ifdef MARGROVE_HAS_SIXTEEN

bool has_sixteen() {
  static const bool answer = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                             __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2") &&
                             !std::getenv("MARGROVE_PLAIN");
  return answer;
}

namespace {

// The first `left` of sixteen lanes, all of them from sixteen on.
MARGROVE_SIXTEEN inline __mmask16 first_lanes(std::uint32_t left) {
  return static_cast<__mmask16>(left >= 16 ? 0xFFFFu : (1u << left) - 1);
}

// Running sums over the lanes.
MARGROVE_SIXTEEN inline __m512i running_sum(__m512i v) {
  const __m512i zero = _mm512_setzero_si512();
  v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 15));
  v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 14));
  v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 12));
  return _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 8));
}

// Which of these tags are of marked rows.
MARGROVE_SIXTEEN inline __mmask16 marked_lanes(__mmask16 lanes, __m512i tag, __m128i shift,
                                               const std::uint32_t* words) {
  const __m512i row = _mm512_srl_epi32(tag, shift);
  const __m512i word = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes, _mm512_srli_epi32(row, 5), words, 4);
  const __m512i bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(row, _mm512_set1_epi32(31)));
  return _mm512_mask_test_epi32_mask(lanes, word, bit);
}

// The lanes of a mask to the front, and nothing behind them.
MARGROVE_SIXTEEN inline void store_packed(std::uint32_t* to, __mmask16 mask, __m512i values) {
  const __mmask16 stored = first_lanes(static_cast<std::uint32_t>(__builtin_popcount(mask)));
  _mm512_mask_storeu_epi32(to, stored, _mm512_maskz_compress_epi32(mask, values));
}

}  // namespace

MARGROVE_SIXTEEN Sight look_by_sixteen(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size,
                                       double l1, double nl, double n, double t1, double best) {
  const __m512i one = _mm512_set1_epi32(1), last = _mm512_set1_epi32(15);
  const __m512d all = _mm512_set1_pd(n), t = _mm512_set1_pd(t1), b = _mm512_set1_pd(best);
  const __m512d step = _mm512_set1_pd(16), base = _mm512_set1_pd(l1);
  __m512d left_low = _mm512_add_pd(_mm512_set1_pd(nl), _mm512_set_pd(8, 7, 6, 5, 4, 3, 2, 1));
  __m512d left_high = _mm512_add_pd(left_low, _mm512_set1_pd(8));
  __m512i carry = _mm512_setzero_si512();
  std::uint32_t wins = 0, boundaries = 0;
  for (std::uint32_t i = 0; i < size; i += 16) {
    const __mmask16 lanes = first_lanes(size - i);
    const __m512i label = _mm512_and_si512(_mm512_maskz_loadu_epi32(lanes, tag + i), one);
    const __m512i ones = _mm512_add_epi32(running_sum(label), carry);
    carry = _mm512_permutexvar_epi32(last, ones);
    const __mmask16 edge = _mm512_mask_cmpneq_epu32_mask(lanes, _mm512_maskz_loadu_epi32(lanes, key + i),
                                                         _mm512_maskz_loadu_epi32(lanes, key + i + 1));
    // D² > best · n_l n_r with D = l_1 n − n_l t_1
    const __m512d low = _mm512_add_pd(base, _mm512_cvtepi32_pd(_mm512_castsi512_si256(ones)));
    const __m512d high = _mm512_add_pd(base, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(ones, 1)));
    const __m512d d_low = _mm512_fmsub_pd(low, all, _mm512_mul_pd(left_low, t));
    const __m512d d_high = _mm512_fmsub_pd(high, all, _mm512_mul_pd(left_high, t));
    const __m512d limit_low = _mm512_mul_pd(b, _mm512_mul_pd(left_low, _mm512_sub_pd(all, left_low)));
    const __m512d limit_high = _mm512_mul_pd(b, _mm512_mul_pd(left_high, _mm512_sub_pd(all, left_high)));
    const std::uint32_t win_low = _mm512_cmp_pd_mask(_mm512_mul_pd(d_low, d_low), limit_low, _CMP_GT_OQ);
    const std::uint32_t win_high = _mm512_cmp_pd_mask(_mm512_mul_pd(d_high, d_high), limit_high, _CMP_GT_OQ);
    wins |= (win_low | win_high << 8) & edge;
    boundaries += static_cast<std::uint32_t>(__builtin_popcount(edge));
    left_low = _mm512_add_pd(left_low, step);
    left_high = _mm512_add_pd(left_high, step);
  }
  return {wins != 0, boundaries, static_cast<std::uint32_t>(_mm512_cvtsi512_si32(carry))};
}

namespace {

// Row k has a one in lane k.
struct OneHot {
  alignas(64) std::uint32_t row[kMostWide][kMostWide] = {};
  constexpr OneHot() {
    for (std::size_t k = 0; k < kMostWide; ++k) row[k][k] = 1;
  }
};
constexpr OneHot kOneHot;

// How many bits of 16 are set in each lane.
MARGROVE_SIXTEEN inline __m512i bits_set(__m512i v) {
  const __m512i counts = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const __m512i low = _mm512_set1_epi32(0x0F0F);
  const __m512i of_bytes =
      _mm512_add_epi32(_mm512_shuffle_epi8(counts, _mm512_and_si512(v, low)),
                       _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi32(v, 4), low)));
  return _mm512_and_si512(_mm512_add_epi32(of_bytes, _mm512_srli_epi32(of_bytes, 8)), _mm512_set1_epi32(0xFF));
}

MARGROVE_SIXTEEN inline __m512d low_half(__m512i v) { return _mm512_cvtepi32_pd(_mm512_castsi512_si256(v)); }
MARGROVE_SIXTEEN inline __m512d high_half(__m512i v) { return _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(v, 1)); }

// Σ a b, exact up to 2^53.
MARGROVE_SIXTEEN inline double products_of(__m512i a, __m512i b) {
  return _mm512_reduce_add_pd(_mm512_fmadd_pd(low_half(a), low_half(b), _mm512_mul_pd(high_half(a), high_half(b))));
}

// Which of eight tests are above the best, from the sums behind their rows.
MARGROVE_SIXTEEN inline std::uint32_t above(__m512d l2, __m512d m, __m512d left, __m512d n, __m512d t2, __m512d best) {
  const __m512d score = _mm512_fmadd_pd(l2, n, _mm512_mul_pd(_mm512_sub_pd(t2, _mm512_add_pd(m, m)), left));
  return _mm512_cmp_pd_mask(score, _mm512_mul_pd(best, _mm512_mul_pd(left, _mm512_sub_pd(n, left))), _CMP_GT_OQ);
}

template <bool kIsTwo>
MARGROVE_SIXTEEN inline std::uint32_t pass_groups(const std::uint32_t* key, const std::uint32_t* tag,
                                                  std::uint32_t size, std::uint32_t mask, double best, ManySums& s) {
  const __mmask16 low_classes = first_lanes(s.n_classes), high_classes = first_lanes(kIsTwo ? s.n_classes - 16 : 0);
  __m512i left_low = _mm512_maskz_loadu_epi32(low_classes, s.left), left_high = _mm512_setzero_si512();
  const __m512i total_low = _mm512_maskz_loadu_epi32(low_classes, s.total);
  __m512i total_high = _mm512_setzero_si512();
  if constexpr (kIsTwo) {
    left_high = _mm512_maskz_loadu_epi32(high_classes, s.left + 16);
    total_high = _mm512_maskz_loadu_epi32(high_classes, s.total + 16);
  }
  const __m512i classes = _mm512_set1_epi32(static_cast<int>(mask)), one = _mm512_set1_epi32(1);
  const __m512d n = _mm512_set1_pd(s.n), t2 = _mm512_set1_pd(s.t2), bar = _mm512_set1_pd(best);
  const __m512d counted = _mm512_set_pd(8, 7, 6, 5, 4, 3, 2, 1), eight = _mm512_set1_pd(8);
  std::uint32_t i = 0;
  bool may_win = false, is_known = true;  // whether l2 and m are those of the rows so far
  const auto add_up = [&] MARGROVE_SIXTEEN {
    s.l2 = products_of(left_low, left_low) + (kIsTwo ? products_of(left_high, left_high) : 0);
    s.m = products_of(left_low, total_low) + (kIsTwo ? products_of(left_high, total_high) : 0);
    is_known = true;
  };
  for (; i < size && !may_win; i += 16) {
    const __mmask16 lanes = first_lanes(size - i);
    const __mmask16 edge = _mm512_mask_cmpneq_epu32_mask(lanes, _mm512_maskz_loadu_epi32(lanes, key + i),
                                                         _mm512_maskz_loadu_epi32(lanes, key + i + 1));
    const std::uint32_t n_rows = std::min(size - i, 16u);
    const __m512i before_low = left_low, before_high = left_high;
    if (edge && !is_known) add_up();
    for (std::uint32_t r = 0; r < n_rows; ++r) {
      const std::uint32_t* hot = kOneHot.row[tag[i + r] & mask];
      left_low = _mm512_add_epi32(left_low, _mm512_load_si512(hot));
      if constexpr (kIsTwo) left_high = _mm512_add_epi32(left_high, _mm512_load_si512(hot + 16));
    }
    if (!edge) {
      is_known = false;
      s.nl += n_rows;
      continue;
    }
    const __m512i label = _mm512_and_si512(_mm512_maskz_loadu_epi32(lanes, tag + i), classes);
    // Rows of its class before each row: in earlier groups, and in this one.
    const __m512i before = kIsTwo ? _mm512_permutex2var_epi32(before_low, label, before_high)
                                  : _mm512_permutexvar_epi32(label, before_low);
    const __m512i rows = _mm512_add_epi32(before, bits_set(_mm512_conflict_epi32(label)));
    const __m512i totals =
        kIsTwo ? _mm512_permutex2var_epi32(total_low, label, total_high) : _mm512_permutexvar_epi32(label, total_low);
    const __m512i more = _mm512_maskz_add_epi32(lanes, _mm512_add_epi32(rows, rows), one);
    const __m512i squares = running_sum(more), products = running_sum(_mm512_maskz_mov_epi32(lanes, totals));
    const __m512d base_l2 = _mm512_set1_pd(s.l2), base_m = _mm512_set1_pd(s.m);
    const __m512d rows_low = _mm512_add_pd(_mm512_set1_pd(s.nl), counted), rows_high = _mm512_add_pd(rows_low, eight);
    const std::uint32_t low = above(_mm512_add_pd(base_l2, low_half(squares)),
                                    _mm512_add_pd(base_m, low_half(products)), rows_low, n, t2, bar);
    const std::uint32_t high = above(_mm512_add_pd(base_l2, high_half(squares)),
                                     _mm512_add_pd(base_m, high_half(products)), rows_high, n, t2, bar);
    may_win = ((low | high << 8) & edge) != 0;
    alignas(64) std::int32_t of_squares[16], of_products[16];
    _mm512_store_si512(of_squares, squares);
    _mm512_store_si512(of_products, products);
    if (may_win) {
      for (std::uint32_t r = 0; r < n_rows; ++r) {
        s.squares[r] = static_cast<std::int64_t>(s.l2) + of_squares[r];
        s.products[r] = static_cast<std::int64_t>(s.m) + of_products[r];
      }
    } else {
      s.boundaries += static_cast<std::uint32_t>(__builtin_popcount(edge));
      s.nl += n_rows;
    }
    s.l2 += of_squares[15];
    s.m += of_products[15];
  }
  if (!is_known) add_up();
  _mm512_mask_storeu_epi32(s.left, low_classes, left_low);
  if constexpr (kIsTwo) _mm512_mask_storeu_epi32(s.left + 16, high_classes, left_high);
  return may_win ? i - 16 : size;
}

}  // namespace

MARGROVE_SIXTEEN std::uint32_t pass_by_sixteen(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size,
                                               std::uint32_t mask, double best, ManySums& sums) {
  return sums.n_classes > 16 ? pass_groups<true>(key, tag, size, mask, best, sums)
                             : pass_groups<false>(key, tag, size, mask, best, sums);
}

MARGROVE_SIXTEEN std::uint32_t partition_by_sixteen(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size,
                                                    const std::uint32_t* marked, bool is_marked_left, int shift,
                                                    std::uint32_t* right_key, std::uint32_t* right_tag) {
  std::uint32_t left = 0, right = 0;
  const __m128i by = _mm_cvtsi32_si128(shift);
  for (std::uint32_t i = 0; i < size; i += 16) {
    const __mmask16 lanes = first_lanes(size - i);
    const __m512i k = _mm512_maskz_loadu_epi32(lanes, key + i), t = _mm512_maskz_loadu_epi32(lanes, tag + i);
    const __mmask16 is_marked = marked_lanes(lanes, t, by, marked);
    const __mmask16 goes_left = is_marked_left ? is_marked : lanes & ~is_marked;
    const __mmask16 goes_right = lanes & ~goes_left;
    // What goes right is stored whole into spare room; what goes left only over rows that have been read.
    _mm512_storeu_si512(right_key + right, _mm512_maskz_compress_epi32(goes_right, k));
    _mm512_storeu_si512(right_tag + right, _mm512_maskz_compress_epi32(goes_right, t));
    store_packed(key + left, goes_left, k);
    store_packed(tag + left, goes_left, t);
    left += static_cast<std::uint32_t>(__builtin_popcount(goes_left));
    right += static_cast<std::uint32_t>(__builtin_popcount(goes_right));
  }
  for (std::uint32_t i = 0; i < right; i += 16) {
    const __mmask16 lanes = first_lanes(right - i);
    _mm512_mask_storeu_epi32(key + left + i, lanes, _mm512_maskz_loadu_epi32(lanes, right_key + i));
    _mm512_mask_storeu_epi32(tag + left + i, lanes, _mm512_maskz_loadu_epi32(lanes, right_tag + i));
  }
  return left;
}

MARGROVE_SIXTEEN std::uint32_t keep_by_sixteen(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size,
                                               const std::uint32_t* marked, bool is_marked_kept, int shift) {
  std::uint32_t kept = 0;
  const __m128i by = _mm_cvtsi32_si128(shift);
  for (std::uint32_t i = 0; i < size; i += 16) {
    const __mmask16 lanes = first_lanes(size - i);
    const __m512i k = _mm512_maskz_loadu_epi32(lanes, key + i), t = _mm512_maskz_loadu_epi32(lanes, tag + i);
    const __mmask16 is_marked = marked_lanes(lanes, t, by, marked);
    const __mmask16 stays = is_marked_kept ? is_marked : lanes & ~is_marked;
    store_packed(key + kept, stays, k);
    store_packed(tag + kept, stays, t);
    kept += static_cast<std::uint32_t>(__builtin_popcount(stays));
  }
  return kept;
}

#else

bool has_sixteen() { return false; }
std::uint32_t keep_by_sixteen(std::uint32_t*, std::uint32_t*, std::uint32_t, const std::uint32_t*, bool, int) {
  throw std::logic_error("this machine has no AVX-512");
}
std::uint32_t pass_by_sixteen(const std::uint32_t*, const std::uint32_t*, std::uint32_t, std::uint32_t, double,
                              ManySums&) {
  throw std::logic_error("this machine has no AVX-512");
}
Sight look_by_sixteen(const std::uint32_t*, const std::uint32_t*, std::uint32_t, double, double, double, double,
                      double) {
  throw std::logic_error("this machine has no AVX-512");
}
std::uint32_t partition_by_sixteen(std::uint32_t*, std::uint32_t*, std::uint32_t, const std::uint32_t*, bool, int,
                                   std::uint32_t*, std::uint32_t*) {
  throw std::logic_error("this machine has no AVX-512");
}

#endif

}  // namespace margrove::tree
