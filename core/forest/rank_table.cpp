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
  if (!is_done) return false;
  spaces_.reset();
  flags_.begin(columns_.size(), n_);
  for (std::uint32_t j = 0; j < columns_.size(); ++j) {
    const auto* rank = reinterpret_cast<const std::uint8_t*>(columns_[j].memory.get());
    if (columns_[j].n_ranks == 2) flags_.add(j, [rank](std::int64_t i) { return rank[i]; });
  }
  lay_out_rows();
  return true;
}

// The ranks of a row side by side: a node's rows are fetched once for all of its columns, and those of a small node
// stay in the cache for the nodes below it.
void RankTable::lay_out_rows() {
  std::vector<Ranks*> laid_out;
  for (Ranks& own : columns_) {
    if (own.n_ranks <= 2) continue;
    own.place = static_cast<std::uint32_t>(laid_out.size());
    laid_out.push_back(&own);
    bytes_ = std::max(bytes_, own.bytes);
  }
  stride_ = laid_out.size();
  rows_ = large_memory<std::byte>(static_cast<std::size_t>(n_) * stride_ * bytes_);
  const auto lay = [&]<class To>(To* to) {
    constexpr std::int64_t kRows = 64;  // at a time: their lines stay in the first cache from column to column
    parallel_for((n_ + kRows - 1) / kRows, threads_, [&](std::int64_t p) {
      const std::int64_t begin = p * kRows, end = std::min(n_, begin + kRows);
      const auto put = [&](const auto* from, std::size_t place) {
        for (std::int64_t i = begin; i < end; ++i) to[i * stride_ + place] = static_cast<To>(from[i]);
      };
      for (const Ranks* own : laid_out) {
        const std::byte* from = own->memory.get();
        if (own->bytes == 1)
          put(reinterpret_cast<const std::uint8_t*>(from), own->place);
        else if (own->bytes == 2)
          put(reinterpret_cast<const std::uint16_t*>(from), own->place);
        else
          put(reinterpret_cast<const std::uint32_t*>(from), own->place);
      }
    });
  };
  if (bytes_ == 1)
    lay(reinterpret_cast<std::uint8_t*>(rows_.get()));
  else if (bytes_ == 2)
    lay(reinterpret_cast<std::uint16_t*>(rows_.get()));
  else
    lay(reinterpret_cast<std::uint32_t*>(rows_.get()));
  for (Ranks& own : columns_) own.memory.reset();
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
