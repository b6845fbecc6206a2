// Sums for the basic linear classifier.
#pragma once

#include <cstdint>
#include <span>

#include "rows.hpp"

namespace margrove {

// sums (classes, d): the weighted sum of each class's rows. weight: (n) or empty.
// Rows are added in pieces of fixed size whose sums are added in order, so threads change no bit.
void class_sums(const AnyRows& rows, std::span<const std::int32_t> label, std::span<const double> weight,
                std::int64_t classes, int threads, double* sums);

}  // namespace margrove
