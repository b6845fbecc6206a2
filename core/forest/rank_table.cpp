#include "forest/rank_table.hpp"

#include <algorithm>
#include <stdexcept>

#include "index.hpp"
#include "parallel.hpp"

namespace margrove::forest {
namespace {

void refuse_missing(std::uint32_t rank) {
  if (rank == tree::kMissing) throw std::invalid_argument("a cell is missing; a forest of the core takes none");
}

}  // namespace

RankTable::RankTable(std::span<const tree::Column> columns, std::int64_t n, int threads)
    : given_(columns), n_(n), threads_(threads), columns_(columns.size()) {}

std::uint32_t RankTable::most_ranks() const {
  std::uint32_t most = 1;
  for (const Ranks& own : columns_) most = std::max(most, own.n_ranks);
  return most;
}

bool RankTable::sort(std::chrono::steady_clock::time_point until) {
  constexpr std::size_t kTogether = tree::SortSpace::kTogether;
  const std::int64_t groups = (length(given_) + kTogether - 1) / kTogether;
  if (next_ >= groups && !spaces_) return true;
  if (!spaces_) spaces_ = std::make_unique<tree::SortSpaces>(static_cast<std::size_t>(n_), threads_);
  const bool is_done = go_on(next_, groups, threads_, until, [&](std::int64_t g) {
    const std::size_t first = g * kTogether;
    rank_some(first, std::min(first + kTogether, given_.size()), spaces_->own());
  });
  if (is_done) spaces_.reset();
  return is_done;
}

void RankTable::rank_some(std::size_t first, std::size_t last, tree::SortSpace& space) {
  const std::vector<tree::ColumnBits> bits = space.fetch(given_.subspan(first, last - first), n_);
  for (std::size_t j = first; j < last; ++j) rank_one(bits[j - first], space, columns_[j]);
}

void RankTable::rank_one(const tree::ColumnBits& bits, tree::SortSpace& space, Ranks& own) const {
  const auto n = static_cast<std::size_t>(n_);
  const auto fill = [&](std::uint32_t n_ranks, auto put) {
    own.n_ranks = n_ranks;
    own.bytes = n_ranks <= 1u << 8 ? 1 : n_ranks <= 1u << 16 ? 2 : 4;
    own.memory = large_memory<std::byte>(n * own.bytes);
    if (own.bytes == 1) return put(reinterpret_cast<std::uint8_t*>(own.memory.get()));
    if (own.bytes == 2) return put(reinterpret_cast<std::uint16_t*>(own.memory.get()));
    return put(reinterpret_cast<std::uint32_t*>(own.memory.get()));
  };
  if (!bits.narrow.empty() && space.few.find(bits.narrow)) {
    if (space.few.missing()) refuse_missing(tree::kMissing);
    fill(space.few.n_ranks(), [&]<class T>(T* rank) {
      for (std::size_t i = 0; i < n; ++i) rank[i] = static_cast<T>(space.few.rank(i));
    });
    return;
  }
  const std::uint64_t* pairs = tree::ranked_rows(bits, space);
  const auto last = static_cast<std::uint32_t>(pairs[n - 1] >> 32);
  refuse_missing(last);
  fill(last + 1, [&]<class T>(T* rank) {
    for (std::size_t i = 0; i < n; ++i) rank[static_cast<std::uint32_t>(pairs[i])] = static_cast<T>(pairs[i] >> 32);
  });
}

}  // namespace margrove::forest
