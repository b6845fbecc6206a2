#include "forest/partition.hpp"

#include <algorithm>

#include "dispatch.hpp"
#include "simd.hpp"
#include "tree/sixteen.hpp"

namespace margrove::forest {
namespace {

template <class T>
std::uint32_t partition_one_by_one(T* values, T* spare, const std::uint32_t* rank, std::uint32_t size,
                                   std::uint32_t cut) {
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const T value = values[i];
    values[left] = value;  // over one that has been read
    spare[i - left] = value;
    left += rank[i] <= cut;
  }
  std::copy_n(spare, size - left, values + left);
  return left;
}

#ifdef MARGROVE_HAS_SIXTEEN
MARGROVE_SIXTEEN std::uint32_t partition_by_sixteen(std::uint32_t* values, std::uint32_t* spare,
                                                    const std::uint32_t* rank, std::uint32_t size, std::uint32_t cut) {
  std::uint32_t left = 0, right = 0;
  const __m512i most = _mm512_set1_epi32(static_cast<int>(cut));
  for (std::uint32_t i = 0; i < size; i += 16) {
    const auto lanes = static_cast<__mmask16>(size - i >= 16 ? 0xFFFFu : (1u << (size - i)) - 1);
    const __m512i value = _mm512_maskz_loadu_epi32(lanes, values + i);
    const __mmask16 goes_left = _mm512_mask_cmple_epu32_mask(lanes, _mm512_maskz_loadu_epi32(lanes, rank + i), most);
    const auto goes_right = static_cast<__mmask16>(lanes & ~goes_left);
    const auto n_left = static_cast<std::uint32_t>(__builtin_popcount(goes_left));
    // What goes left is stored only over values that have been read; what goes right, whole into spare room.
    _mm512_mask_storeu_epi32(values + left, static_cast<__mmask16>((1u << n_left) - 1),
                             _mm512_maskz_compress_epi32(goes_left, value));
    _mm512_storeu_si512(spare + right, _mm512_maskz_compress_epi32(goes_right, value));
    left += n_left;
    right += static_cast<std::uint32_t>(__builtin_popcount(goes_right));
  }
  std::copy_n(spare, right, values + left);
  return left;
}
#endif

}  // namespace

MARGROVE_CLONES std::pair<std::uint32_t, std::uint32_t> ranks_around(const std::uint32_t* rank, std::uint32_t size,
                                                                     std::uint32_t cut) {
  using Lanes = Simd<std::uint32_t, 16>;
  Lanes low{}, high = Lanes{} - 1;
  std::uint32_t below = 0, above = ~0u, i = 0;
  for (; i + 16 <= size; i += 16) {
    const auto own = load<Lanes>(rank + i);
    const auto is_left = own <= Lanes{} + cut;
    low = larger(low, is_left ? own : Lanes{});
    high = smaller(high, is_left ? Lanes{} - 1 : own);
  }
  for (int lane = 0; lane < 16; ++lane) {
    below = std::max<std::uint32_t>(below, low[lane]);
    above = std::min<std::uint32_t>(above, high[lane]);
  }
  for (; i < size; ++i)
    (rank[i] <= cut ? below : above) = rank[i] <= cut ? std::max(below, rank[i]) : std::min(above, rank[i]);
  return {below, above};
}

std::uint32_t partition_values(std::uint32_t* values, std::uint32_t* spare, const std::uint32_t* rank,
                               std::uint32_t size, std::uint32_t cut) {
#ifdef MARGROVE_HAS_SIXTEEN
  if (tree::has_sixteen()) return partition_by_sixteen(values, spare, rank, size, cut);
#endif
  return partition_one_by_one(values, spare, rank, size, cut);
}

std::uint32_t partition_values(double* values, double* spare, const std::uint32_t* rank, std::uint32_t size,
                               std::uint32_t cut) {
  return partition_one_by_one(values, spare, rank, size, cut);
}

}  // namespace margrove::forest
