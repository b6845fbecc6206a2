#include "tree/partition.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC's own header: undefined lanes are meant to be (bug 105593)
#include <immintrin.h>
#define MARGROVE_HAS_COMPRESS 1
#endif

namespace margrove::tree {
namespace {

// From i on, one row after the other; `left` and `right` rows have been moved already.
std::uint32_t partition_plainly(std::uint32_t* key, std::uint32_t* tag, std::uint32_t i, std::uint32_t size,
                                const std::uint32_t* words, std::uint32_t flip, int shift, std::uint32_t* right_key,
                                std::uint32_t* right_tag, std::uint32_t left, std::uint32_t right) {
  for (; i < size; ++i) {
    const std::uint32_t k = key[i], t = tag[i], row = t >> shift;
    const std::uint32_t is_left = (words[row >> 5] >> (row & 31) & 1u) ^ flip;
    key[left] = k;
    tag[left] = t;
    right_key[right] = k;
    right_tag[right] = t;
    left += is_left;
    right += 1 - is_left;
  }
  std::memcpy(key + left, right_key, right * sizeof(std::uint32_t));
  std::memcpy(tag + left, right_tag, right * sizeof(std::uint32_t));
  return left;
}

#ifdef MARGROVE_HAS_COMPRESS
// Sixteen rows at a time: their marks are gathered, and each side is packed in a register and stored whole. What is
// stored beyond the packed rows lies in rows already read, or in the spare room.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))) std::uint32_t partition_by_sixteen(
    std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const std::uint32_t* words, std::uint32_t flip,
    int shift, std::uint32_t* right_key, std::uint32_t* right_tag) {
  std::uint32_t left = 0, right = 0, i = 0;
  const __m512i one = _mm512_set1_epi32(1), low_five = _mm512_set1_epi32(31);
  const __m128i by = _mm_cvtsi32_si128(shift);
  for (; i + 16 <= size; i += 16) {
    const __m512i k = _mm512_loadu_si512(key + i), t = _mm512_loadu_si512(tag + i);
    const __m512i row = _mm512_srl_epi32(t, by);
    const __m512i word = _mm512_i32gather_epi32(_mm512_srli_epi32(row, 5), words, 4);
    const auto marked = static_cast<std::uint32_t>(
        _mm512_test_epi32_mask(word, _mm512_sllv_epi32(one, _mm512_and_si512(row, low_five))));
    const auto goes_left = static_cast<__mmask16>(flip ? ~marked : marked);
    const auto goes_right = static_cast<__mmask16>(~goes_left);
    const __m512i left_k = _mm512_maskz_compress_epi32(goes_left, k), left_t = _mm512_maskz_compress_epi32(goes_left, t);
    _mm512_storeu_si512(right_key + right, _mm512_maskz_compress_epi32(goes_right, k));
    _mm512_storeu_si512(right_tag + right, _mm512_maskz_compress_epi32(goes_right, t));
    _mm512_storeu_si512(key + left, left_k);
    _mm512_storeu_si512(tag + left, left_t);
    const auto moved = static_cast<std::uint32_t>(__builtin_popcount(goes_left));
    left += moved;
    right += 16 - moved;
  }
  return partition_plainly(key, tag, i, size, words, flip, shift, right_key, right_tag, left, right);
}

bool can_compress() {
  static const bool answer = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return answer;
}
#endif

}  // namespace

std::uint32_t partition_two(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const RowMarks& marks,
                            bool is_marked_left, int shift, std::uint32_t* spare) {
  const std::uint32_t flip = is_marked_left ? 0 : 1;
  std::uint32_t* right_tag = spare + size + 16;
#ifdef MARGROVE_HAS_COMPRESS
  if (size >= 16 && can_compress())
    return partition_by_sixteen(key, tag, size, marks.words(), flip, shift, spare, right_tag);
#endif
  return partition_plainly(key, tag, 0, size, marks.words(), flip, shift, spare, right_tag, 0, 0);
}

void partition_many(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const std::uint32_t* branch, int shift,
                    std::uint32_t* spare, std::vector<std::uint32_t>& end) {
  std::fill(end.begin(), end.end(), 0u);
  for (std::uint32_t i = 0; i < size; ++i) ++end[branch[tag[i] >> shift]];
  std::uint32_t next = 0;
  for (std::uint32_t& e : end) {
    const std::uint32_t count = e;
    e = next;
    next += count;
  }
  std::uint32_t* moved_tag = spare + size + 16;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t at = end[branch[tag[i] >> shift]]++;
    spare[at] = key[i];
    moved_tag[at] = tag[i];
  }
  std::memcpy(key, spare, size * sizeof(std::uint32_t));
  std::memcpy(tag, moved_tag, size * sizeof(std::uint32_t));
}

}  // namespace margrove::tree
