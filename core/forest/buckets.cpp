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
    const double may_be = (is_open & (least > 1)) ? (inside > ends ? inside : ends) : inside;
    const bool has_inside = (n - n0 > 1) & (((o != o0) & (l - l0 != o - o0)) | (is_open & (least > 1)));
    limit[b] = has_inside ? may_be : -1.0;
  }
}

MARGROVE_CLONES void score_classes(std::int32_t* counts, std::uint32_t n_buckets, std::span<const std::int32_t> totals,
                                   const BucketNode& node, ClassScores& scores) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const double w = node.weight;
  const auto width = static_cast<std::uint32_t>(totals.size());
  double *squares = scores.score.data(), *high = scores.limit.data(), *products = scores.products.data();
  double *left = scores.left.data(), *step = scores.step.data(), *largest = scores.largest.data();
  for (std::uint32_t b = 0; b < n_buckets; ++b) squares[b] = high[b] = products[b] = step[b] = largest[b] = 0;
  for (std::uint32_t k = 0; k < width; ++k) {
    const std::int32_t* own = counts + static_cast<std::size_t>(k) * n_buckets;
    for (std::uint32_t b = 0; b < n_buckets; ++b) {
      const auto more = static_cast<double>(own[b]);
      step[b] += more;
      largest[b] = more > largest[b] ? more : largest[b];
    }
  }
  double sum = 0, t2 = 0;
  for (std::uint32_t b = 0; b < n_buckets; ++b) left[b] = sum += step[b];
  for (std::uint32_t k = 0; k < width; ++k) {
    std::int32_t* own = counts + static_cast<std::size_t>(k) * n_buckets;
    std::int32_t running = 0;
    for (std::uint32_t b = 0; b < n_buckets; ++b) own[b] = running += own[b];
    const double total = totals[k], share = total / w;
    t2 += total * total;
    std::int32_t before = 0;
    for (std::uint32_t b = 0; b < n_buckets; ++b) {
      before = b ? own[b - 1] : 0;
      const double l = own[b], l0 = before, more = l - l0, d = l0 - (left[b] - step[b]) * share;
      const double up = d + more * (1 - share), down = (step[b] - more) * share - d, most = up > down ? up : down;
      squares[b] += l * l;
      products[b] += total * l;
      high[b] += most * most;
    }
  }
  for (std::uint32_t b = 0; b < n_buckets; ++b) {
    const double l = left[b], l0 = l - step[b], size = l * (w - l), size0 = l0 * (w - l0);
    const double score = (squares[b] * w + (t2 - 2 * products[b]) * l) / (size > 0 ? size : 1.0) - t2 / w;
    const double smaller = size < size0 ? size : size0, other = w - step[b];
    // Where a branch may be empty: its share of the sum of squares is at most its weight's, squared.
    const double near_end = w * step[b] / (other > 0 ? other : 1.0) * (1 + t2 / (w * w));
    const double inside = smaller > 0 ? high[b] * w / smaller : other > 0 ? near_end : -kNone;
    squares[b] = size > 0 ? score : kNone;
    high[b] = largest[b] < step[b] ? inside : kNone;
  }
}

void allow_rows(const std::int32_t* rows, std::uint32_t n_buckets, const BucketNode& node, ClassScores& scores) {
  const std::int32_t least = node.min_rows, most = node.rows - node.min_rows;
  for (std::uint32_t b = 0; b < n_buckets; ++b) {
    const std::int32_t before = b ? rows[b - 1] : 0, here = rows[b];
    if (here < least || here > most) scores.score[b] = -std::numeric_limits<double>::infinity();
    // A test at an end is not allowed, so one inside may be better.
    if ((before < least || here > most) && here - before > 1) scores.limit[b] = std::numeric_limits<double>::infinity();
  }
}

}  // namespace margrove::forest
