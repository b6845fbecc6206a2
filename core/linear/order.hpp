// The order in which a perceptron visits the rows: reproducible from a seed alone, on every machine and in
// linear/reference.py, which repeats these few lines in Python.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace margrove {

// SplitMix64 (Steele, Lea and Flood 2014): 64 random bits a call.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // A number in [0, bound), bound < 2^32: the upper half of a 32 x 32 product. Its bias is below 2^-32 *
  // bound.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }

 private:
  std::uint64_t state_;
};

// The rows 0 .. n-1, shuffled anew (Fisher-Yates) each time `shuffle` is called.
class VisitOrder {
 public:
  VisitOrder(std::int64_t n, std::uint64_t seed) : random_(seed), rows_(n) {
    std::iota(rows_.begin(), rows_.end(), 0u);
  }
  void shuffle() {
    for (std::uint32_t left = rows_.size(); left > 1; --left) std::swap(rows_[left - 1], rows_[random_.below(left)]);
  }
  const std::uint32_t* data() const { return rows_.data(); }

 private:
  SplitMix64 random_;
  std::vector<std::uint32_t> rows_;
};

}  // namespace margrove
