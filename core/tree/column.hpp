// A column of a table, as Python hands it over.
#pragma once

#include <cstdint>
#include <span>

namespace margrove::tree {

// Keys that no rank reaches: of a missing cell, and of a list that leaves no rows out. In place of a row: one left out.
constexpr std::uint32_t kMissing = 0xFFFFFFFFu, kNoMode = 0xFFFFFFFEu, kModeRow = 0xFFFFFFFFu;

enum class Test : std::uint8_t { threshold, intervals, multiway, subset, one_vs_rest };
enum class CellKind : std::uint8_t { f32, f64, code, sparse32, sparse64 };

inline bool is_sparse(CellKind kind) { return kind == CellKind::sparse32 || kind == CellKind::sparse64; }

struct Column {
  CellKind cells;
  Test test;
  std::int8_t monotone;
  const void* data;  // n numbers or codes, `stride` elements apart; of a sparse column its stored numbers
  std::int64_t stride;
  const std::int32_t* row;       // of a sparse column: the rows of the stored numbers, ascending
  std::int64_t stored;           // how many
  std::int64_t n_codes;          // levels or intervals; 0 for thresholds
  std::span<const double> cuts;  // of intervals

  // The cell of a row, or of the place of a stored number. Not for codes.
  double number(std::int64_t i) const {
    if (cells == CellKind::f32 || cells == CellKind::sparse32) return static_cast<const float*>(data)[i * stride];
    return static_cast<const double*>(data)[i * stride];
  }
  double cell(std::int64_t i) const;  // of row i, sparse or not
};

}  // namespace margrove::tree
