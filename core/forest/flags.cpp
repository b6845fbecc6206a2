#include "forest/flags.hpp"

#include <algorithm>

namespace margrove::forest {

void Flags::begin(std::size_t n_columns, std::int64_t n) {
  n_ = n;
  place_.assign(n_columns, {});
}

std::uint64_t* Flags::take_bit(std::uint32_t column) {
  constexpr int kBits = 64;
  if (words_.empty() || n_bits_ == kBits) {
    words_.push_back(large_memory<std::uint64_t>(static_cast<std::size_t>(n_)));
    std::fill_n(words_.back().get(), n_, 0);
    n_bits_ = 0;
  }
  place_[column] = {static_cast<std::int32_t>(words_.size() - 1), n_bits_++};
  return words_.back().get();
}

void Flags::list_varying(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> columns,
                         std::vector<std::uint64_t>& varying, std::vector<std::uint32_t>& found) const {
  found.clear();
  if (words_.empty()) {
    found.assign(columns.begin(), columns.end());
    return;
  }
  varying.assign(words_.size(), 0);
  for (const std::uint32_t j : columns)
    if (const Place at = place_[j]; at.group >= 0) varying[at.group] |= std::uint64_t{1} << at.bit;
  for (std::size_t g = 0; g < words_.size(); ++g) {
    if (!varying[g]) continue;
    const std::uint64_t* word = words_[g].get();
    std::uint64_t in_some = 0, in_all = ~std::uint64_t{0};
    for (const std::uint32_t row : rows) {
      in_some |= word[row];
      in_all &= word[row];
    }
    varying[g] &= in_some & ~in_all;
  }
  for (const std::uint32_t j : columns)
    if (const Place at = place_[j]; at.group < 0 || (varying[at.group] >> at.bit & 1)) found.push_back(j);
}

}  // namespace margrove::forest
