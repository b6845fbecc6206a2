#include "tree/partition.hpp"

#include <algorithm>
#include <cstring>

#include "tree/wide.hpp"

namespace margrove::tree {

std::uint32_t partition_two(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const RowMarks& marks,
                            bool is_marked_left, int shift, std::uint32_t* spare) {
  std::uint32_t* right_tag = spare + size + 16;
  const std::uint32_t* words = marks.words();
  if (has_sixteen()) return partition_by_sixteen(key, tag, size, words, is_marked_left, shift, spare, right_tag);
  const std::uint32_t flip = is_marked_left ? 0 : 1;
  std::uint32_t left = 0, right = 0;
  for (std::uint32_t i = 0; i < size; ++i) {  // both sides are written, one of them counts: no branch to guess
    const std::uint32_t k = key[i], t = tag[i], row = t >> shift;
    const std::uint32_t is_left = (words[row >> 5] >> (row & 31) & 1u) ^ flip;
    key[left] = k;
    tag[left] = t;
    spare[right] = k;
    right_tag[right] = t;
    left += is_left;
    right += 1 - is_left;
  }
  std::memcpy(key + left, spare, right * sizeof(std::uint32_t));
  std::memcpy(tag + left, right_tag, right * sizeof(std::uint32_t));
  return left;
}

std::uint32_t keep_one(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const RowMarks& marks,
                       bool is_marked_kept, int shift) {
  const std::uint32_t* words = marks.words();
  if (has_sixteen()) return keep_by_sixteen(key, tag, size, words, is_marked_kept, shift);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t k = key[i], t = tag[i], row = t >> shift;
    key[kept] = k;
    tag[kept] = t;
    kept += (words[row >> 5] >> (row & 31) & 1u) == (is_marked_kept ? 1u : 0u);
  }
  return kept;
}

void partition_many(std::uint32_t* key, std::uint32_t* tag, std::uint32_t size, const std::uint32_t* branch, int shift,
                    std::uint32_t* spare, std::vector<std::uint32_t>& end) {
  std::fill(end.begin(), end.end(), 0u);
  for (std::uint32_t i = 0; i < size; ++i) ++end[branch[tag[i] >> shift]];
  std::uint32_t next = 0;
  for (std::uint32_t& e : end) {
    const std::uint32_t count = e;
    e = next;
    next += count;
  }
  std::uint32_t* moved_tag = spare + size + 16;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t at = end[branch[tag[i] >> shift]]++;
    spare[at] = key[i];
    moved_tag[at] = tag[i];
  }
  std::memcpy(key, spare, size * sizeof(std::uint32_t));
  std::memcpy(tag, moved_tag, size * sizeof(std::uint32_t));
}

}  // namespace margrove::tree
