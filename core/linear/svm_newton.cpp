#include "linear/svm_newton.hpp"

namespace margrove {

template <class Rows>  // newton.hpp
std::unique_ptr<LinearSolver> newton_on(const Rows& rows, const LinearTask& task, NewtonSettings settings,
                                        const SymmetricBlas& blas, std::span<const double> w, double b,
                                        std::span<const double> beta);

std::unique_ptr<LinearSolver> newton_solver(const AnyRows& rows, const LinearTask& task, NewtonSettings settings,
                                            const SymmetricBlas& blas, std::span<const double> w, double b,
                                            std::span<const double> beta) {
  return std::visit([&](const auto& some) { return newton_on(some, task, settings, blas, w, b, beta); }, rows);
}

}  // namespace margrove
