// Indices and counts are std::int64_t. Containers take them as they are: no index is negative, so the conversion to
// their unsigned type changes nothing (which is why -Wsign-conversion is not among the warnings). What a container
// holds comes back by `length`, so that loops and differences are signed.
#pragma once

#include <cstdint>

namespace margrove {

template <class Container>
constexpr std::int64_t length(const Container& container) {
  return static_cast<std::int64_t>(container.size());
}

}  // namespace margrove
