#include "kernel/duplicates.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "parallel.hpp"

namespace margrove {
namespace {

constexpr std::int64_t kPiece = 1024;  // rows a thread takes at a time. Chosen, not measured

// Four chains, because one would wait for its own multiplications.
std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15ull;  // 2^64 over the golden ratio, odd
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t chain[4] = {seed + 1, seed + 2, seed + 3, seed + 4};
  const auto mix = [&](std::uint64_t& h, std::uint64_t word) {
    h = (h ^ word) * kPrime;
    h ^= h >> 32;
  };
  std::size_t at = 0;
  for (; at + 32 <= size; at += 32)
    for (int c = 0; c < 4; ++c) {
      std::uint64_t word;
      std::memcpy(&word, bytes + at + 8 * c, 8);
      mix(chain[c], word);
    }
  for (; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min<std::size_t>(8, size - at));
    mix(chain[0], word);
  }
  std::uint64_t all = size;
  for (const std::uint64_t h : chain) mix(all, h);
  return all;
}

template <class T>
std::uint64_t hash_row(const DenseRows<T>& rows, std::int64_t i) {
  return hash_bytes(rows.row(i), rows.d * sizeof(T), 0);
}
template <class T>
std::uint64_t hash_row(const CsrRows<T>& rows, std::int64_t i) {
  const std::size_t count = rows.start[i + 1] - rows.start[i];
  return hash_bytes(rows.column + rows.start[i], count * sizeof(std::int32_t),
                    hash_bytes(rows.data + rows.start[i], count * sizeof(T), 0));
}

bool are_equal(const void* a, const void* b, std::int64_t bytes) { return bytes == 0 || std::memcmp(a, b, bytes) == 0; }
template <class T>
bool are_equal(const DenseRows<T>& rows, std::int64_t i, std::int64_t j) {
  return are_equal(rows.row(i), rows.row(j), rows.d * static_cast<std::int64_t>(sizeof(T)));
}
template <class T>
bool are_equal(const CsrRows<T>& rows, std::int64_t i, std::int64_t j) {
  const std::int64_t count = rows.start[i + 1] - rows.start[i];
  if (count != rows.start[j + 1] - rows.start[j]) return false;
  return are_equal(rows.column + rows.start[i], rows.column + rows.start[j], count * 4) &&
         are_equal(rows.data + rows.start[i], rows.data + rows.start[j], count * static_cast<std::int64_t>(sizeof(T)));
}

}  // namespace

std::vector<std::int64_t> first_equal_rows(const AnyRows& points, int threads) {
  return std::visit(
      [&](const auto& rows) {
        std::vector<std::uint64_t> hash(rows.n);
        parallel_for((rows.n + kPiece - 1) / kPiece, threads, [&](std::int64_t piece) {
          for (std::int64_t i = piece * kPiece; i < std::min(rows.n, (piece + 1) * kPiece); ++i)
            hash[i] = hash_row(rows, i);
        });
        std::vector<std::int64_t> order(hash.size()), first(hash.size());
        std::iota(order.begin(), order.end(), 0);
        std::iota(first.begin(), first.end(), 0);
        std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          const std::uint64_t ha = hash[a], hb = hash[b];
          return ha != hb ? ha < hb : a < b;
        });
        bool has_equals = false;
        for (std::size_t k = 1; k < order.size(); ++k) {
          // Of one hash all are compared with the first; what differs from it, if ever, stays by itself.
          const std::int64_t before = order[k - 1], now = order[k];
          if (hash[before] != hash[now]) continue;
          const std::int64_t candidate = first[before];
          if (!are_equal(rows, candidate, now)) continue;
          first[now] = candidate;
          has_equals = true;
        }
        if (!has_equals) first.clear();
        return first;
      },
      points);
}

}  // namespace margrove
