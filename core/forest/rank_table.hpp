// The cells of a table of numbers by their ranks among the distinct values of their column, found once for all trees.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "large_memory.hpp"
#include "tree/column.hpp"
#include "tree/sorting.hpp"

namespace margrove::forest {

class RankTable {
 public:
  // Dense columns, whose cells must not change while they are looked at.
  RankTable(std::span<const tree::Column> columns, std::int64_t n, int threads);

  // Ranks as many columns as there is time for. True when all are. Throws where a cell is missing.
  bool sort(std::chrono::steady_clock::time_point until);

  // f(the ranks of column j, (n)): numbers of 8, 16 or 32 bits, by how many there are.
  template <class F>
  auto visit(std::size_t j, F f) const {
    const Ranks& own = columns_[j];
    if (own.bytes == 1) return f(reinterpret_cast<const std::uint8_t*>(own.memory.get()));
    if (own.bytes == 2) return f(reinterpret_cast<const std::uint16_t*>(own.memory.get()));
    return f(reinterpret_cast<const std::uint32_t*>(own.memory.get()));
  }
  std::uint32_t n_ranks(std::size_t j) const { return columns_[j].n_ranks; }
  std::uint32_t most_ranks() const;  // of all columns

 private:
  struct Ranks {
    LargeMemory<std::byte> memory;
    int bytes = 1;
    std::uint32_t n_ranks = 0;
  };
  void rank_some(std::size_t first, std::size_t last, tree::SortSpace& space);
  void rank_one(const tree::ColumnBits& bits, tree::SortSpace& space, Ranks& own) const;

  std::span<const tree::Column> given_;
  std::int64_t n_;
  int threads_;
  std::vector<Ranks> columns_;
  std::atomic<std::int64_t> next_{0};
  std::unique_ptr<tree::SortSpaces> spaces_;
};

}  // namespace margrove::forest
