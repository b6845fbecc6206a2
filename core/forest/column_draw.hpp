// The columns of a node in the order in which it looks at them: by `place_of` (tree/growing.hpp), the least first.
// They are sorted as far as they are asked for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tree/growing.hpp"

namespace margrove::forest {

class ColumnDraw {
 public:
  // `key` is mixed(j) of each column j. About `wanted` columns will be asked for.
  void begin(std::uint64_t path, std::span<const std::uint32_t> columns, std::span<const std::uint64_t> key,
             std::size_t wanted) {
    columns_ = columns;
    place_.resize(std::max(place_.size(), columns.size()));
    sorted_.resize(std::max(sorted_.size(), columns.size()));
    find_places(path, columns, key, place_.data());
    next_ = end_ = n_passed_ = 0;
    least_ = 0;
    step_ = std::max<std::size_t>(wanted, 1);
  }
  bool has_next() const { return n_passed_ + next_ < columns_.size(); }
  std::uint32_t next() {
    while (next_ == end_) sort_more();
    return sorted_[next_++].second;
  }

 private:
  static void find_places(std::uint64_t path, std::span<const std::uint32_t> columns,
                          std::span<const std::uint64_t> key, std::uint64_t* place);
  // Sorts the columns whose places lie in the next interval. Places are spread evenly, so it is likely to hold as many
  // as are wanted, and not many more.
  void sort_more() {
    n_passed_ += end_;
    next_ = end_ = 0;
    const auto left = static_cast<double>(columns_.size() - n_passed_), wanted = static_cast<double>(step_);
    const double share = (wanted + 2 * std::sqrt(wanted) + 1) / left;
    const auto room = static_cast<double>(~least_);
    // The last of the interval; all that is left where little would be.
    const std::uint64_t last = share > 0.7 ? ~std::uint64_t{0} : least_ + static_cast<std::uint64_t>(share * room);
    const std::size_t size = columns_.size();
    std::size_t n = 0;
    for (std::size_t i = 0; i < size; ++i) {
      sorted_[n] = {place_[i], columns_[i]};
      n += (place_[i] >= least_) & (place_[i] <= last) & (n < size);
    }
    end_ = n;
    least_ = last + 1;
    std::sort(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(n));
  }

  std::span<const std::uint32_t> columns_;
  std::vector<std::uint64_t> place_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted_;
  std::size_t next_ = 0, end_ = 0, n_passed_ = 0, step_ = 1;
  std::uint64_t least_ = 0;  // of the places that have not been sorted
};

}  // namespace margrove::forest
