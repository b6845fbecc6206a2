#include "linear/centroid.hpp"

#include <algorithm>
#include <vector>

#include "parallel.hpp"

namespace margrove {
namespace {

// Rows [from, to) that share a label are added up; a run of labels is unpredictable, so each row goes alone.
template <class Rows>
MARGROVE_INLINE void add_piece_body(const Rows& rows, const std::int32_t* label, const double* weight,
                                    std::int64_t from, std::int64_t to, double* sums) {
  for (std::int64_t i = from; i < to; ++i) {
    const double step = weight ? weight[i] : 1.0;
    if (step != 0) add_row(rows, i, step, sums + label[i] * rows.d);
  }
}

#define MARGROVE_CENTROID(ROWS)                                                                                        \
  MARGROVE_CLONES void add_piece(const ROWS& rows, const std::int32_t* label, const double* weight, std::int64_t from, \
                                 std::int64_t to, double* sums) {                                                      \
    add_piece_body(rows, label, weight, from, to, sums);                                                               \
  }
MARGROVE_CENTROID(DenseRows<float>)
MARGROVE_CENTROID(DenseRows<double>)
MARGROVE_CENTROID(CsrRows<float>)
MARGROVE_CENTROID(CsrRows<double>)
#undef MARGROVE_CENTROID

// Rows of a piece: enough that adding its (classes, d) sums costs little beside its rows, and that the sums
// of all pieces together stay within kPartialCells.
constexpr std::int64_t kPartialCells = 1 << 23;  // 64 MiB of doubles; chosen, not measured
std::int64_t piece_rows(std::int64_t n, std::int64_t sums_size) {
  const std::int64_t pieces = std::clamp<std::int64_t>(kPartialCells / std::max<std::int64_t>(1, sums_size), 1, 64);
  return std::max<std::int64_t>(4096, (n + pieces - 1) / pieces);
}

}  // namespace

void class_sums(const AnyRows& any, std::span<const std::int32_t> label, std::span<const double> weight,
                std::int64_t classes, int threads, double* sums) {
  std::visit(
      [&](const auto& rows) {
        const std::int64_t size = classes * rows.d, piece = piece_rows(rows.n, size);
        const std::int64_t pieces = (rows.n + piece - 1) / piece;
        std::vector<double> partial(pieces * size);
        parallel_for(pieces, threads, [&](std::int64_t p) {
          add_piece(rows, label.data(), weight.empty() ? nullptr : weight.data(), p * piece,
                    std::min(rows.n, (p + 1) * piece), partial.data() + p * size);
        });
        std::fill(sums, sums + size, 0.0);
        for (std::int64_t p = 0; p < pieces; ++p) add_scaled(sums, 1.0, partial.data() + p * size, size);
      },
      any);
}

}  // namespace margrove
