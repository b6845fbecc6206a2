#include "kernel/gram.hpp"

#include <type_traits>
#include <utility>
#include <variant>

#include "dispatch.hpp"
#include "kernel/point_gram.hpp"

namespace margrove {
namespace {

template <class T>
MARGROVE_INLINE void add_scaled_body(const T* row, double change, std::int64_t width, double* sums) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) sums[j] += change * row[j];
}

}  // namespace

MARGROVE_CLONES void add_scaled_row(const float* row, double change, std::int64_t width, double* sums) {
  add_scaled_body(row, change, width, sums);
}
MARGROVE_CLONES void add_scaled_row(const double* row, double change, std::int64_t width, double* sums) {
  add_scaled_body(row, change, width, sums);
}

template <class T>
std::shared_ptr<const Gram<T>> gram_of_points(const AnyRows& points, std::vector<std::int64_t> chosen,
                                              const KernelSpec& spec, const Blas<T>& blas, const Blas<double>& exact,
                                              int threads) {
  return std::visit(
      [&](const auto& rows) -> std::shared_ptr<const Gram<T>> {
        if constexpr (requires { rows.start; })
          return sparse_gram<T>(rows, points, std::move(chosen), spec, exact);
        else
          return dense_gram<T>(rows, points, std::move(chosen), spec, blas, exact, threads);
      },
      points);
}

template std::shared_ptr<const Gram<float>> gram_of_points(const AnyRows&, std::vector<std::int64_t>, const KernelSpec&,
                                                           const Blas<float>&, const Blas<double>&, int);
template std::shared_ptr<const Gram<double>> gram_of_points(const AnyRows&, std::vector<std::int64_t>,
                                                            const KernelSpec&, const Blas<double>&, const Blas<double>&,
                                                            int);

}  // namespace margrove
