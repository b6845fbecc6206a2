// A node's part of a list, split into the parts of its branches, each in the old order.
#pragma once

#include <cstdint>
#include <vector>

namespace margrove::tree {

// A set of rows, one bit each. All bits are clear between two uses.
class RowMarks {
 public:
  explicit RowMarks(std::int64_t n) : words_(n / 32 + 1) {}
  void set(std::uint32_t row) { words_[row >> 5] |= 1u << (row & 31); }
  void clear_word(std::uint32_t row) { words_[row >> 5] = 0; }
  const std::uint32_t* words() const { return words_.data(); }

 private:
  std::vector<std::uint32_t> words_;
};

// Rows whose mark is `is_marked_left` go to the front, the others behind them. `spare` has room for 2 · (size + 16)
// numbers. Returns how many went to the front.
std::uint32_t partition_two(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const RowMarks& marks,
                            bool is_marked_left, int shift, std::uint32_t* spare);

// The same where only one side is wanted: its rows go to the front, the others are lost. Returns how many they are.
std::uint32_t keep_one(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const RowMarks& marks,
                       bool is_marked_kept, int shift);

// Rows go where `branch` (by row) says; `end` gets the end of each branch's part.
void partition_many(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const std::uint32_t* branch, int shift,
                    std::uint32_t* spare, std::vector<std::uint32_t>& end);

}  // namespace margrove::tree
