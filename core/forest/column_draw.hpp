// The columns of a node in the order in which it looks at them: by `place_of` (tree/growing.hpp), the least first.
// They are sorted as far as they are asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tree/growing.hpp"

namespace margrove::forest {

class ColumnDraw {
 public:
  // `key` is mixed(j) of each column j. About `wanted` columns will be asked for.
  void begin(std::uint64_t path, std::span<const std::uint32_t> columns, std::span<const std::uint64_t> key,
             std::size_t wanted) {
    places_.resize(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) places_[i] = {tree::mixed(path ^ key[columns[i]]), columns[i]};
    next_ = sorted_ = 0;
    step_ = std::max<std::size_t>(wanted, 1);
  }
  bool has_next() const { return next_ < places_.size(); }
  std::uint32_t next() {
    if (next_ == sorted_) sort_more();
    return places_[next_++].column;
  }

 private:
  struct Place {
    std::uint64_t at;
    std::uint32_t column;
    bool operator<(const Place& other) const { return at < other.at; }
  };
  void sort_more() {
    const auto begin = places_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    sorted_ = std::min(sorted_ + step_, places_.size());
    std::partial_sort(begin, places_.begin() + static_cast<std::ptrdiff_t>(sorted_), places_.end());
  }

  std::vector<Place> places_;
  std::size_t next_ = 0, sorted_ = 0, step_ = 1;
};

}  // namespace margrove::forest
