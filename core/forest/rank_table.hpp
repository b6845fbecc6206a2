// The cells of a table of numbers by their ranks among the distinct values of their column, found once for all trees.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "forest/flags.hpp"
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

  // f(ranks), where ranks[i] is the rank of column j in row i. Not of a column that is constant.
  template <class F>
  auto visit(std::size_t j, F f) const {
    const Ranks& own = columns_[j];
    if (const auto [group, bit] = flags_.place(j); group >= 0) return f(FlagRanks{flags_.words(group), bit});
    return visit_rows(
        [&]<class T>(const T* rank, std::size_t stride) { return f(RowRanks<T>{rank + own.place, stride}); });
  }
  // f(ranks, stride): in row i the columns that have no flag follow each other from ranks + i · stride on, each in its
  // place. Numbers of 8, 16 or 32 bits, by how many ranks there are.
  template <class F>
  auto visit_rows(F f) const {
    if (bytes_ == 1) return f(reinterpret_cast<const std::uint8_t*>(rows_.get()), stride_);
    if (bytes_ == 2) return f(reinterpret_cast<const std::uint16_t*>(rows_.get()), stride_);
    return f(reinterpret_cast<const std::uint32_t*>(rows_.get()), stride_);
  }
  std::uint32_t place(std::size_t j) const { return columns_[j].place; }
  std::uint32_t n_ranks(std::size_t j) const { return columns_[j].n_ranks; }
  const Flags& flags() const { return flags_; }  // of the columns of two values
  std::uint32_t most_ranks() const;              // of all columns

 private:
  template <class T>
  struct RowRanks {
    const T* rank;
    std::size_t stride;
    std::uint32_t operator[](std::size_t i) const { return rank[i * stride]; }
  };
  struct FlagRanks {
    const std::uint64_t* word;
    int bit;
    std::uint32_t operator[](std::size_t i) const { return static_cast<std::uint32_t>(word[i] >> bit & 1); }
  };
  struct Ranks {
    LargeMemory<std::byte> memory;  // by row, until all columns are ranked
    int bytes = 1;
    std::uint32_t n_ranks = 0;
    std::uint32_t place = 0;
  };
  void lay_out_rows();
  void rank_some(std::size_t first, std::size_t last, tree::SortSpace& space);
  void rank_one(const tree::ColumnBits& bits, tree::SortSpace& space, Ranks& own) const;

  std::span<const tree::Column> given_;
  std::int64_t n_;
  int threads_;
  std::vector<Ranks> columns_;
  std::atomic<std::int64_t> next_{0};
  std::unique_ptr<tree::SortSpaces> spaces_;
  LargeMemory<std::byte> rows_;
  int bytes_ = 1;
  std::size_t stride_ = 0;
  Flags flags_;
};

}  // namespace margrove::forest
