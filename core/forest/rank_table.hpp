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

  // f(ranks), where ranks[i] is the rank of column j in row i. Not of a column that is constant.
  template <class F>
  auto visit(std::size_t j, F f) const {
    const Ranks& own = columns_[j];
    if (own.flag.group >= 0) return f(FlagRanks{words_[own.flag.group].get(), own.flag.bit});
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
  // Columns of two values have a flag for each row, set where the value is the larger: 64 of them share a word.
  struct Flag {
    std::int32_t group = -1;  // -1: the column has none
    int bit = 0;
  };
  Flag flag(std::size_t j) const { return columns_[j].flag; }
  std::size_t n_groups() const { return words_.size(); }
  std::span<const std::uint32_t> group(std::size_t g) const { return members_[g]; }  // its columns, by bit
  const std::uint64_t* words(std::size_t g) const { return words_[g].get(); }        // (n)
  std::uint32_t most_ranks() const;                                                  // of all columns

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
    Flag flag;
    std::uint32_t place = 0;
  };
  void gather_flags();
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
  std::vector<LargeMemory<std::uint64_t>> words_;
  std::vector<std::vector<std::uint32_t>> members_;
};

}  // namespace margrove::forest
