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

// See `partition_two`.
std::uint32_t partition_by_sixteen(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size,
                                   const std::uint32_t* marked, bool is_marked_left, int shift,
                                   std::uint32_t* right_key, std::uint32_t* right_tag);

// See `keep_one`.
std::uint32_t keep_by_sixteen(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const std::uint32_t* marked,
                              bool is_marked_kept, int shift);

}  // namespace margrove::tree
