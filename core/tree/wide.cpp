#include "tree/wide.hpp"

#include <cstdlib>
#include <stdexcept>

#include "tree/sixteen.hpp"

namespace margrove::tree {

#ifdef MARGROVE_HAS_SIXTEEN

bool has_sixteen() {
  static const bool answer = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                             __builtin_cpu_supports("bmi2") && !std::getenv("MARGROVE_PLAIN");
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
