#include "forest/buckets.hpp"

#include <algorithm>
#include <limits>

#include "dispatch.hpp"

namespace margrove::forest {
namespace {

// D² / (w_l w_r), 0 where a branch is empty: D is 0 then.
MARGROVE_INLINE double score_of(double left, double ones, double w, double t1) {
  const double d = ones * w - left * t1, size = left * (w - left);
  return d * d / (size > 1.0 ? size : 1.0);
}

}  // namespace

// The score is convex in the weights of the classes on the left. So of the tests inside of a bucket none surpasses the
// corners of what they send there; two of the corners are the tests at its ends.
MARGROVE_CLONES void score_two_classes(const std::uint64_t* sums, std::uint32_t n_buckets, const BucketNode& node,
                                       double* score, double* limit) {
  const double w = node.weight, t1 = node.second;
  const std::int32_t least = node.min_rows, most = node.rows - node.min_rows;
  for (std::uint32_t b = 0; b < n_buckets; ++b) {
    const std::uint64_t before = sums[b], here = sums[b + 1];
    const auto l0 = static_cast<std::int32_t>(before & Packed::kMask),
               l = static_cast<std::int32_t>(here & Packed::kMask);
    const auto o0 = static_cast<std::int32_t>(before >> kPackBits & Packed::kMask),
               o = static_cast<std::int32_t>(here >> kPackBits & Packed::kMask);
    const auto n0 = static_cast<std::int32_t>(before >> 2 * kPackBits),
               n = static_cast<std::int32_t>(here >> 2 * kPackBits);
    const double at_end = score_of(l, o, w, t1), at_begin = score_of(l0, o0, w, t1);
    const double more_ones = score_of(l0 - o0 + o, o, w, t1), more_zeros = score_of(l - o + o0, o0, w, t1);
    const double inside = more_ones > more_zeros ? more_ones : more_zeros, ends = at_end > at_begin ? at_end : at_begin;
    score[b] = n < least || n > most ? -1.0 : at_end;
    const bool is_open = n0 < least || n > most;  // a test at an end is not allowed, so one inside may be better
    const double may_be = is_open & (least > 1) ? (inside > ends ? inside : ends) : inside;
    const bool has_inside = (n - n0 > 1) & (((o != o0) & (l - l0 != o - o0)) | (is_open & (least > 1)));
    limit[b] = has_inside ? may_be : -1.0;
  }
}

MARGROVE_CLONES void score_classes(std::int32_t* counts, std::uint32_t n_buckets, std::uint32_t stride,
                                   std::span<const std::int32_t> totals, const BucketNode& node, double* score,
                                   double* limit) {
  const double w = node.weight;
  const std::uint32_t width = static_cast<std::uint32_t>(totals.size());
  double t2 = 0;
  for (std::uint32_t k = 0; k < width; ++k) t2 += static_cast<double>(totals[k]) * static_cast<double>(totals[k]);
  double least = 0, rows = 0, least_rows = node.min_rows, most_rows = node.rows - node.min_rows;
  const std::int32_t* before = nullptr;
  for (std::uint32_t b = 0; b < n_buckets; ++b) {
    std::int32_t* own = counts + b * stride;
    const double step = own[1], step_rows = own[0];
    double squares = 0, products = 0, high_squares = 0;
    std::int32_t largest = 0;
    const std::int32_t* l0 = before ? before + 2 : totals.data();  // anything, times zero
    const double has_before = before ? 1.0 : 0.0;
    MARGROVE_SUMS(squares, products, high_squares)
    for (std::uint32_t k = 0; k < width; ++k) {
      const double more = own[k + 2], total = totals[k], share = total / w, l = has_before * l0[k], end = l + more;
      const double d = l - least * share, up = d + more * (1 - share), down = (step - more) * share - d;
      const double high = up > down ? up : down;
      high_squares += high * high;
      squares += end * end;
      products += total * end;
    }
    for (std::uint32_t k = 0; k < width; ++k) largest = std::max(largest, own[k + 2]);
    if (before)
      for (std::uint32_t k = 0; k < width + 2; ++k) own[k] += before[k];
    const double left = least + step, size = left * (w - left), size0 = least * (w - least);
    const double n = rows + step_rows;
    score[b] = n < least_rows || n > most_rows || size <= 0
                   ? -std::numeric_limits<double>::infinity()
                   : (squares * w + (t2 - 2 * products) * left) / size - t2 / w;
    const bool is_open = least_rows > 1 && (rows < least_rows || n > most_rows);
    const bool has_inside = step_rows > 1 && (largest < static_cast<std::int32_t>(step) || is_open);
    // Where a branch may be empty: its share of the sum of squares is at most its weight's, squared.
    const double smaller = size < size0 ? size : size0, other = w - step;
    limit[b] = !has_inside   ? -std::numeric_limits<double>::infinity()
               : smaller > 0 ? high_squares * w / smaller
               : other > 0   ? w * step / other * (1 + t2 / (w * w))
                             : std::numeric_limits<double>::infinity();
    least = left;
    rows = n;
    before = own;
  }
}

}  // namespace margrove::forest
