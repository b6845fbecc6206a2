// Columns of two values as flags: one for each row, set where the value is the larger. 64 columns share a word, so one
// look at a node's words tells which of them are constant in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "large_memory.hpp"

namespace margrove::forest {

class Flags {
 public:
  // Where the flag of a column is.
  struct Place {
    std::int32_t group = -1;  // -1: the column has none
    int bit = 0;
  };
  void begin(std::size_t n_columns, std::int64_t n);
  // is_set(i): whether row i has the larger value.
  template <class IsSet>
  void add(std::uint32_t column, IsSet is_set) {
    std::uint64_t* word = take_bit(column);
    const int bit = place_[column].bit;
    for (std::int64_t i = 0; i < n_; ++i) word[i] |= static_cast<std::uint64_t>(is_set(i)) << bit;
  }
  Place place(std::size_t column) const { return place_[column]; }
  const std::uint64_t* words(std::size_t group) const { return words_[group].get(); }  // (n)

  // Those of the columns that have no flag, or one that is not the same in all of these rows. `varying` is room.
  void list_varying(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> columns,
                    std::vector<std::uint64_t>& varying, std::vector<std::uint32_t>& found) const;

 private:
  std::uint64_t* take_bit(std::uint32_t column);

  std::int64_t n_ = 0;
  std::vector<Place> place_;
  std::vector<LargeMemory<std::uint64_t>> words_;
  int n_bits_ = 0;  // in use, of the last group
};

}  // namespace margrove::forest
