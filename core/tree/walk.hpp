// The walk through a column's list that all kernels of scan.cpp share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dispatch.hpp"
#include "tree/scan.hpp"
#include "tree/wide.hpp"

namespace margrove::tree {

constexpr std::uint32_t kEnd = kNoMode;  // in place of a following key: nothing follows
// Elements whose scores are compared with the best in one go. Chosen, not measured: fewer skip less at a time.
constexpr std::uint32_t kChunk = 128;
constexpr std::uint32_t kPart = 16;  // elements of a part of a chunk in which one is above it: a vector of AVX-512
// A chunk with a score this near to the best is looked at one by one: 1e-12 covers the rounding of its scores.
constexpr double kAlmost = 1 - 1e-12;

// Where the best threshold so far lies.
struct Place {
  std::uint32_t key = 0, left_row = 0, right_row = 0;
  std::int64_t left_rows = 0;
  double left_weight = 0;
  bool is_present_test = false, is_missing_left = false;
};

// What the kernels below share. A kernel walks a node's rows in the order of a column, adding each to the left branch.
// Between two rows of different keys it compares the score of the test that cuts there with the best.
struct Walk {
  static constexpr bool kLooksAreCheap = false;  // so cheap that parts of a chunk are looked at too
  const ScanRules& rules;
  const NodeSums& node;
  Place place;
  bool is_missing_left = false;
  std::uint64_t boundaries = 0;

  Walk(const ScanRules& r, const NodeSums& s) : rules(r), node(s) {}

  bool has_room(std::int64_t left_rows) const {
    return left_rows >= rules.min_rows && node.rows - left_rows >= rules.min_rows;
  }
  // The weight of the right branch. Rounding may leave nothing of a light one.
  double rest(double left_weight) const { return std::max(0.0, node.weight - left_weight); }
  void record(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row,
              std::int64_t left_rows, double left_weight) {
    place = {key, left_row, right_row, left_rows, left_weight, next_key == kMissing, is_missing_left};
  }
};

// How many of these elements are followed by one of another key.
std::uint32_t boundaries_among(const std::uint32_t* key, std::uint32_t size);

// Whether runs of equal keys are so long that it is cheaper to add the classes up anew behind each than to keep their
// sums from row to row.
inline bool has_long_runs(std::uint32_t boundaries, std::uint32_t size, std::size_t n_classes) {
  return boundaries * (n_classes + 24) <= 4 * size;
}

// The class of a row, by its tag.
template <bool IsPacked>
MARGROVE_INLINE std::uint32_t label_of(const Tags& tags, std::uint32_t tag) {
  if constexpr (IsPacked) return tag & tags.mask;
  return static_cast<std::uint32_t>(tags.label[tag]);
}

// A node's rows by one column: listed rows with a key, rows left out of the list, rows without a value.
struct Parts {
  std::uint32_t present;  // listed, with a value
  std::int64_t block_rows = 0, missing_rows = 0;
  double block_weight = 0, missing_weight = 0;
  std::uint32_t before_block = 0;  // listed with keys below the mode's
};

// Through the elements from .. to − 1, each of which has another behind it.
template <class Kernel>
void walk_through(Kernel& kernel, const Tags& tags, const Piece& piece, std::uint32_t from, std::uint32_t to) {
  std::uint32_t i = from;
  const auto skip_to = [&](std::uint32_t stop) {
    const bool is_skipped = kernel.skip(piece.key + i, piece.tag + i, stop - i);
    if (is_skipped) i = stop;
    return is_skipped;
  };
  while (i < to) {
    const std::uint32_t stop = std::min(i + kChunk, to);
    if (skip_to(stop)) continue;
    while (i < stop) {  // something in this chunk wins: which part of it, and which row
      const std::uint32_t part = std::min(i + kPart, stop);
      if (Kernel::kLooksAreCheap && part < stop && skip_to(part)) continue;
      for (; i < part; ++i) {
        kernel.add(piece.tag[i]);
        if (piece.key[i] != piece.key[i + 1])
          kernel.consider(piece.key[i], tags.row(piece.tag[i]), piece.key[i + 1], tags.row(piece.tag[i + 1]));
      }
    }
  }
}

template <class Kernel, class Begin, class AddBlock>
void walk(Kernel& kernel, const Tags& tags, const Piece& piece, const Parts& parts, std::uint32_t mode, Begin begin,
          AddBlock add_block) {
  const auto run = [&](std::uint32_t from, std::uint32_t to, std::uint32_t next_key, std::uint32_t next_row) {
    if (from == to) return;
    const std::uint32_t i = to - 1;
    walk_through(kernel, tags, piece, from, i);
    kernel.add(piece.tag[i]);
    if (next_key != kEnd) kernel.consider(piece.key[i], tags.row(piece.tag[i]), next_key, next_row);
  };
  for (int route = 0; route < (parts.missing_rows ? 2 : 1); ++route) {  // missing cells right, then left
    kernel.is_missing_left = route == 1;
    begin(route == 1);
    const std::uint32_t last_key = parts.missing_rows && route == 0 ? kMissing : kEnd;
    if (!parts.block_rows) {
      run(0, parts.present, last_key, 0);
      continue;
    }
    const std::uint32_t b = parts.before_block;
    run(0, b, mode, kModeRow);
    add_block();
    if (b < parts.present)
      kernel.consider(mode, kModeRow, piece.key[b], tags.row(piece.tag[b]));
    else if (last_key != kEnd)
      kernel.consider(mode, kModeRow, last_key, 0);
    // Rows of a single key behind which nothing follows offer no test.
    const bool is_one_key = b < parts.present && piece.key[b] == piece.key[parts.present - 1];
    if (last_key != kEnd || !is_one_key) run(b, parts.present, last_key, 0);
  }
}

template <class Kernel>
void keep(const Kernel& kernel, const Parts& parts, Candidate& found) {
  // With missing cells every threshold was tried twice, and "present or missing" once.
  found.n_tests = parts.missing_rows ? (kernel.boundaries + 1) / 2 : kernel.boundaries;
  if (kernel.place.left_rows == 0) return;
  const Place& place = kernel.place;
  found.excess = kernel.excess();
  found.cut_key = place.key;
  found.left_row = place.left_row;
  found.right_row = place.right_row;
  found.is_present_test = place.is_present_test;
  found.is_missing_left = place.is_missing_left;
  found.split_information = kernel.rules.needs_split_information
                                ? split_information(place.left_weight, kernel.node.weight - place.left_weight)
                                : 0.0;
}

}  // namespace margrove::tree
