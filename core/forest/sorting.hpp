// Sorting a node's cells of one column: its ranks in the high bits, and in the low ones what they carry.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

namespace margrove::forest {

// Cells below this many are inserted one by one.
constexpr std::uint32_t kFewCells = 24;

template <class Cell>
void insert_cells(Cell* cells, std::uint32_t size, int bits) {
  for (std::uint32_t i = 1; i < size; ++i) {
    const Cell own = cells[i];
    std::uint32_t at = i;
    for (; at > 0 && cells[at - 1] >> bits > own >> bits; --at) cells[at] = cells[at - 1];
    cells[at] = own;
  }
}

// One pass by a digit of `kBits` above `shift`.
template <int kBits, class Cell>
void sort_by_digit(const Cell* from, Cell* to, std::uint32_t size, int shift, Cell least) {
  std::array<std::uint32_t, std::size_t{1} << kBits> place{};
  constexpr Cell kMask = (Cell{1} << kBits) - 1;
  for (std::uint32_t i = 0; i < size; ++i) ++place[(from[i] - least) >> shift & kMask];
  std::uint32_t next = 0;
  for (std::uint32_t& c : place) next += std::exchange(c, next);
  for (std::uint32_t i = 0; i < size; ++i) to[place[(from[i] - least) >> shift & kMask]++] = from[i];
}

// Sorts cells by what lies above their low `bits`; equal ones stay in their order. `least` and `most` are the least and
// the largest. Returns where they end up: `cells` or `other`.
template <class Cell>
const Cell* sort_cells(Cell* cells, Cell* other, std::uint32_t size, int bits, Cell least, Cell most) {
  if (size < kFewCells) {
    insert_cells(cells, size, bits);
    return cells;
  }
  least = least >> bits << bits;
  const int width = std::bit_width(static_cast<Cell>((most - least) >> bits));
  for (int done = 0; done < width;) {
    const int left = width - done, shift = bits + done;
    if (left <= 4 || (left > 8 && left <= 12 && size < 128)) {
      sort_by_digit<4>(cells, other, size, shift, least);
      done += 4;
    } else if (left <= 6 || (size < 256 && left <= 18)) {
      sort_by_digit<6>(cells, other, size, shift, least);
      done += 6;
    } else if (left <= 8 || size < 2048) {
      sort_by_digit<8>(cells, other, size, shift, least);
      done += 8;
    } else {
      sort_by_digit<11>(cells, other, size, shift, least);
      done += 11;
    }
    std::swap(cells, other);
  }
  return cells;
}

}  // namespace margrove::forest
