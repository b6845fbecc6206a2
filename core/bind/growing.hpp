// Trees between Python and the core: what both the growers and the booster are given and give back.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bind/arrays.hpp"
#include "tree/growing.hpp"

namespace margrove {

// The columns in Python's words: a list of (test, monotone, cells, n_codes, cuts, rows). `rows` is None unless the
// column is sparse. What they point to must outlive them.
std::vector<tree::Column> columns_of(const nb::list& given, std::int64_t n);
// Every code is one of its column's levels.
void require_codes(std::span<const tree::Column> columns, std::int64_t n);

// Columns that are sorted once for several trees.
class SortedColumns {
 public:
  SortedColumns(nb::list columns, std::int64_t n, int n_bins, bool may_leave_out, int threads);
  // Goes on for about so many seconds. True when all are sorted.
  bool run(double seconds);
  const tree::Lists& lists() const { return *lists_; }

 private:
  nb::list owners_;
  std::vector<tree::Column> columns_;
  std::unique_ptr<tree::Lists> lists_;
};

// The sorted columns that Python gives, or null for None.
inline const SortedColumns* sorted_of(const nb::object& given) {
  return given.is_none() ? nullptr : nb::cast<const SortedColumns*>(given);
}

// What a grower is asked. `number` is empty where the target is a class, and `label` otherwise.
struct Asked {
  std::int64_t n;
  std::span<const std::int32_t> label;
  int n_classes;
  std::span<const double> number, weight;
  int criterion;
  nb::dict growth;              // the names of `Growth` in src/margrove/tree/problem.py and some more
  const SortedColumns* sorted;  // or null; it must outlive the grower
  int threads;
};
std::unique_ptr<tree::Growing> grower_of(const nb::list& columns, const Asked& asked, bool keeps_order);

// The arrays of model.py, of one tree or of several, each depth first, one behind the other.
nb::dict arrays_of(std::span<const tree::Node> nodes, std::size_t n_classes);

}  // namespace margrove
