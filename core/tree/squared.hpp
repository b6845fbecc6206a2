// Squared error of one target: what `Sums` in scan.cpp computes without what only other criteria need.
#pragma once

#include <cstdint>
#include <limits>

#include "tree/walk.hpp"

namespace margrove::tree {

// Writes the sums Σ (y − shift) up to each row, and looks whether the test behind one of them may be above the bar.
Sight look_at_numbers(const std::uint32_t* key, const std::uint32_t* row, std::uint32_t size, const double* number,
                      double shift, double sum, double nl, double n, double total, double bar, double* sums);
// The last of these sums alone, to the last bit.
double sum_numbers(const std::uint32_t* row, std::uint32_t size, const double* number, double shift, double sum);

struct SquaredError : Walk {
  const double* weight;  // null: all one
  const double* number;
  const double shift, total;
  double best = -std::numeric_limits<double>::infinity(), bar, wl = 0, s = 0;
  std::int64_t nl = 0;

  SquaredError(const ScanRules& r, const NodeSums& node_sums, double floor)
      : Walk(r, node_sums),
        weight(r.weight.empty() ? nullptr : r.weight.data()),
        number(r.number.data()),
        shift(node_sums.shift),
        total(node_sums.sum[0]),
        bar(floor - 2 * node_sums.tolerance + node_sums.purity) {}

  void begin(const double* left, std::int64_t rows, double left_weight) {
    nl = left ? rows : 0;
    wl = left ? left_weight : 0;
    s = left ? 0.0 + left[0] : 0;
  }
  void add_block(const double* sum, std::int64_t rows, double block_weight) {
    s += sum[0];
    nl += rows;
    wl += block_weight;
  }
  void add(std::uint32_t row) {  // the tag of a row is the row, where the target is a number
    const double w = weight ? weight[row] : 1.0;
    s += w * (number[row] - shift);
    wl += w;
    ++nl;
  }
  void consider(std::uint32_t key, std::uint32_t left_row, std::uint32_t next_key, std::uint32_t right_row) {
    ++boundaries;
    const double wr = rest(wl), right = total - s;
    // Cross-multiplied, a test that cannot win needs no division.
    if (s * s * wr + right * right * wl < bar * kAlmost * wl * wr) return;
    if (!has_room(nl) || wl < rules.min_weight || wr < rules.min_weight) return;
    const double score = purity(s, wl) + purity(right, wr) - node.purity;
    if (place.left_rows != 0 && !(score > best + node.tolerance)) return;
    best = score;
    bar = best + node.tolerance + node.purity;
    record(key, left_row, next_key, right_row, nl, wl);
  }
  bool skip(const std::uint32_t* key, const std::uint32_t* row, std::uint32_t size) {
    constexpr std::uint32_t kFewRows = 16;  // of which each is looked at as soon as all. Chosen, not measured
    if (weight || size < kFewRows) return false;
    if (key[0] == key[size]) {  // keys ascend: no test here
      s = sum_numbers(row, size, number, shift, s);
      nl += size;
      wl = static_cast<double>(nl);
      return true;
    }
    double sums[kChunk];
    const Sight sight = look_at_numbers(key, row, size, number, shift, s, wl, node.weight, total, bar * kAlmost, sums);
    if (sight.may_win) {
      for (std::uint32_t i = 0; i < size; ++i) {
        ++nl;
        if (key[i] == key[i + 1]) continue;
        s = sums[i];
        wl = static_cast<double>(nl);
        consider(key[i], row[i], key[i + 1], row[i + 1]);
      }
    } else {
      nl += size;
      boundaries += sight.boundaries;
    }
    wl = static_cast<double>(nl);
    s = sums[size - 1];
    return true;
  }
  static double purity(double sum, double w) { return number_purity(Criterion::squared_error, sum, 0, w, 0); }
  double excess() const { return best; }
};

}  // namespace margrove::tree
