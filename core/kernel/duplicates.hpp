// Rows that are equal, byte for byte.
#pragma once

#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace margrove {

// For each row the first one that is equal to it; empty if no two are.
std::vector<std::int64_t> first_equal_rows(const AnyRows& points, int threads);

}  // namespace margrove
