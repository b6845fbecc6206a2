// The two loops that most of the time goes into, sixteen rows at a time where the machine has AVX-512: packing rows of
// a branch and scanning two classes need instructions (compress, gather, masks) that a compiler does not find by
// itself.
#pragma once

#include <cstdint>

#include "tree/partition.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MARGROVE_HAS_SIXTEEN 1
#endif

namespace margrove::tree {

// Whether these may be called. The environment variable MARGROVE_PLAIN=1 says no, so that the plain loops can be
// tested.
bool has_sixteen();

struct Sight {
  bool may_win;  // some score in sight is above the best
  std::uint32_t boundaries;
  std::uint32_t ones;
};

// See `TwoClasses` in scan.cpp: `size` rows, each followed by another (key[size] is read); their classes are the lowest
// bits of the tags.
Sight look_by_sixteen(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size, double l1, double nl,
                      double n, double t1, double best);

// Most classes that `pass_by_sixteen` takes: two vectors of counts.
constexpr std::size_t kMostWide = 32;

// Running sums over rows in the order of a column. All are whole numbers, which doubles hold exactly.
struct ManySums {
  std::uint32_t* left;         // rows of each class so far
  const std::uint32_t* total;  // ... in the node
  std::uint32_t n_classes;
  double t2, n;                            // Σ t_k², Σ t_k
  double l2, m, nl;                        // Σ l_k², Σ t_k l_k, Σ l_k
  std::uint64_t boundaries;                // tests of the groups that were passed
  std::int64_t squares[16], products[16];  // l2 and m behind each row of the group that may win
};

// Adds rows of packed tags, sixteen at a time, up to and with the first group of which a test may be above `best`, and
// returns where that begins; `size` if there is none. The tests of such a group are not counted, nor are its rows in
// nl.
std::uint32_t pass_by_sixteen(const std::uint32_t* key, const std::uint32_t* tag, std::uint32_t size,
                              std::uint32_t mask, double best, ManySums& sums);

// See `partition_two`.
std::uint32_t partition_by_sixteen(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size,
                                   const std::uint32_t* marked, bool is_marked_left, int shift,
                                   std::uint32_t* right_key, std::uint32_t* right_tag);

// See `keep_one`.
std::uint32_t keep_by_sixteen(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const std::uint32_t* marked,
                              bool is_marked_kept, int shift);

}  // namespace margrove::tree
